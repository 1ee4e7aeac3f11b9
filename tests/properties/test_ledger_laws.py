"""Laws of the ledger, for any bill and any runs, through the real SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab import LINE, Lab
from support.ledger_law import BASES, LINES_THAT_DO_NOT_SUM
from support.random_ledgers import MONTH, Stay, any_bill, any_stays, shared_machine, split, tracker

pytestmark = pytest.mark.slow

# The same examples on every machine; each runs a dozen models.
FEW = settings(max_examples=15, deadline=None, derandomize=True, database=None)
Bill = list[dict[str, str]]


def lab(bill: Bill, stays: Sequence[Stay]) -> Lab:
    return Lab({MONTH: bill}, tracker(stays))


@FEW
@given(any_bill, any_stays)
def test_cost_is_conserved_line_by_line_and_invoice_by_invoice(bill: Bill, stays: list[Stay]) -> None:
    with lab(bill, stays) as made:
        pieces = ("fct_charge", "fct_ledger")
        assert made.ask(LINES_THAT_DO_NOT_SUM, *pieces) == []
        ledger = made.ask("select payer_account_id, sum(billed_cost_usd) from fct_ledger group by 1", "fct_ledger")
        assert dict(ledger) == billed(bill)
        basis = "coalesce(sum(effective_cost_usd), 0), count(*) filter (where bucket is null)"
        cost = "coalesce(sum(effective_cost_usd), 0), 0"
        lines = made.ask(f"select {cost} from stg_aws__line_item", "stg_aws__line_item")
        assert made.ask(f"select {basis} from fct_ledger", "fct_ledger") == lines
        # What has a list price is summed by itself, whatever stands next to it.
        daily = made.ask("select sum(list_cost_usd) from mart_cost_ledger_daily", "mart_cost_ledger_daily")
        assert daily == made.ask("select sum(list_cost_usd) from stg_aws__line_item", "stg_aws__line_item")


@FEW
@given(any_bill, any_stays)
def test_every_accelerator_dollar_is_explained_or_listed_as_unattributed(bill: Bill, stays: list[Stay]) -> None:
    with lab(bill, stays) as made:
        mart = "mart_unattributed_cost_daily"
        lines = "stg_aws__line_item where accelerator_family <> 'none'"
        pieces = "fct_ledger where accelerator_family <> 'none'"
        [(unknown,)] = made.ask(f"select count(*) from {pieces} and effective_cost_usd is null", "fct_ledger")
        # A row of the mart with a part of unknown effective cost has none; its billed cost is always known.
        basis = "billed" if unknown else "effective"
        dollars = f"select coalesce(sum({basis}_cost_usd), 0) from"
        [(whole,)] = made.ask(f"{dollars} {lines}", "stg_aws__line_item")
        [(explained,)] = made.ask(
            f"{dollars} {pieces} and bucket <> 'unattributed'",
            "fct_ledger",
        )
        assert made.ask(f"{dollars} {mart} where accelerator_family <> 'none'", mart) == [(whole - explained,)]


def billed(bill: Bill) -> dict[str, Decimal]:
    """Invoiced USD by payer, added up by Decimal alone."""
    total: dict[str, Decimal] = defaultdict(Decimal)
    offset: dict[str, Decimal] = defaultdict(Decimal)
    for line in bill:
        full = {**LINE, **line}
        cost = Decimal(full["line_item_unblended_cost"])
        total[full["bill_payer_account_id"]] += cost
        if full["line_item_line_item_type"] in ("SavingsPlanCoveredUsage", "SavingsPlanNegation"):
            offset[full["bill_payer_account_id"]] += cost
    # Where a plan's usage and its negation cancel to under half a cent, both count nothing.
    cancelled = {payer for payer, cost in offset.items() if abs(cost) < Decimal("0.005")}
    return {payer: amount - (offset[payer] if payer in cancelled else 0) for payer, amount in total.items()}


@FEW
@given(shared_machine())
def test_runs_within_capacity_leave_no_negative_idle_and_lose_no_hour(shared: tuple[Bill, list[Stay]]) -> None:
    bill, stays = shared
    with lab(bill, stays) as made:
        share = "select * from fct_resource_share_hourly where upper_units < lower_units or is_fitted"
        assert made.ask(share, "fct_resource_share_hourly") == []
        lost = made.ask(
            "select line.source_row from fct_charge as line left join ("
            "select source_row, sum(accelerator_hours) as hours from fct_ledger_piece "
            "where piece_kind = 'instance_hour' group by 1) as piece "
            "using (source_row) where line.line_class = 'instance' "
            "and piece.hours is distinct from line.usage_quantity * line.accelerator_count",
            "fct_charge",
            "fct_ledger_piece",
        )
        assert lost == []


@FEW
@given(shared_machine(), st.data())
def test_splitting_a_stay_changes_no_total(shared: tuple[Bill, list[Stay]], data: st.DataObject) -> None:
    bill, stays = shared
    chosen = data.draw(st.sampled_from(stays))
    halves = split(chosen, data.draw(st.integers(chosen.started_ms + 1, chosen.ended_ms - 1)))
    whole = totals(bill, stays)
    assert totals(bill, [stay for stay in stays if stay is not chosen] + halves) == whole


def totals(bill: Bill, stays: Sequence[Stay]) -> list[tuple]:
    sums = ", ".join(f"sum({name})" for name in ("accelerator_hours", *BASES))
    grouped = f"select bucket, run_id, {sums} from fct_ledger group by 1, 2 order by 1, 2"
    with lab(bill, stays) as made:
        return made.ask(grouped, "fct_ledger")


@FEW
@given(any_bill, any_stays, st.randoms(use_true_random=False))
def test_order_of_lines_does_not_matter(bill: Bill, stays: list[Stay], random) -> None:
    shuffled = random.sample(bill, len(bill))
    assert ledger(shuffled, stays) == ledger(bill, stays)


def ledger(bill: Bill, stays: Sequence[Stay]) -> list[tuple]:
    with lab(bill, stays) as made:
        by = "usage_date, bucket, run_id, attempt_no, evidence, resource_id, instance_type, tag_owner, tag_team"
        sums = ", ".join(f"sum({name})" for name in ("accelerator_hours", *BASES))
        return made.ask(f"select {by}, {sums} from fct_ledger group by all order by all", "fct_ledger")


@FEW
@given(any_bill, any_stays)
def test_a_bill_in_another_currency_changes_nothing_of_this_one(bill: Bill, stays: list[Stay]) -> None:
    """The same lines again in krone, on other machines of another account: every dollar stays where it was."""
    elsewhere = {"line_item_currency_code": "NOK", "line_item_usage_account_id": "000077778888"}
    named = ("line_item_resource_id", "reservation_reservation_a_r_n", "capacity_reservation_capacity_reservation_arn")
    krone = [
        {**line, **elsewhere, "source_row": f"{10_000 + number}"}
        | {name: f"{line[name]}f" for name in named if line.get(name)}
        for number, line in enumerate(bill)
    ]
    alone = totals_in("USD", bill, stays)
    assert totals_in("USD", bill + krone, stays) == alone
    assert totals_in("NOK", bill + krone, []) == totals_in("USD", bill, [])


def totals_in(currency: str, bill: Bill, stays: Sequence[Stay]) -> list[tuple]:
    sums = ", ".join(f"sum({name})" for name in ("accelerator_hours", *BASES))
    grouped = f"select payer_account_id, bucket, run_id, {sums} from fct_ledger "
    with lab(bill, stays) as made:
        return made.ask(
            f"{grouped} where billing_currency = '{currency}' group by 1, 2, 3 order by 1, 2, 3", "fct_ledger"
        )
