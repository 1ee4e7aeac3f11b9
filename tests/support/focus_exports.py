"""FOCUS exports in AWS's layouts, and any CUR bill of a test rewritten as FOCUS."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from pipelines.ingest.billing.columns import FOCUS, snake
from support.bills import ORDINARY_LINE, next_month
from support.cur_exports import MAP, csv_text, packed, parquet, write

# What every line of an AWS FOCUS 1.2 export has (facts aws-billing 1.4); a test states only what differs.
ORDINARY_FOCUS_LINE = {
    "BilledCost": "0",
    "BillingAccountId": "000011112222",
    "BillingAccountType": "Management Account",
    "BillingCurrency": "USD",
    "ChargeCategory": "Usage",
    "ChargeClass": "",
    "ChargeDescription": "",
    "ChargeFrequency": "Usage-Based",
    "ContractedCost": "0",
    "EffectiveCost": "0",
    "InvoiceId": "INV-1",
    "InvoiceIssuerName": "Amazon Web Services, Inc.",
    "ListCost": "0",
    "PricingCategory": "Standard",
    "PricingUnit": "Hours",
    "ProviderName": "AWS",
    "PublisherName": "Amazon Web Services, Inc.",
    "RegionId": "us-west-2",
    "ServiceName": "Amazon Elastic Compute Cloud",
    "SubAccountId": "000033334444",
    "x_Operation": "RunInstances",
    "x_ServiceCode": "AmazonEC2",
}
ALWAYS = (
    "BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd", "CapacityReservationId",
    "CapacityReservationStatus", "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountStatus",
    "CommitmentDiscountType", "ConsumedQuantity", "ResourceId", "SkuMeter", "SkuPriceDetails", "Tags", "x_Discounts",
)  # fmt: skip
NOT_IN_1_0 = (
    "BillingAccountType", "CapacityReservationId", "CapacityReservationStatus", "InvoiceId", "SkuMeter",
    "SkuPriceDetails",
)  # fmt: skip
MAPS = {"tags": MAP, "skupricedetails": MAP, "x_discounts": pa.map_(pa.string(), pa.float64())}


def focus_lines(lines: Iterable[Mapping[str, str]], period: str = "2026-07", version: str = "1.2") -> list[dict]:
    """Whole lines of a FOCUS export of the month from what differs in them."""
    dates = {
        "BillingPeriodStart": f"{period}-01T00:00:00Z",
        "BillingPeriodEnd": f"{next_month(period)}-01T00:00:00Z",
    }
    whole = [{**dict.fromkeys(ALWAYS, ""), **ORDINARY_FOCUS_LINE, **dates, **line} for line in lines]
    if version == "1.0":
        whole = [_as_1_0(line) for line in whole]
    return [dict(sorted(line.items())) for line in whole]


def normalized(lines: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Whole lines as rows of the raw table; a tag, and a key of a map, is given under its normalized name."""
    known = {column.name for column in FOCUS.columns} | {"tag_run_id", "tag_owner", "tag_team"}
    ours = {alias: column.name for column in FOCUS.columns for alias in column.aliases if alias not in known}
    rows = [{snake(name): value for name, value in line.items() if value} for line in lines]
    rows = [{ours[name]: value for name, value in row.items() if name in ours} | row for row in rows]
    return [{name: value for name, value in row.items() if name in known} for row in rows]


def _as_1_0(line: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in line.items() if name not in NOT_IN_1_0}
    return {**kept, "x_UsageType": line["SkuMeter"], "x_CostCategories": ""}


def focus_parquet(lines: Sequence[Mapping[str, str]], other: Mapping[str, pa.DataType] | None = None) -> bytes:
    """Whole lines as Parquet: numbers double, dates timestamps, maps; `other` overrides; headers as spelled."""
    types: dict[str, pa.DataType] = {}
    for name in lines[0]:
        word = name.lower()
        if word in MAPS:
            types[name] = MAPS[word]
        elif word.endswith(("cost", "quantity", "price")):
            types[name] = pa.float64()
        elif word.endswith(("periodstart", "periodend")):
            types[name] = pa.timestamp("ms", "UTC")
        else:
            types[name] = pa.string()
    types.update(other or {})
    return parquet([{name: _filled(types[name], value) for name, value in line.items()} for line in lines], types)


def _filled(kind: pa.DataType, value: str) -> object:
    if pa.types.is_map(kind):
        return json.loads(value) if value else None
    return None if value == "" else value


def in_lower_case(lines: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The lines under the names Glue gives the columns."""
    return [{name.lower(): value for name, value in line.items()} for line in lines]


def focus_export(
    root: Path,
    files: Mapping[str, bytes],
    columns: Iterable[str],
    *,
    name: str = "ml-focus",
    month: str = "2026-07",
    execution: str = "2026-08-01T23:48:02.356Z-exec-1",
    overwrite: bool = False,
    partition: str = "billing_period",
) -> Path:
    """A FOCUS export of one month below `root`/`name`, in the create-new layout unless `overwrite`."""
    folder = f"data/{partition}={month}" + ("" if overwrite else f"/{execution}")
    manifest = {
        "executionId": execution,
        "exportArn": f"arn:aws:bcm-data-exports:us-east-1:000011112222:export/{name}-1",
        "columns": [{"name": column, "type": "string"} for column in columns],
        "dataFiles": [f"s3://example-billing/focus/{name}/{folder}/{file}" for file in files],
        "additionalOutputFiles": [],
    }
    write(root / name, {f"{folder}/{file}": content for file, content in files.items()})
    write(root / name, {f"metadata/{partition}={month}/{name}-Manifest.json": json.dumps(manifest)})
    return root / name


def write_focus_export(
    root: Path,
    months: Mapping[str, Sequence[Mapping[str, str]]],
    *,
    name: str = "export",
    version: str = "1.2",
    execution: str = "2026-08-01T00:00:00.000Z-first",
) -> Path:
    """A FOCUS export (csv.gz, create-new) below `root`; lines hold what differs from ORDINARY_FOCUS_LINE."""
    for period, lines in months.items():
        whole = focus_lines(lines, period, version)
        columns = list(dict.fromkeys(column for line in whole for column in line))
        content = packed(csv_text([dict.fromkeys(columns, "") | line for line in whole]))
        focus_export(root, {f"{name}-00001.csv.gz": content}, columns, name=name, month=period, execution=execution)
    return root / name


# A CUR bill in FOCUS terms, by facts aws-billing 1.4 and 2.1: covered usage is billed nothing and there are no
# negations; what a commitment costs is billed on its purchase and spread, used and unused, over its usage.

_PLAN = "arn:aws:savingsplans::000011112222:savingsplan/sp-1"
_RESERVATION = "arn:aws:ec2:us-west-2:000011112222:reserved-instances/ri-1"


def as_focus(lines: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Lines of a CUR 2.0 bill without net columns as lines of FOCUS; ValueError for a type FOCUS has no word for."""
    return [charge for line in lines for charge in _charges_of({**ORDINARY_LINE, **line})]


def _charges_of(line: Mapping[str, str]) -> Iterator[dict[str, str]]:
    kind, cost, base = line["line_item_line_item_type"], line["line_item_unblended_cost"], _base(line)
    plan = {
        "CommitmentDiscountId": line.get("savings_plan_savings_plan_a_r_n") or _PLAN,
        "CommitmentDiscountCategory": "Spend",
        "CommitmentDiscountType": "Savings Plan",
    }
    reservation = {
        "CommitmentDiscountId": line.get("reservation_reservation_a_r_n") or _RESERVATION,
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountType": "Reserved",
    }
    used = {"BilledCost": "0", "PricingCategory": "Committed", "CommitmentDiscountStatus": "Used"}
    # Whoever adds ListCost up over purchases too counts it twice (facts 1.4).
    bought = {"ChargeCategory": "Purchase", "BilledCost": cost, "EffectiveCost": "0", "ListCost": cost}
    if kind == "Usage":
        yield {**base, "BilledCost": cost, "EffectiveCost": cost}
    elif kind == "SavingsPlanCoveredUsage":
        yield {**base, **plan, **used, "EffectiveCost": line.get("savings_plan_savings_plan_effective_cost", "0")}
    elif kind == "DiscountedUsage":
        yield {**base, **reservation, **used, "EffectiveCost": line.get("reservation_effective_cost", "0")}
    elif kind in ("SavingsPlanRecurringFee", "RIFee"):
        commitment = plan if kind == "SavingsPlanRecurringFee" else reservation
        yield {**base, **commitment, **bought, "ChargeFrequency": "Recurring"}
        unused = str(_unused(line))
        status = {"PricingCategory": "Committed", "CommitmentDiscountStatus": "Unused"}
        yield {**base, **commitment, **status, "BilledCost": "0", "EffectiveCost": unused, "ListCost": unused}
    elif kind == "SavingsPlanUpfrontFee":
        yield {**base, **plan, **bought, "ChargeFrequency": "One-Time"}
    elif kind == "Fee" and line.get("reservation_reservation_a_r_n"):
        yield {**base, **reservation, **bought, "ChargeFrequency": "One-Time"}
    elif kind == "Fee":
        yield {**base, **bought, "EffectiveCost": cost, "ChargeFrequency": "One-Time"}
    elif kind in ("Tax", "Credit"):
        yield {**base, "ChargeCategory": kind, "BilledCost": cost, "EffectiveCost": cost}
    elif kind == "Refund":
        correction = {"ChargeCategory": "Adjustment", "ChargeClass": "Correction"}
        yield {**base, **correction, "BilledCost": cost, "EffectiveCost": cost}
    elif kind != "SavingsPlanNegation":
        raise ValueError(kind)


def _base(line: Mapping[str, str]) -> dict[str, str]:
    usage, resource = line.get("line_item_usage_type", ""), line.get("line_item_resource_id", "")
    place = f"arn:aws:ec2:{line['product_region_code']}:{line['line_item_usage_account_id']}:instance/"
    base = {
        "BillingAccountId": line["bill_payer_account_id"],
        "BillingCurrency": line["line_item_currency_code"],
        "ChargePeriodStart": line["line_item_usage_start_date"],
        "ChargePeriodEnd": line["line_item_usage_end_date"],
        "ConsumedQuantity": line.get("line_item_usage_amount", ""),
        "InvoiceId": line["bill_invoice_id"],
        "ListCost": line.get("pricing_public_on_demand_cost", ""),
        "PricingCategory": "Dynamic" if line["pricing_term"] == "Spot" else "Standard",
        "RegionId": line["product_region_code"],
        "ResourceId": place + resource if resource.startswith("i-") else resource,
        "SkuMeter": usage,
        "SubAccountId": line["line_item_usage_account_id"],
        "Tags": line.get("resource_tags", ""),
        "x_Operation": line["line_item_operation"],
        "x_ServiceCode": line["line_item_product_code"],
    }
    if "UnusedBox:" in usage:
        base |= {"CapacityReservationId": resource, "CapacityReservationStatus": "Unused"}
    return base


def _unused(line: Mapping[str, str]) -> Decimal:
    def amount(name: str) -> Decimal:
        return Decimal(line.get(name) or 0)

    if line["line_item_line_item_type"] == "RIFee":
        return amount("reservation_unused_amortized_upfront_fee_for_billing_period") + amount(
            "reservation_unused_recurring_fee"
        )
    return amount("savings_plan_total_commitment_to_date") - amount("savings_plan_used_commitment")
