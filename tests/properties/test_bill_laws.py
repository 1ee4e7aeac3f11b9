"""Laws of a bill that is whole (facts aws-billing 2.4); for any at all, the way from effective to billed cost."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab import Lab
from support.random_ledgers import MONTH, any_bill, any_stays, tracker
from support.whole_bills import CONVENTIONS, Line, total, whole_bill

pytestmark = pytest.mark.slow

FEW = settings(max_examples=8, deadline=None, derandomize=True, database=None)
CENT = Decimal("0.01")
WAY = (
    "effective_cost_usd", "upfront_fee_usd", "amortized_upfront_usd", "commitment_timing_usd", "netted_discount_usd",
    "discount_usd", "credit_usd", "neutralised_refund_usd",
)  # fmt: skip


def queried(bill: list[Line], sql: str, table: str) -> list[tuple]:
    with Lab({MONTH: bill}, {}) as made:
        return made.ask(sql, table)


def identities(bill: list[Line]) -> dict[int, tuple]:
    wanted = "select identity, status, left_usd, right_usd, discount_convention from detail_bill_identity_monthly"
    return {number: tuple(rest) for number, *rest in queried(bill, wanted, "detail_bill_identity_monthly")}


@pytest.mark.parametrize("convention", CONVENTIONS)
@FEW
@given(data=st.data())
def test_a_whole_bill_keeps_its_identities(convention: str, data: st.DataObject) -> None:
    bill = data.draw(whole_bill(convention))
    found = identities(bill)
    assert {status for status, *_ in found.values()} <= {"holds", "not applicable"}
    # The left sides, added up by Decimal alone.
    assert found[1][1] in (None, total(bill, "line_item_unblended_cost"))
    if convention == "none":
        assert found[4][0] == "not applicable"
    else:
        net = total(bill, "line_item_net_unblended_cost", lambda charge: not charge.endswith("Discount"))
        assert found[4][:2] == ("holds", net)
        moved = abs(net - total(bill, "line_item_unblended_cost"))
        assert found[4][3] == (convention if moved > CENT else "rows")


@FEW
@given(bill=whole_bill("rows"), short=st.integers(2, 10_000).map(lambda cents: Decimal(cents) / 100))
def test_a_discount_row_that_is_not_in_the_net_values_is_found(bill: list[Line], short: Decimal) -> None:
    row = next(line for line in bill if line["line_item_line_item_type"] == "SppDiscount")
    row["line_item_unblended_cost"] = str(Decimal(row["line_item_unblended_cost"]) - short)
    assert identities(bill)[4][0] == "differs"


@FEW
@given(bill=whole_bill("none"), more=st.integers(2, 10_000).map(lambda cents: Decimal(cents) / 100))
def test_a_commitment_that_costs_more_than_it_was_billed_at_is_found(bill: list[Line], more: Decimal) -> None:
    """An hour's unused commitment counted a little too high breaks identity 1, and of the other plans nothing else."""
    fees = [line for line in bill if line["line_item_line_item_type"] in ("SavingsPlanRecurringFee", "RIFee")]
    if not fees:
        assert identities(bill)[1][0] in ("holds", "not applicable")
        return
    column = next(name for name in ("savings_plan_total_commitment_to_date", "reservation_unused_recurring_fee")
                  if name in fees[0])  # fmt: skip
    fees[0][column] = str(Decimal(fees[0][column]) + more)
    found = identities(bill)
    assert (found[1][0], found[3][0]) in (("differs", "holds"), ("differs", "not applicable"))


@FEW
@given(any_bill, any_stays)
def test_effective_leads_to_billed_cost_exactly(bill: list[Line], stays: list) -> None:
    """For any bill, whole or not: every column of the way is counted, and nothing else is needed.

    An invoice with a line of unknown effective cost has none, and no way from it.
    """
    is_unknown = "select payer_account_id from stg_aws__line_item where effective_cost_usd is null"
    sql = (
        f"select billed_cost_usd, {' + '.join(WAY)} as arrived, payer_account_id in ({is_unknown})"
        " from mart_invoice_reconciliation_monthly"
    )
    with Lab({MONTH: bill}, tracker(stays)) as made:
        rows = made.ask(sql, "mart_invoice_reconciliation_monthly", "stg_aws__line_item")
    assert rows
    assert all(arrived == billed or (arrived is None and is_unknown) for billed, arrived, is_unknown in rows)


@FEW
@given(data=st.data())
def test_discounts_are_taken_once_whatever_the_convention(data: st.DataObject) -> None:
    """The same purchases, their discounts in rows or in line: one effective cost, the credits aside."""
    seed = data.draw(whole_bill("rows"))
    in_line = [dict(line) for line in seed if not line["line_item_line_item_type"].endswith("Discount")]
    sql = "select sum(effective_cost_usd) from fct_ledger"
    assert queried(in_line, sql, "fct_ledger") == queried(seed, sql, "fct_ledger")
