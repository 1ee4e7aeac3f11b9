"""The made-up month once more as FOCUS lines of another payer: every category, status and gap, in Parquet."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import product
from pathlib import Path

from edge_bill import AMOUNTS, COSTS, FIRST_HOUR, HOURS, MACHINES, MONTH, OTHER_USAGE
from support.focus_exports import focus_export, focus_lines, focus_parquet

PAYER = "000077776666"
BLOCK = "arn:aws:ec2:us-west-2:000033334444:capacity-reservation/cr-0b10c"
CATEGORIES = ("Usage", "Purchase", "Tax", "Credit", "Adjustment", "Levy")
CLASSES = ("", "Correction")
COMMITMENTS = (
    ("", "", ""),
    ("arn:aws:savingsplans::000077776666:savingsplan/sp-1", "Spend", "Savings Plan"),
    ("arn:aws:ec2:us-west-2:000077776666:reserved-instances/ri-1", "Usage", ""),
)


def write_focus_bill(root: Path, seed: int = 11) -> Path:
    """A FOCUS 1.2 export of the month, some of its lines known by their description alone."""
    draw = random.Random(seed)
    lines = [_hour(draw, machine, hour) for machine in MACHINES for hour in range(HOURS)]
    lines += [_other(draw, *kind) for kind in product(CATEGORIES, CLASSES, COMMITMENTS) for _ in (0, 1)]
    whole = focus_lines(lines, MONTH)
    return focus_export(root, {"part-1.snappy.parquet": focus_parquet(whole)}, whole[0], month=MONTH)


def _line(draw: random.Random, hour: int) -> dict[str, str]:
    costs = {"EffectiveCost": _text(draw.choice(COSTS[:-1])), "ListCost": _text(draw.choice(COSTS))}
    started = FIRST_HOUR + timedelta(hours=hour)
    return {
        **costs,
        "BilledCost": _text(draw.choice(COSTS[:-1])),
        "BillingAccountId": PAYER,
        "ChargePeriodStart": started.isoformat(),
        "ChargePeriodEnd": (started + timedelta(hours=1)).isoformat(),
        "InvoiceId": draw.choice(("INV-7", "")),
        "HostProviderName": draw.choice(("AWS", "AWS", "", "Microsoft")),
        "SubAccountId": draw.choice(("000033334444", "")),
        "RegionId": draw.choice(("us-west-2", "")),
        "Tags": draw.choice(("", '{"user:RunId": "r-1", " team": "nlp"}')),
    }


def _hour(draw: random.Random, machine: str, hour: int) -> dict[str, str]:
    kind, usage, operation = MACHINES[machine]
    place = f"arn:aws:ec2:us-west-2:000033334444:instance/{machine}"
    meter = draw.choice((f"USW2-{usage}:{kind}", "Instance Hours"))
    plan, category, word = draw.choice(COMMITMENTS)
    return {
        **_line(draw, hour),
        "ResourceId": draw.choice((machine, place)) if machine.startswith("i-") else machine,
        "SkuMeter": meter,
        "SkuPriceDetails": draw.choice(("", f'{{"InstanceType": "{kind}"}}')),
        "ChargeDescription": f"$1.5 per On Demand Linux {kind} Instance Hour",
        "ConsumedQuantity": str(draw.choice(AMOUNTS)),
        "x_Operation": operation,
        "PricingCategory": "Dynamic" if usage == "SpotUsage" else "Standard" if plan else "Committed",
        "ContractApplied": f'{{"Elements": [{{"ContractCommitmentID": "{machine}"}}]}}',
        "CapacityReservationId": draw.choice(("", BLOCK)),
        "CapacityReservationStatus": draw.choice(("", "Used", "Unused")),
        "CommitmentDiscountId": plan,
        "CommitmentDiscountCategory": category,
        "CommitmentDiscountType": word,
        "CommitmentDiscountStatus": draw.choice(("Used", "Unused")) if plan else "",
    }


def _other(draw: random.Random, category: str, charge_class: str, commitment: tuple[str, str, str]) -> dict[str, str]:
    plan, kind, word = commitment
    return {
        **_line(draw, draw.randrange(-20, 20)),
        "ChargeCategory": category,
        "ChargeClass": charge_class,
        "ChargeFrequency": draw.choice(("One-Time", "Recurring", "Usage-Based")),
        "CommitmentDiscountId": plan,
        "CommitmentDiscountCategory": kind,
        "CommitmentDiscountType": word,
        "ConsumedQuantity": draw.choice(("", "12.5")),
        "PricingUnit": draw.choice(("GB", "1K tokens", "")),
        "SkuMeter": draw.choice((*OTHER_USAGE[:7], "USW2-CapacityBlockFee:p5.48xlarge", "")),
        "x_ServiceCode": draw.choice(("AmazonEC2", "AmazonBedrock", "AWSSupportEnterprise", "")),
    }


def _text(cost: float | None) -> str:
    return "" if cost is None else repr(cost)
