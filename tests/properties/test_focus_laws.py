"""A month is worth the same whichever export delivers it: random bills as CUR 2.0 and FOCUS, through the real SQL."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.focus_exports import as_focus, focus_lines, normalized
from support.lab import LINE, Lab
from support.random_ledgers import MONTH, Stay, any_line, any_stays, tracker

from pipelines.ingest.billing.columns import CUR, FOCUS, ColumnList

pytestmark = pytest.mark.slow

FEW = settings(max_examples=12, deadline=None, derandomize=True, database=None)
Bill = list[dict[str, str]]
# A negation has the list cost 0 where FOCUS has no line at all, so what is unknown counts 0 here.
SUMS = "sum(effective_cost_usd), sum(billed_cost_usd), coalesce(sum(list_cost_usd), 0), sum(accelerator_hours)"
# What FOCUS has no word for: discount lines, lines of an unknown type, split cost rows.
WORDS = (
    "Usage", "DiscountedUsage", "SavingsPlanCoveredUsage", "SavingsPlanRecurringFee", "SavingsPlanUpfrontFee", "RIFee",
    "Fee", "Tax", "Credit", "Refund",
)  # fmt: skip
# Charges of the hours themselves, and what may be bought.
OF_BYTES = ("Usage", "Tax", "Credit", "Refund")
OF_A_BLOCK, OF_USAGE = ("Fee",), ("Usage", "DiscountedUsage", "SavingsPlanCoveredUsage")


@st.composite
def common_bills(draw: st.DrawFn) -> Bill:
    """Lines that both kinds of export can hold, covered usage with its negation, no net columns."""
    bill: Bill = []
    for line in draw(st.lists(any_line(), min_size=1, max_size=10)):
        kind, usage = line["line_item_line_item_type"], line["line_item_usage_type"]
        allowed = OF_A_BLOCK if "CapacityBlockFee" in usage else OF_USAGE if "Unused" in usage else WORDS
        # No commitment covers Spot (facts aws-billing 3.2), an hour of a Capacity Block, bytes sent or stored.
        is_block_hour = line["line_item_operation"].endswith(":CB") and "CapacityBlockFee" not in usage
        allowed = ("Usage",) if "Spot" in usage or is_block_hour else allowed
        allowed = OF_BYTES if any(word in usage for word in ("DataTransfer", "EBS:", "Requests")) else allowed
        plain = {name: value for name, value in line.items() if "_net_" not in name}
        plain["line_item_line_item_type"] = kind if kind in allowed else allowed[0]
        plain["line_item_operation"] = plain["line_item_operation"].replace("EKSPod-EC2", "RunInstances")
        if plain["line_item_line_item_type"] == "DiscountedUsage":
            # A reservation's hours are billed nothing (facts aws-billing 2.1).
            plain["line_item_unblended_cost"] = "0"
        bill.append(plain)
        if plain["line_item_line_item_type"] == "SavingsPlanCoveredUsage":
            cost = -Decimal(plain["line_item_unblended_cost"])
            negated = {"line_item_line_item_type": "SavingsPlanNegation", "line_item_unblended_cost": str(cost)}
            bill.append({**{k: v for k, v in plain.items() if k != "line_item_resource_id"}, **negated})
    return bill


def in_focus(bill: Bill) -> Bill:
    """The bill as FOCUS, under the normalized columns; a tag is no column of an export."""
    charges = []
    for line in bill:
        tag = {"tag_run_id": line.get("tag_run_id", "")}
        rate = {"pricing_term": "OnDemand", "product_region_code": "", "resource_tags": ""}
        charges += [{**focus, **tag} for focus in as_focus([{**LINE, **rate, **line}])]
    return normalized(focus_lines(charges, MONTH))


def costs(listed: ColumnList, bill: Bill, stays: Sequence[Stay]) -> tuple[list[tuple], list[tuple], list[tuple]]:
    """Every run's cost, each bucket's dollars, and each invoice: bill, ledger and difference."""
    with Lab({MONTH: bill}, tracker(stays), listed=listed) as made:
        runs = made.ask("select * from mart_run_cost order by run_id", "mart_run_cost")
        buckets = made.ask(
            "select bucket, payer_account_id, usage_date, coalesce(run_id, '') as run, coalesce(resource_id, ''),"
            f" market = 'spot', {SUMS} from fct_ledger group by all"
            # A line that is worth nothing may be in one export alone.
            " having sum(abs(effective_cost_usd) + abs(billed_cost_usd) + coalesce(abs(list_cost_usd), 0)) > 0"
            " order by all",
            "fct_ledger",
        )
        invoices = made.ask(
            "select payer_account_id, invoice_id, billed_cost_usd, ledger_cost_usd, effective_cost_usd, status"
            " from mart_invoice_reconciliation_monthly order by all",
            "mart_invoice_reconciliation_monthly",
        )
        return runs, buckets, invoices


@FEW
@given(common_bills(), any_stays)
def test_a_month_costs_the_same_in_either_export(bill: Bill, stays: list[Stay]) -> None:
    assert costs(FOCUS, in_focus(bill), stays) == costs(CUR, bill, stays)
