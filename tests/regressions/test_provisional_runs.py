"""Runs that a tag alone names (design 3.7): in the ledger's bucket `run` by `tag_only`, until their events arrive.

Each hour is a g5.xlarge (one A10G) at 1.006 USD, its public price.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.ledgers import EXPLAIN_TABLES, LazyBuilder, ask, lazy_warehouse, publish_tables

from pipelines.config.settings import load_settings
from pipelines.explain.lines import behind
from pipelines.explain.query import for_run
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import published_of

PRICE = Decimal("1.006")
LEDGER = "select bucket, run_id, evidence, team, effective_cost_usd from fct_ledger order by 1, 2"
FIGURE = "select figure_table, figure_key, before_cost_usd, after_cost_usd from detail_restated_figure"

TEAM = (
    "select team, run_cost_usd, idle_cost_usd, unattributed_cost_usd, effective_cost_usd, showback_cost_usd "
    "from mart_team_cost_monthly"
)
BUCKETS = "select dimension_value, {}_cost_usd from mart_cost_summary_monthly where dimension = 'bucket'"
_BUCKETS = ("run", "serving", "idle", "unattributed", "capacity_unused", "commitment_unused", "shared", "other")
NOTHING = dict.fromkeys(_BUCKETS, 0) | {"unattributed": PRICE}


def tagged(value: str, clock: int = 10, resource: str = "i-0a", team: str = "", **more: str) -> dict[str, str]:
    tags = f'{{"user_run_id": "{value}", "user_team": "{team}"}}'
    return instance_hour(f"2026-07-14T{clock:02d}", resource, "g5.xlarge", str(PRICE), resource_tags=tags, **more)


def config_of(
    root: Path, lines: Sequence[Mapping[str, str]], events: Sequence[Mapping[str, object]] = (), **more: str
) -> Path:
    billing = write_export(root, {"2026-07": lines}, **more)
    return write_config(root, billing=billing, runs=write_events(root / "runs", events))


def test_a_run_of_whole_days_lasts_to_the_end_of_its_last_one(tmp_path: Path) -> None:
    """An export by the day has no hours: of 14 and 15 July, the run that their tag names ended at midnight."""
    end = "line_item_usage_end_date"
    days = [tagged("exp-9", 0, **{"line_item_usage_amount": "24", end: "2026-07-15T00:00:00.000Z"})]
    days += [{**days[0], "line_item_usage_start_date": days[0][end], end: "2026-07-16T00:00:00.000Z"}]
    rows = ask(lazy_warehouse(config_of(tmp_path, days)), "select started_at, ended_at from detail_provisional_run")
    assert rows.rows() == [(datetime(2026, 7, 14), datetime(2026, 7, 16))]


def test_without_any_run_what_runs_used_or_left_idle_is_unknown(tmp_path: Path) -> None:
    """An hour that no run or tag names: its dollars are unattributed, and what runs cost is unknown, never zero."""
    builder = lazy_warehouse(config_of(tmp_path, [instance_hour("2026-07-14T10", "i-0c", "g5.xlarge", str(PRICE))]))
    assert ask(builder, TEAM).rows() == [("no team", None, None, PRICE, PRICE, PRICE)]
    assert dict(ask(builder, BUCKETS.format("effective")).rows()) == NOTHING | {"run": None, "idle": None}
    assert dict(ask(builder, BUCKETS.format("running_billed")).rows()) == NOTHING | {"run": None, "idle": None}
    groups = "select dimension_value, effective_cost_usd from mart_cost_summary_monthly where dimension like '{}'"
    found = dict(ask(builder, groups.format("bucket_group")).rows())
    assert found == {"run": None, "serving": 0, "unused": PRICE, "other": 0}
    assert ask(builder, groups.format("total")).rows() == [("all", PRICE)]


def test_what_a_run_used_is_unknown_while_no_run_is_on_the_bill(tmp_path: Path) -> None:
    """The run held a machine that is not on the bill: its cost is unknown, and so is what runs used and left idle."""
    lines = [instance_hour("2026-07-14T10", "i-0c", "g5.xlarge", str(PRICE))]
    events = one_attempt("r-1", ["i-0d"], "g5.xlarge", datetime(2026, 7, 14, 10), timedelta(hours=1))
    builder = lazy_warehouse(config_of(tmp_path, lines, events))
    assert ask(builder, TEAM).rows() == [("no team", None, None, PRICE, PRICE, PRICE)]
    assert dict(ask(builder, BUCKETS.format("effective")).rows()) == NOTHING | {"run": None, "idle": None}
    assert dict(ask(builder, BUCKETS.format("running_billed")).rows()) == NOTHING | {"run": None, "idle": None}


def test_a_run_that_only_a_tag_names_has_its_dollars_and_its_team(tmp_path: Path) -> None:
    """Two spellings of one run, a word for a use, and no tag: 2, 1 and 1 hours."""
    lines = [tagged("Tune-7", team="nlp"), tagged("tune-7 ", 11, team="nlp"), tagged("prod", resource="i-0b")]
    lines.append(instance_hour("2026-07-14T10", "i-0c", "g5.xlarge", str(PRICE)))
    builder = lazy_warehouse(config_of(tmp_path, lines))
    assert ask(builder, LEDGER).rows() == [
        *2 * [("run", "Tune-7", "tag_only", "nlp", PRICE)],
        *2 * [("unattributed", None, None, None, PRICE)],
    ]
    team = "select team, run_count, run_cost_usd, unattributed_cost_usd from mart_team_cost_monthly order by 1"
    assert ask(builder, team).rows() == [("nlp", 0, 2 * PRICE, 0), ("no team", 0, None, 2 * PRICE)]
    listed = (
        "select run_id, is_probably_run, accelerator_hours, effective_cost_usd, started_at, ended_at "
        "from detail_provisional_run order by 1"
    )
    assert ask(builder, listed).rows() == [
        ("Tune-7", True, 2, 2 * PRICE, datetime(2026, 7, 14, 10), datetime(2026, 7, 14, 12)),
        ("prod", False, 1, PRICE, datetime(2026, 7, 14, 10), datetime(2026, 7, 14, 11)),
    ]
    assert ask(builder, "select * from mart_run_cost").is_empty()
    assert ask(builder, "select * from mart_silicon_comparison").is_empty()


def test_the_policy_leaves_them_unattributed(tmp_path: Path) -> None:
    settings = load_settings(config_of(tmp_path, [tagged("Tune-7")]))
    policy = settings.policy.model_copy(update={"provisional_runs": False})
    builder = LazyBuilder(settings.model_copy(update={"policy": policy}))
    assert ask(builder, LEDGER).rows() == [("unattributed", None, None, None, PRICE)]
    assert ask(builder, "select * from detail_provisional_run").is_empty()
    missing = "select missing_evidence from mart_unattributed_cost_daily"
    assert ask(builder, missing).rows() == [("the tag names an unrecorded run: record its run events",)]


def test_a_value_in_use_across_two_months_without_a_gap_is_no_run(tmp_path: Path) -> None:
    """15 days to 30 June and 15 from 1 July are 30 days in a row, which no month alone has."""
    days = [datetime(2026, 6, 16, 10) + timedelta(days=n) for n in range(30)]
    months = {
        f"2026-{month:02d}": [
            instance_hour(f"{day:%Y-%m-%dT%H}", "i-0a", "g5.xlarge", "1", resource_tags='{"user_run_id": "web"}')
            for day in days
            if day.month == month
        ]
        for month in (6, 7)
    }
    export = write_export(tmp_path, months)
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    assert ask(builder, "select bucket, count(*) from fct_ledger group by 1").rows() == [("unattributed", 30)]
    why = "probably not a run: used on 30 days without a gap"
    assert ask(builder, "select missing_evidence from detail_provisional_run").rows() == [(why,)]
    assert ask(builder, "select distinct missing_evidence from mart_unattributed_cost_daily").rows() == [(why,)]


def test_events_that_arrive_restate_the_month_and_report_it(tmp_path: Path) -> None:
    """Two hours by tag; then the run's events name its machine for the first of them, and the second is idle.

    The bill is not delivered again. A third build moves nothing more.
    """
    lines = [tagged("Tune-7"), tagged("tune-7", 11)]
    tables = ("mart_restatement", "detail_restated_figure", "fct_figure_cost")
    builder = publish_tables(config_of(tmp_path, lines), tables)
    sql = "select delivery_no, moved_run_count, recorded_run_count, recorded_run_cost_usd from mart_restatement"
    assert ask(builder, sql).rows() == [(1, None, 0, 0)]
    events = one_attempt("tune-7", ["i-0a"], "g5.xlarge", datetime(2026, 7, 14, 10), timedelta(hours=1))
    for _ in range(2):
        builder = publish_tables(config_of(tmp_path, lines, events), tables)
        assert ask(builder, f"{FIGURE} where cost_basis = 'effective' order by 1, 2").rows() == [
            ("detail_provisional_run", "Tune-7", 2 * PRICE, 0),
            ("mart_cost_ledger_daily", "2026-07-14 idle", 0, PRICE),
            ("mart_cost_ledger_daily", "2026-07-14 run", 2 * PRICE, PRICE),
            ("mart_run_cost", "tune-7", 0, PRICE),
        ]
        assert ask(builder, sql).rows() == [(1, 2, 1, 2 * PRICE)]


def test_a_run_that_the_newest_delivery_brought_is_recorded_at_what_it_cost(tmp_path: Path) -> None:
    """The second delivery brings three tagged hours of two payers each; then the events of their runs name the machine
    for one or all of them.

    One run costs an hour where it cost three: it moved by two hours less. One costs what it did, and did not move.
    """
    tables = ("mart_restatement", "detail_restated_figure", "fct_figure_cost")
    lines, events = [], []
    for hours in (1, 3):
        own = {"resource": f"i-0{hours}", "bill_payer_account_id": f"{hours:012}"}
        lines += [tagged("", 9, **own), *(tagged(f"tune-{hours}", clock, **own) for clock in (10, 11, 12))]
        lasts = timedelta(hours=hours)
        events += one_attempt(f"tune-{hours}", [f"i-0{hours}"], "g5.xlarge", datetime(2026, 7, 14, 10), lasts)
    publish_tables(config_of(tmp_path, lines[::4]), tables)
    for recorded in ((), events):
        config = config_of(tmp_path, lines, recorded, execution="20260802T000000Z-second")
        builder = publish_tables(config, tables)
    sql = "recorded_run_cost_usd, most_moved_run_change_usd from mart_restatement where delivery_no = 2"
    rows = ask(builder, f"select {sql} order by payer_account_id").rows()
    assert rows == [(3 * PRICE, -2 * PRICE), (3 * PRICE, None)]


def test_a_run_whose_records_were_deleted_is_reported_with_its_dollars(tmp_path: Path) -> None:
    """Two runs of an hour each; then the events of one are gone, which later builds know until they are back."""
    lines = [tagged(""), tagged("", resource="i-0b")]
    runs = [
        one_attempt(name, [machine], "g5.xlarge", datetime(2026, 7, 14, 10), timedelta(hours=1))
        for name, machine in (("kept", "i-0a"), ("gone", "i-0b"))
    ]
    tables = ("detail_restated_figure", "fct_figure_cost")
    for events in ([*runs[0], *runs[1]], runs[0]):
        builder = publish_tables(config_of(tmp_path, lines, events), tables)
    (found,) = [check for check in builder.confirm("detail_restated_figure").checks if not check.passed]
    assert found.check == "published_run_no_longer_recorded"
    assert [(row["run_id"], Decimal(row["effective_cost_usd"])) for row in found.sample] == [("gone", PRICE)]


def test_a_published_run_whose_records_were_deleted_may_be_missing_until_they_are_back(tmp_path: Path) -> None:
    """Its events are there, gone for two builds, which read others each, and back."""
    lines = [tagged(""), tagged("", resource="i-0b"), tagged("", resource="i-0c")]
    kept, gone, later = (
        one_attempt(name, [machine], "g5.xlarge", datetime(2026, 7, 14, 10), timedelta(hours=1))
        for name, machine in (("kept", "i-0a"), ("gone", "i-0b"), ("later", "i-0c"))
    )
    missing = ("gone", "g5.xlarge", datetime(2026, 7, 14, 10), datetime(2026, 7, 14, 11))
    sql = "select run_id, instance_type, started_at, last_seen_at from stg_tracker__unread_run"
    all_runs = [*kept, *gone, *later]
    for events, expected in (([*kept, *gone], []), (kept, [missing]), ([*kept, *later], [missing]), (all_runs, [])):
        builder = publish_tables(config_of(tmp_path, lines, events), ("fct_run", "stg_tracker__unread_run"))
        assert ask(builder, sql).rows() == expected


def test_a_provisional_run_bears_the_fee_of_the_block_it_used(tmp_path: Path) -> None:
    """The story capacity_block_without_a_window with tags for its runs: 689.59 x 13,620 s / 69,420 s.

    Its README derives the window and the seconds. The other block, whose one hour has the whole fee, has no tag.
    """
    story = Path(__file__).parents[1] / "golden" / "capacity_block_without_a_window" / "bill_2026-10.csv"
    with story.open(encoding="utf-8", newline="") as file:
        lines = [{name: value for name, value in line.items() if value} for line in csv.DictReader(file)]
    for line in lines:
        if line["line_item_resource_id"] == "i-0t1":
            line["resource_tags"] = '{"user_run_id": "early"}'
    builder = lazy_warehouse(
        write_config(
            tmp_path, billing=write_export(tmp_path, {"2026-10": lines}), runs=write_events(tmp_path / "runs", [])
        )
    )
    rows = ask(builder, "select run_id, round(effective_cost_usd, 4) from detail_provisional_run").rows()
    assert rows == [("early", Decimal("135.2955"))]
    used = "select sum(effective_cost_usd) from fct_ledger where evidence = 'tag_only' and piece_kind = 'block_hour'"
    assert round(ask(builder, used).item(), 4) == Decimal("135.2955")
    assert ask(builder, "select sum(effective_cost_usd) from fct_ledger").item() == Decimal("1689.59")


def test_a_provisional_run_is_explained_by_its_lines(tmp_path: Path) -> None:
    """An instance-hour, and the price of a dedicated host, which no hour of an instance shares out."""
    host = tagged("Tune-7", resource="h-0a", line_item_usage_type="USW2-HostUsage:g5", line_item_operation="")
    config = config_of(tmp_path, [tagged("tune-7"), host])
    builder = publish_tables(config, EXPLAIN_TABLES)
    published = published_of(builder.warehouse)
    with open_marts(builder.warehouse, published) as marts:
        question = for_run(marts, "tune-7")
    with behind(builder.warehouse, published, question) as found:
        found.check()
        lines = [(row["evidence"], row["resource_id"], row["share_rule"]) for row in found.lines().to_dicts()]
    assert sorted(lines) == [
        ("tag_only", "h-0a", "whole line: a tag names an unrecorded run"),
        ("tag_only", "i-0a", "its tag names an unrecorded run: 3600 of 3600 accelerator-seconds"),
    ]
