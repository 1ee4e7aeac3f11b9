"""Reads the generated demo with pyarrow and json alone, so that its tests owe nothing to the pipeline.

Formulas are those of AWS's documentation (line item details), written down here a second time.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq

Line = dict
HOUR = timedelta(hours=1)
EXPORT = "bucket/cur2/ml-cur2"


# What the tests look at; the maps and texts left out are slow to turn into Python.
COLUMNS = (
    *("bill_bill_type", "bill_billing_entity", "bill_billing_period_start_date", "bill_invoice_id"),
    *("bill_payer_account_id", "identity_line_item_id", "pricing_term", "pricing_public_on_demand_cost"),
    *(f"capacity_reservation_capacity_reservation_{name}" for name in ("arn", "status", "type")),
    *(f"line_item_{name}" for name in ("line_item_type", "operation", "product_code", "resource_id", "tax_type")),
    *(f"line_item_{name}" for name in ("unblended_cost", "usage_account_id", "usage_amount", "usage_type")),
    *("line_item_usage_start_date", "product_instance_type", "resource_tags", "reservation_effective_cost"),
    "reservation_amortized_upfront_fee_for_billing_period",
    "reservation_reservation_a_r_n",
    "reservation_unused_amortized_upfront_fee_for_billing_period",
    "reservation_unused_recurring_fee",
    "savings_plan_amortized_upfront_commitment_for_billing_period",
    "savings_plan_savings_plan_effective_cost",
    "savings_plan_total_commitment_to_date",
    "savings_plan_used_commitment",
    *(f"split_line_item_{name}" for name in ("parent_resource_id", "split_cost", "unused_cost")),
)


def read_month(root: Path, month: str) -> list[Line]:
    """The lines of the files that the month's manifest names, resolved below the export's root."""
    manifest = root / EXPORT / f"metadata/BILLING_PERIOD={month}/ml-cur2-Manifest.json"
    lines: list[Line] = []
    for uri in json.loads(manifest.read_text())["dataFiles"]:
        assert uri.startswith("s3://larkfield-billing/cur2/ml-cur2/")
        file = pq.ParquetFile(root / EXPORT / uri.split("/ml-cur2/", 1)[1])
        lines += file.read(columns=list(COLUMNS)).to_pylist()
    return lines


def read_events(root: Path) -> list[dict]:
    return [json.loads(line) for path in sorted(root.rglob("*.jsonl")) for line in path.read_text().splitlines()]


def tag(line: Line, key: str) -> str | None:
    return dict(line["resource_tags"] or ()).get(f"user_{key}")


def at(event: dict) -> datetime:
    assert event["at"].endswith("Z")
    return datetime.fromisoformat(event["at"][:-1])


def total(lines: list[Line], column: str, *kinds: str) -> float:
    return sum(line[column] or 0.0 for line in lines if not kinds or line["line_item_line_item_type"] in kinds)


def amortized(line: Line) -> float:
    """AWS's amortized cost of a line, with a Capacity Block fee kept whole."""
    kind = line["line_item_line_item_type"]
    if "CapacityBlockFee:" in line["line_item_usage_type"]:
        return line["line_item_unblended_cost"]
    if kind == "SavingsPlanCoveredUsage":
        return line["savings_plan_savings_plan_effective_cost"]
    if kind == "SavingsPlanRecurringFee":
        return line["savings_plan_total_commitment_to_date"] - line["savings_plan_used_commitment"]
    if kind in ("SavingsPlanNegation", "SavingsPlanUpfrontFee"):
        return 0.0
    if kind == "DiscountedUsage":
        return line["reservation_effective_cost"]
    if kind == "RIFee":
        return (
            line["reservation_unused_amortized_upfront_fee_for_billing_period"]
            + line["reservation_unused_recurring_fee"]
        )
    if kind == "Fee" and line["reservation_reservation_a_r_n"]:
        return 0.0
    return line["line_item_unblended_cost"]


def is_instance(line: Line) -> bool:
    kind = line["line_item_usage_type"].split("-")[-1].split(":")[0]
    return kind in ("BoxUsage", "SpotUsage") and line["line_item_line_item_type"] in (
        "Usage",
        "DiscountedUsage",
        "SavingsPlanCoveredUsage",
    )
