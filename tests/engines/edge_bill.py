"""A made-up month of every kind of bill line, with amounts chosen for where engines part ways.

Doubles whose eleventh place is a half, sums of many places, shares of hours that do not divide, unstated costs.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
from support.cur_exports import cur2_export, parquet

MONTH = "2026-07"
FIRST_HOUR = datetime(2026, 7, 14, 20)
HOURS = 8

# Halves in the eleventh place, tiny request prices, amounts of many digits, amounts a double cannot hold.
COSTS = (
    0.00000000125, 0.12345678905, -0.00000000005, 0.1, 0.30000000000000004, 4e-7, 32.7726, 21.5, 98.32,
    1234567.8912345678, 912345.67890123456, 0.0, None,
)  # fmt: skip
# A fee is divided by another one, so none is tiny.
FEES = (0.12345678905, 0.1, 0.30000000000000004, 32.7726, 21.5, 98.32, 0.0, None)
AMOUNTS = (1.0, 1.0, 1.0, 0.25, 0.2833333333, 0.9997222222, 0.0)
MACHINES = {
    "i-0a": ("p4d.24xlarge", "BoxUsage", "RunInstances"),
    "i-0b": ("p5.48xlarge", "BoxUsage", "RunInstances"),
    "i-0c": ("trn1.32xlarge", "SpotUsage", "RunInstances:SV001"),
    "i-0d": ("m5.large", "BoxUsage", "RunInstances"),
    "i-0e": ("p5.48xlarge", "BoxUsage", "RunInstances:CB"),
    "i-0f": ("p5.48xlarge", "UnusedBox", "RunInstances:CB"),
    "arn:aws:sagemaker:us-west-2:000033334444:training-job/t-1": ("ml.trn1.32xlarge", "Train", "CreateTrainingJob"),
}
OTHER_USAGE = (
    "USW2-EBS:VolumeUsage.gp3", "USW2-NatGateway-Bytes", "DataTransfer-Out-Bytes", "USE1-AWS-In-Bytes",
    "Requests-Tier1", "USW2-TrainWarmPool:ml.trn1.32xlarge", "ComputeSP:1yrAllUpfront",
    "USW2-DedicatedUsage:g9x.2xlarge", "USW2-Reservation:p4d.24xlarge", "HeavyUsage:p4d.24xlarge",
)  # fmt: skip
CHARGES = (
    "Usage", "DiscountedUsage", "SavingsPlanCoveredUsage", "SavingsPlanNegation", "SavingsPlanRecurringFee",
    "SavingsPlanUpfrontFee", "RIFee", "Fee", "Tax", "Credit", "Refund", "EdpDiscount", "SomeNewDiscount",
    "SomethingNew",
)  # fmt: skip
MONEY = (
    "line_item_net_unblended_cost", "pricing_public_on_demand_cost",
    "reservation_effective_cost", "reservation_net_effective_cost",
    "reservation_net_unused_amortized_upfront_fee_for_billing_period", "reservation_net_unused_recurring_fee",
    "reservation_unused_amortized_upfront_fee_for_billing_period", "reservation_unused_recurring_fee",
    "savings_plan_amortized_upfront_commitment_for_billing_period",
    "savings_plan_net_amortized_upfront_commitment_for_billing_period",
    "savings_plan_net_savings_plan_effective_cost", "savings_plan_savings_plan_effective_cost",
    "savings_plan_total_commitment_to_date", "savings_plan_used_commitment",
)  # fmt: skip
SPLIT_MONEY = (
    "split_line_item_split_cost", "split_line_item_unused_cost", "split_line_item_net_split_cost",
    "split_line_item_net_unused_cost", "split_line_item_public_on_demand_split_cost",
    "split_line_item_public_on_demand_unused_cost", "split_line_item_split_usage",
    "split_line_item_split_usage_ratio",
)  # fmt: skip
# Fees that state their term: a year, and three with a leap day.
TERMED = {
    "SavingsPlanRecurringFee": {
        "savings_plan_savings_plan_a_r_n": "arn:aws:savingsplans::000011112222:savingsplan/sp-termed",
        "savings_plan_start_time": "2026-01-01T00:00:00.000Z",
        "savings_plan_end_time": "2026-12-31T23:59:59.000Z",
        "savings_plan_payment_option": "No Upfront",
    },
    "RIFee": {
        "reservation_reservation_a_r_n": "arn:aws:ec2:us-west-2:000011112222:reserved-instances/ri-termed",
        "reservation_start_time": "2026-01-01T00:00:00.000Z",
        "reservation_end_time": "2028-12-31T23:59:59.000Z",
        "reservation_total_reserved_units": "2976",
        "pricing_purchase_option": "AllUpfront",
    },
}
# An open month's fee without what of it is unused.
UNSEEN = {
    **{name: None for name in MONEY if "_unused_" in name},
    "reservation_reservation_a_r_n": "arn:aws:ec2:us-west-2:000011112222:reserved-instances/ri-unseen",
    "bill_payer_account_id": "000011112222",
    "bill_invoice_id": "",
    "line_item_unblended_cost": 5432.1,
}
BUCKET = "corp-checkpoints"
SPLIT = ("Accelerator", "vCPU", "GB")
PODS = ("pod/c/train/job-1/aaaa", "pod/c/train/job-2/bbbb")
NET = tuple(name for name in MONEY if "_net_" in name)


def write_bill(root: Path, seed: int = 7, execution: str = "20260801T000000Z-exec-1") -> Path:
    """A CUR 2.0 export of one month in two Parquet files, with doubles and maps as AWS writes them."""
    draw = random.Random(seed)
    lines = [_instance_line(draw, machine, hour) for machine in MACHINES for hour in range(HOURS) for _ in (0, 1)]
    lines += [_other_line(draw, charge) for charge in CHARGES * 12]
    lines += [_block_fee(draw, "cr-0b10c"), _block_fee(draw, None)]
    lines += [_stored_line(draw) for _ in range(4)]
    lines += [_pod_line(draw, pod, kind, hour) for pod in PODS for kind in SPLIT for hour in range(HOURS)]
    lines += [_daily_line(draw, day) for day in range(1, 28)]
    lines += [_termed_fee(draw, charge) for charge in TERMED]
    lines += [_termed_fee(draw, "RIFee") | UNSEEN]
    doubles: dict[str, pa.DataType] = dict.fromkeys((*MONEY, *SPLIT_MONEY), pa.float64())
    half = len(lines) // 2
    parts = {"part-1.snappy.parquet": lines[:half], "part-2.snappy.parquet": lines[half:]}
    return cur2_export(
        root, {name: parquet(part, doubles) for name, part in parts.items()}, month=MONTH, execution=execution
    )


def _line(draw: random.Random, at: datetime | None = None, **given: object) -> dict[str, object]:
    started = at or FIRST_HOUR + timedelta(hours=draw.randrange(-40, 40))
    payer = draw.choice(("000011112222", "000099998888"))
    money = {name: draw.choice(FEES) for name in MONEY}
    if payer == "000099998888":
        # A payer without discounts has no net values at all.
        money.update(dict.fromkeys(NET))
    return {
        **{name: None for fee in TERMED.values() for name in fee},
        "bill_bill_type": "Anniversary",
        "bill_billing_entity": draw.choice(("AWS", "AWS Marketplace", None)),
        "bill_billing_period_start_date": "2026-07-01T00:00:00",
        "bill_invoice_id": draw.choice(("INV-1", "INV-2", "")),
        "bill_invoicing_entity": "Amazon Web Services, Inc.",
        "bill_payer_account_id": payer,
        "bill_payer_account_name": "payer",
        "line_item_currency_code": "USD",
        "line_item_line_item_description": "Refund for one-time fee for Savings Plan ID 1",
        "line_item_line_item_type": "Usage",
        "line_item_operation": "",
        "line_item_product_code": draw.choice(("AmazonEC2", "AmazonS3", "AWSSupportBusiness", "ComputeSavingsPlans")),
        "line_item_resource_id": "",
        "line_item_unblended_cost": draw.choice(COSTS[:-1]),
        "line_item_usage_account_id": draw.choice(("000033334444", "000055556666")),
        "line_item_usage_amount": draw.choice(AMOUNTS),
        "line_item_usage_start_date": started.isoformat(),
        "line_item_usage_end_date": (started + timedelta(hours=draw.choice((1, 1, 24)))).isoformat(),
        "line_item_usage_type": draw.choice(OTHER_USAGE),
        "pricing_term": draw.choice(("OnDemand", "Spot", "")),
        "product": {"region": "us-west-2", "instance_type": draw.choice(("", "p4d.24xlarge"))},
        "reservation_reservation_a_r_n": draw.choice(("", "arn:aws:ec2:us-west-2:1:capacity-reservation/cr-0a1")),
        "resource_tags": draw.choice(({}, {"user_run_id": "run-tagged"}, {"user_Owner": "ada", "user_team": "nlp"})),
        "split_line_item_parent_resource_id": "",
        **dict.fromkeys(SPLIT_MONEY),
        **money,
        "pricing_public_on_demand_cost": draw.choice(COSTS),
        **given,
    }


def _instance_line(draw: random.Random, machine: str, hour: int) -> dict[str, object]:
    instance_type, kind, operation = MACHINES[machine]
    at = FIRST_HOUR + timedelta(hours=hour)
    return _line(
        draw,
        at=at,
        line_item_usage_end_date=(at + timedelta(hours=1)).isoformat(),
        line_item_line_item_type=draw.choice(("Usage", "Usage", "DiscountedUsage", "SavingsPlanCoveredUsage")),
        line_item_operation=operation,
        line_item_product_code="AmazonEC2",
        line_item_resource_id=machine,
        line_item_usage_type=f"USW2-{kind}:{instance_type}",
        line_item_usage_account_id="000033334444",
        product={"region": "us-west-2", "instance_type": draw.choice(("", instance_type))},
    )


def _other_line(draw: random.Random, charge: str) -> dict[str, object]:
    costs = COSTS if charge == "Usage" else FEES
    return _line(
        draw,
        line_item_line_item_type=charge,
        line_item_unblended_cost=draw.choice(costs[:-1]),
        line_item_resource_id=draw.choice(("", "vol-1", "i-0z")),
    )


def _stored_line(draw: random.Random) -> dict[str, object]:
    return _line(
        draw,
        line_item_product_code="AmazonS3",
        line_item_resource_id=BUCKET,
        line_item_usage_amount=1200.5,
        line_item_usage_type="USW2-TimedStorage-ByteHrs",
    )


def _daily_line(draw: random.Random, day: int) -> dict[str, object]:
    """A team's machine at much the same cost every day but the 25th, which is far from its history."""
    return _line(
        draw,
        at=datetime(2026, 7, day, 3),
        line_item_operation="RunInstances",
        line_item_product_code="AmazonEC2",
        line_item_resource_id="i-0daily",
        line_item_unblended_cost=912345.67890123456 if day == 25 else 50 + day / 7,
        line_item_net_unblended_cost=None,
        line_item_usage_type="USW2-BoxUsage:p4d.24xlarge",
        resource_tags={"user_team": "daily"},
    )


def _block_fee(draw: random.Random, reservation: str | None) -> dict[str, object]:
    return _line(
        draw,
        at=datetime(2026, 7, 2, 11, 30),
        line_item_line_item_type="Fee",
        line_item_operation="RunInstances:CB",
        line_item_usage_type="USW2-CapacityBlockFee:p5.48xlarge",
        line_item_unblended_cost=4321.1,
        line_item_usage_account_id="000033334444" if reservation else "000055556666",
        line_item_resource_id=f"arn:aws:ec2:us-west-2:1:capacity-reservation/{reservation}" if reservation else "",
        reservation_reservation_a_r_n="",
    )


def _termed_fee(draw: random.Random, charge: str) -> dict[str, object]:
    return _line(
        draw,
        at=datetime(2026, 7, 14, 5),
        line_item_line_item_type=charge,
        line_item_resource_id="",
        **TERMED[charge],
    )


def _pod_line(draw: random.Random, pod: str, kind: str, hour: int) -> dict[str, object]:
    at = FIRST_HOUR + timedelta(hours=hour)
    return _line(
        draw,
        at=at,
        line_item_usage_end_date=(at + timedelta(hours=1)).isoformat(),
        line_item_operation="EKSPod-EC2",
        line_item_product_code="AmazonEKS",
        line_item_resource_id=f"arn:aws:eks:us-west-2:000033334444:{pod}",
        line_item_usage_type=f"USW2-EKS-EC2-{kind}-Hours",
        line_item_usage_account_id="000033334444",
        line_item_unblended_cost=0.0,
        pricing_public_on_demand_cost=0.0,
        split_line_item_parent_resource_id=draw.choice(("i-0b", "i-0d")),
        **{name: draw.choice(FEES) for name in SPLIT_MONEY},
    )
