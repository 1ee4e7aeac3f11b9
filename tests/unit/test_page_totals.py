"""Tables that pages read their totals from. Expected figures are added up by hand from the rows above each test."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.catalog import load_catalog
from pipelines.present.formats import exact_usd, span
from pipelines.present.render import templates


def made(model: str, mart: str, columns: str, values: str) -> DuckDBEngine:
    """An engine with `model` as `made`, over a mart of these rows; amounts as the mart types them."""
    engine = DuckDBEngine(threads=1)
    named = [part.split(":") for part in columns.split()]
    typed = ", ".join(f"cast({name} as {kind or 'varchar'}) as {name}" for name, kind in (*named,))
    names = ", ".join(name for name, _ in named)
    engine.view_sql(mart, f"select {typed} from (values {values}) as row({names})")
    # No fee of an open month lacks its use.
    none = "null as billing_month, null as payer_account_id, null as billing_currency, 0 as unallocated_fee_usd"
    engine.view_sql("fct_unallocated_fee_monthly", f"select {none} where false")
    # Each run is a job.
    counts = "1 as job_run_count, 0 as job_epoch_count, 0 as job_million_token_count"
    jobs = f"'' as run_id, '' as job_id, true as is_last_run, {counts}"
    engine.view_sql("detail_run_job", f"select {jobs} where false")
    engine.view_sql("made", load_catalog()[model].text)
    return engine


USD = "decimal(38,10)"
CAUSES = ("lost_work", "failed_run", "restart", "compile", "replay", "idle_hold")
RUNS = (
    f"run_id: unbilled_hours:{USD} unbilled_cost_usd:{USD} workload_id: epoch_unit: billing_currency: "
    f"accelerator_family: instance_type: model: status: "
    f"started_at:timestamp ended_at:timestamp "
    f"is_billed:boolean is_end_inferred:boolean accelerator_hours:{USD} epoch_completed_count:bigint "
    f"checkpoint_durable_count:bigint tokens_seen_count:{USD} list_cost_usd:{USD} "
    f"effective_cost_usd:{USD} billed_cost_usd:{USD} "
    f"estimated_cost_usd:{USD} wasted_cost_usd:{USD} cost_to_target_usd:{USD} "
    f"target_metric: list_cost_to_target_usd:{USD} billed_cost_to_target_usd:{USD} cost_to_held_target_usd:{USD} "
    f"target_duration_ms:bigint "
) + " ".join(f"{cause}_cost_usd:{USD}" for cause in CAUSES)
AT = "'2026-07-01 10:00', '2026-07-02 10:00'"
NONE = ", ".join(["null"] * 6)
ROWS = f"""
    ('a', null, null, 'w', 'dataset_pass', 'USD', 'gpu', 'p5', 'm', 'completed', {AT},
        true, false, 8, 2, 1, 5e6, 120, 100, 90, 0, 0, 80,
        'acc', 96, 72, 90, 1, 0, 0, 0, 0, 0, 0),
    ('b', null, null, 'w', 'dataset_pass', 'USD', 'gpu', 'p5', 'm', 'failed', {AT},
        true, true, 4, 0, 0, null, null, 50, 50, 5, 50, null,
        'acc', null, null, null, null, 10, 40, 0, 0, 0, 0),
    ('c', null, null, 'w', 'dataset_pass', 'USD', 'trainium', 'trn1', 'm', 'completed', {AT},
        true, false, 16, 3, 3, 5e6, 70, 60, 60, 0, 6, 60,
        'acc', 70, 60, null, 1, 0, 0, 0, 6, 0, 0),
    ('d', null, null, 'w', 'dataset_pass', null, 'gpu', 'p5', 'm', 'running', {AT},
        false, true, 0, 0, 0, null, null, null, null, null, null, null,
        'acc', null, null, null, null, {NONE})
"""


def test_the_cost_of_a_workload_counts_failed_runs_and_knows_what_it_lacks() -> None:
    """p5: 100 + 50 over 2 epochs is 75 each; the failed run has no tokens and no list price, so neither has their sum.

    Per run that reached its target: 80 and the whole 50, over 1; held 90 and 50, billed 72 and 50.
    The workload: 150 + 60 = 210 in 3 runs.
    """
    with made("detail_workload_cost", "fct_run", RUNS, ROWS) as engine:
        rows = engine.query(
            "select instance_type, run_count, completed_run_count, effective_cost_usd, list_cost_usd, "
            "cost_per_epoch_usd, "
            "cost_per_million_tokens_usd, cost_per_reached_target_usd, workload_run_count, "
            "workload_effective_cost_usd, censored_run_count, censored_cost_usd, billed_cost_per_reached_target_usd, "
            "list_cost_per_reached_target_usd, cost_per_held_target_usd "
            "from made order by 1"
        ).rows()
    assert rows == [
        ("p5", 2, 1, 150, None, 75, None, 130, 3, 210, 1, 50, 122, None, 140),
        ("trn1", 1, 1, 60, 70, 20, 12, 60, 3, 210, 0, 0, 60, 70, None),
    ]


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0E-10", "$0.00"),
        ("-0.0031500000", "−$0.00315"),
        ("0.0000000224", "$0.0000000224"),
        ("12.3000000000", "$12.30"),
        ("1200", "$1,200.00"),
    ],
)
def test_a_difference_is_exact(amount: str, shown: str) -> None:
    """Next to amounts that are equal in cents, less than a cent would be no figure."""
    assert exact_usd(Decimal(amount), "USD") == shown


def test_runs_are_counted_over_currencies_and_their_money_is_not_added() -> None:
    """Four runs, one on no bill; in USD three, of 210, of which 56 wasted: 56 / 210 = 0.266667."""
    with made("detail_run_summary", "mart_run_cost", RUNS, ROWS) as engine:
        rows = engine.query(
            "select billing_currency, run_count, billed_run_count, unbilled_run_count, "
            "inferred_end_run_count, completed_run_count, "
            "effective_cost_usd, estimated_cost_usd, wasted_cost_usd, wasted_ratio from made where dimension = 'total' "
            "order by billing_currency nulls first"
        ).rows()
        by_family = engine.query(
            "select dimension_value, run_count, completed_run_count from made "
            "where dimension = 'accelerator_family' and billing_currency is null order by 1"
        ).rows()
    assert rows == [
        (None, 4, 3, 1, 2, 2, None, None, None, None),
        ("USD", 3, 3, 0, 1, 2, 210, 5, 56, Decimal("0.266667")),
    ]
    assert by_family == [("gpu", 3, 1), ("trainium", 1, 1)]


def test_waste_is_summed_by_cause() -> None:
    """The failed run lost 10 of work and 40 more, the one on trn1 compiled for 6: of 210 in all.

    10 / 210 = 0.047619, 40 / 210 = 0.190476, 6 / 210 = 0.028571.
    """
    with made("detail_run_summary", "mart_run_cost", RUNS, ROWS) as engine:
        rows = engine.query(
            "select dimension_value, run_count, wasted_cost_usd, wasted_ratio from made "
            "where dimension = 'waste_cause' and wasted_cost_usd <> 0 order by 1"
        ).rows()
    assert rows == [
        ("compile", 1, 6, Decimal("0.028571")),
        ("failed_run", 1, 40, Decimal("0.190476")),
        ("lost_work", 1, 10, Decimal("0.047619")),
    ]


def test_of_runs_that_are_billed_in_part_no_share_is_wasted() -> None:
    """The bill lacks 4 hours of the failed run, about 25: at least 56 are wasted, at least 40 by the failure."""
    with made("detail_run_summary", "mart_run_cost", RUNS, ROWS.replace("'b', null, null", "'b', 4, 25")) as engine:
        rows = engine.query(
            "select dimension_value, unbilled_hours, unbilled_cost_usd, effective_cost_usd, wasted_cost_usd, "
            "wasted_ratio from made where billing_currency = 'USD' "
            "and dimension_value in ('all', 'failed_run', 'trainium') order by 1"
        ).rows()
    assert rows == [
        ("all", 4, 25, 210, 56, None),
        ("failed_run", 4, 25, None, 40, None),
        ("trainium", None, None, 60, 6, Decimal("0.1")),
    ]


@pytest.mark.parametrize(
    ("statuses", "effective", "expected"),
    [
        (("reconciled", "reconciled"), 10, ("reconciled", "reconciled", 0)),
        (("reconciled", "open"), 10, ("reconciled", "open", 0)),
        (("unreconciled", "open"), 10, ("unreconciled", "unreconciled", None)),
        (("reconciled", "open"), "null", ("incomplete", "open", 0)),
    ],
)
def test_a_month_has_the_worst_status_of_its_payers(
    statuses: tuple[str, str], effective: object, expected: tuple
) -> None:
    """A cent of fees without use is rounding; of an invoice that is not closed nothing is known yet, nor is it counted.

    Where a line's effective cost is unknown, the month's is incomplete.
    """
    columns = (
        f"billing_month:date payer_account_id: currency: status: invoice_id: invoice_status: billed_cost_usd:{USD} "
        f"ledger_cost_usd:{USD} difference_usd:{USD} "
        f"commitment_timing_usd:{USD} effective_cost_usd:{USD} newest_usage_at:timestamp"
    )
    rows = ", ".join(
        f"('2026-07-01', '{payer}', 'USD', '{status}', '{'' if status == 'open' else payer}', 'not read', 10, 10, 0, "
        f"0.01, {effective}, '2026-07-31')"
        for payer, status in enumerate(statuses)
    )
    with made("detail_billing_month", "mart_invoice_reconciliation_monthly", columns, rows) as engine:
        found = engine.query(
            "select status, month_status, unallocated_fee_usd from made where payer_account_id = '0'"
        ).row(0)
        assert [
            row["invoice_count"] for row in engine.rows("select invoice_count from made order by payer_account_id")
        ] == [int(status != "open") for status in statuses]
    assert found == expected


@pytest.mark.parametrize(("fee", "expected"), [(Decimal("12.00"), " by $12"), (Decimal(0), ""), (None, "")])
def test_an_incomplete_month_names_the_fees_it_lacks(fee: Decimal | None, expected: str) -> None:
    """A month is incomplete too where the cost of a line is unknown and no fee is missing: there is no amount then."""
    row = {"status": "incomplete", "unallocated_fee_usd": fee, "currency": "USD"}
    stamp: Any = templates("app").globals["month_stamp"]
    assert f"effective cost incomplete{expected}</span>" in stamp(row)


def test_resources_without_a_run_stand_next_to_all_that_lack_the_same() -> None:
    """i-1 over two days: 10 + 20 = 30; i-1 and i-2 lack a run event: 30 + 5 = 35. In August i-1 alone cost 7."""
    columns = (
        f"usage_date:date billing_currency: account_id: region_id: resource_id: instance_type: "
        f"accelerator_family: tagged_run_id: "
        f"tagged_owner: tagged_team: likely_team: missing_evidence: accelerator_hours:{USD} list_cost_usd:{USD} "
        f"effective_cost_usd:{USD} billed_cost_usd:{USD}"
    )
    fixed = "'USD', '1', 'us-east-1', '{}', 'p5', 'gpu', null, null, null, null, '{}', 8, 12"
    rows = ", ".join(
        f"('2026-{day}', {fixed.format(resource, reason)}, {cost}, {cost})"
        for day, resource, reason, cost in (
            ("07-01", "i-1", "no event", 10),
            ("07-02", "i-1", "no event", 20),
            ("07-02", "i-2", "no event", 5),
            ("07-02", "i-3", "no tag", 1),
            ("08-01", "i-1", "no event", 7),
        )
    )
    with made("detail_unattributed_resource", "mart_unattributed_cost_daily", columns, rows) as engine:
        found = engine.query(
            "select strftime(usage_month, '%m'), resource_id, effective_cost_usd, reason_resource_count, "
            "reason_effective_cost_usd from made order by 1 nulls last, 2"
        ).rows()
    assert found == [
        ("07", "i-1", 30, 2, 35),
        ("07", "i-2", 5, 2, 35),
        ("07", "i-3", 1, 1, 1),
        ("08", "i-1", 7, 1, 7),
        (None, "i-1", 37, 2, 42),
        (None, "i-2", 5, 2, 42),
        (None, "i-3", 1, 1, 1),
    ]


FIGURES = "effective_cost_usd, spelling_count, longest_use_day_count, is_probably_run"


def provisional(*spends: str, is_on: bool = True, shown: str = FIGURES) -> list[tuple]:
    """The provisional runs of unattributed hours, 10.00 each: tag, first day of July and how many days in a row.

    The one recorded run ran on 1 July.
    """
    engine = DuckDBEngine(threads=1)
    rows = " union all ".join(
        f"select '{tag}' as tag_run_id, 'i-0' as resource_id, unnest(generate_series(timestamp '2026-07-{first} "
        f"10:00', timestamp '2026-07-{first} 10:00' + interval {int(days) - 1} day, interval 1 day)) as hour_started_at"
        for tag, first, days in (spend.split("|") for spend in spends)
    )
    engine.view_sql(
        "fct_ledger_piece",
        "select *, '2026-07' as billing_period, 'USD' as billing_currency, 'unattributed' as bucket, "
        "cast(hour_started_at as date) as usage_date, "
        "'p5.48xlarge' as instance_type, 'gpu' as accelerator_family, cast(null as varchar) as tag_owner, "
        "cast(null as varchar) as tag_team, "
        f"cast(8 as {USD}) as accelerator_hours, cast(12 as {USD}) as list_cost_usd, cast(10 as {USD}) as "
        f"effective_cost_usd, cast(10 as {USD}) as billed_cost_usd from ({rows}) as spend",
    )
    engine.view_sql(
        "fct_charge",
        "select *, '' as line_class, 1 as usage_quantity, 8 as accelerator_count, hour_started_at as usage_started_at "
        "from fct_ledger_piece",
    )
    engine.view_sql("fct_resource_share_hourly", "select * from fct_ledger_piece where 1 = 0")
    ran = "timestamp '2026-07-01' as started_at, timestamp '2026-07-02' as ended_at"
    engine.view_sql("dim_run", f"select 'recorded' as run_id, {ran}")
    engine.view_sql("policy", f"select {is_on} as has_provisional_runs")
    engine.view_sql("dim_provisional_run", load_catalog()["dim_provisional_run"].text)
    # As fct_ledger has it.
    engine.view_sql(
        "fct_ledger",
        "select piece.* exclude (bucket), tag_team as team, if(is_provisional, 'run', 'unattributed') as bucket, "
        "if(is_provisional, 'tag_only', null) as evidence "
        "from fct_ledger_piece as piece left join dim_provisional_run as named on run_key = lower(trim(tag_run_id))",
    )
    engine.view_sql("made", load_catalog()["detail_provisional_run"].text)
    with engine:
        return engine.query(f"select run_id, {shown} from made order by 1").rows()


def test_spellings_of_a_tag_are_one_provisional_run() -> None:
    """Two hours as tune-7, one each as TUNE-7 and with a space: 40.00, named as it was written most."""
    assert provisional("tune-7|01|2", "TUNE-7|05|1", " tune-7|06|1", "other|01|1") == [
        ("other", 10, 1, 1, True),
        ("tune-7", 40, 3, 2, True),
    ]


def test_words_for_a_use_and_use_without_a_gap_are_probably_no_run() -> None:
    """30 days in a row are no run; 29, a gap and 2 more are. `Prod` is a kind of use."""
    assert provisional("web|01|30", "long|01|29", "long|31|2", "Prod|01|1") == [
        ("Prod", 10, 1, 1, False),
        ("long", 310, 1, 29, True),
        ("web", 300, 1, 30, False),
    ]


def test_a_misspelled_run_is_one_of_the_same_week() -> None:
    named = provisional("recordet|09|1", "recordef|10|1", shown="missing_evidence")
    assert named == [
        ("recordef", "the tag names an unrecorded run: record its run events"),
        ("recordet", "the tag names an unrecorded run: is it recorded? Else record its run events"),
    ]


def test_a_recorded_run_is_not_provisional_and_a_policy_turns_them_off() -> None:
    assert provisional("RECORDED|01|1") == []
    assert provisional("tune-7|01|2", is_on=False) == []


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        (datetime(2026, 6, 5), datetime(2026, 6, 6), "5 Jun 2026"),
        (datetime(2026, 6, 30, 10), datetime(2026, 7, 2), "30 Jun – 1 Jul 2026"),
        (datetime(2026, 6, 5, 10), datetime(2026, 6, 6, 0, 1), "5–6 Jun 2026"),
        (datetime(2026, 6, 5), datetime(2026, 6, 5), "5 Jun 2026"),
        (date(2026, 6, 5), date(2026, 6, 6), "5–6 Jun 2026"),
    ],
)
def test_a_time_that_ends_at_midnight_ends_the_day_before(first: date, last: date, shown: str) -> None:
    assert span([first, last]) == shown
