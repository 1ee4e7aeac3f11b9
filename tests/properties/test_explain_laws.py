"""Laws of explaining, for any bill and any runs: the lines behind a figure are the figure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from support.lab import Lab
from support.random_ledgers import MONTH, Stay, any_bill, any_stays, tracker

pytestmark = pytest.mark.slow

FEW = settings(max_examples=12, deadline=None, derandomize=True, database=None)
BASES = ("list_cost_usd", "effective_cost_usd", "billed_cost_usd")
# As the marts add: unknown as soon as a part is.
SUMS = ", ".join(f"case when count({base}) = count(*) then sum({base}) end" for base in BASES)
# What an hour of a Capacity Block is billed is unknown while its fee is.
KNOWN = "case when market <> 'capacity_block' or effective_cost_usd is not null then billed_cost_usd end"
# What distinguishes the rows of the daily mart, the invoices and the levels of an explanation.
KEY = (
    "usage_date, payer_account_id, account_id, invoice_id, billing_month, billing_currency, bucket, charge_category, "
    "service, accelerator_family, run_id, evidence"
)


@FEW
@given(any_bill, any_stays)
def test_the_lines_behind_a_run_sum_to_its_mart_row(bill: list[dict[str, str]], stays: list[Stay]) -> None:
    with Lab({MONTH: bill}, tracker(stays)) as made:
        runs = made.ask(f"select run_id, {', '.join(BASES)} from mart_run_cost where is_billed", "mart_run_cost")
        lines = made.ask(
            f"select run_id, {SUMS} from (select * replace ({KNOWN} as billed_cost_usd) from fct_ledger_line) as line "
            "where bucket = 'run' and evidence <> 'tag_only' group by run_id",
            "fct_ledger_line",
        )
        assert sorted(lines) == sorted(runs)


@FEW
@given(any_bill, any_stays)
def test_the_lines_behind_any_part_of_the_ledger_sum_to_it(bill: list[dict[str, str]], stays: list[Stay]) -> None:
    with Lab({MONTH: bill}, tracker(stays)) as made:
        summed = f"select {KEY}, sum(accelerator_hours), {SUMS} from {{}} group by all order by all"
        ledger = made.ask(summed.format("fct_ledger"), "fct_ledger")
        assert made.ask(summed.format("fct_ledger_line"), "fct_ledger_line") == ledger
        # No line is explained without the rule it counts by, and every delivered line is behind something.
        counts = made.ask(
            "select count(distinct source_row), "
            "count(*) filter (where share_rule is null or cost_rule_meaning is null) from fct_ledger_line",
            "fct_ledger_line",
        )
        assert counts == [(len(bill), 0)]
