"""Tags: one key in every spelling an export has for it, and what stands in where a resource has none."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.cur_exports import (
    CUR2_LINE,
    LEGACY_LINE,
    bill,
    csv_text,
    cur2_export,
    legacy_export,
    packed,
    parquet,
    stored,
)
from support.ledgers import LazyBuilder, ask, lazy_warehouse

from pipelines.config.settings import load_settings
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.ingest.billing.select import raw_select
from pipelines.ingest.billing.tags import bare

TAGS = {"run_id": ("run_id",), "owner": ("owner",), "team": ("team",)}
TEAM = "select tag_team from aws_cur_line_item order by source_row"


def cur2(tmp_path: Path, *lines: dict) -> list[RawDelivery]:
    return stored(cur2_export(tmp_path, {"a.parquet": parquet([CUR2_LINE | line for line in lines])}), tmp_path / "raw")


@pytest.mark.parametrize(
    ("key", "plain"),
    [
        ("resourceTags/user:kubernetes.io/cluster.name", "kubernetesioclustername"),
        ("user:example.com/team", "examplecomteam"),
        ("user_team_v1.2", "teamv12"),
        ("resourceTags/équipe", "équipe"),
        ("user:e\u0301quipe", "équipe"),
        ("user:ＴＥＡＭ", "team"),
        (" team", "team"),
        ("accountTag/Team", "team"),
        ("costCategory/Team", "team"),
        ("aws:createdBy", "awscreatedby"),
        ("user_name", "name"),
    ],
)
def test_keys_with_dots_slashes_unicode_and_prefixes_are_one_key(key: str, plain: str) -> None:
    """T20. Expected: the prefix of facts 1.3 off, letters and digits of any script kept, one form of each letter."""
    assert bare(key) == plain


def test_case_twins_of_a_key_are_both_read_and_reported(tmp_path: Path) -> None:
    """T20. Two spellings on one line: the first filled one counts, and the file and both keys are named."""
    raws = cur2(tmp_path, {"resource_tags": {"user_team": "nlp", "user_Team": "vision"}})
    (team,) = bill(raws, TEAM, TAGS)[0]
    assert team in ("nlp", "vision")
    (warning,) = raw_select(raws, TAGS).warnings
    assert "a.parquet" in warning and "user_team" in warning and "user_Team" in warning


def test_empty_null_and_missing_tags_are_all_untagged(tmp_path: Path) -> None:
    """T20. Facts 1.3: empty map, NULL map and missing key must all mean untagged; so must none, or a team of spaces."""
    maps = ({"user_team": "nlp"}, {}, None, {"user_other": "x"}, {"user_team": ""}, {"user_team": "  "})
    raws = cur2(tmp_path, *({"resource_tags": tags} for tags in maps))
    assert bill(raws, TEAM, TAGS) == [("nlp",), *[(None,)] * 5]


def test_account_tag_and_cost_category_stand_in_for_a_missing_resource_tag(tmp_path: Path) -> None:
    """T20. The resource's own tag wins, then its account's, then the cost category; line by line."""
    raws = cur2(
        tmp_path,
        {"tags": {"resourceTags/team": "own", "accountTag/Team": "account"}, "cost_category": {"Team": "category"}},
        {"tags": {"accountTag/Team": "account"}, "cost_category": {"Team": "category"}},
        {"tags": {}, "cost_category": {"Team": "category"}},
        {"tags": {}, "cost_category": {}},
    )
    assert bill(raws, TEAM, TAGS) == [("own",), ("account",), ("category",), (None,)]
    assert raw_select(raws, TAGS).warnings == ()


def test_a_cost_category_of_a_legacy_report_is_found_in_its_own_column(tmp_path: Path) -> None:
    """T20. Facts 1.1: a legacy header is category/name, so `costCategory/Team`."""
    lines = [LEGACY_LINE | {"costCategory/Team": "nlp", "resourceTags/user:team": own} for own in ("", "own")]
    raws = stored(legacy_export(tmp_path, {"a.csv.gz": packed(csv_text(lines))}), tmp_path / "raw")
    assert bill(raws, TEAM, TAGS) == [("nlp",), ("own",)]


def test_an_account_never_names_one_run_unless_configured(tmp_path: Path) -> None:
    """T20. An account holds many runs; a key written with its origin is taken at its word."""
    raws = cur2(tmp_path, {"tags": {"accountTag/run_id": "r-1"}})
    run = "select tag_run_id from aws_cur_line_item"
    assert bill(raws, run, TAGS) == [(None,)]
    assert bill(raws, run, TAGS | {"run_id": ("run_id", "accountTag/run_id")}) == [("r-1",)]


def test_a_run_that_only_its_account_or_category_names_is_an_estimate(tmp_path: Path) -> None:
    """T20. The last thing that joins (facts 1.13): one hour at 1.006, all of the run's, and `tag` on its piece."""
    named = {
        "account": {"tags": '{"accountTag/run_id": "account"}'},
        "category": {"cost_category": '{"run_id": "category"}'},
    }
    hours = [instance_hour("2026-07-10T10", f"i-{run}", "g5.xlarge", "1.006", **line) for run, line in named.items()]
    began, lasts = datetime(2026, 7, 10, 10), timedelta(hours=1)
    events = [event for run in named for event in one_attempt(run, (), "g5.xlarge", began, lasts)]
    export, runs = write_export(tmp_path, {"2026-07": hours}), write_events(tmp_path / "runs", events)
    made = load_settings(write_config(tmp_path, billing=export, runs=runs))
    keys = {"run_id": ("run_id", "accountTag/run_id", "costCategory/run_id")}
    builder = LazyBuilder(made.model_copy(update={"tags": keys}))
    piece = "select run_id, evidence, effective_cost_usd from fct_ledger_piece where piece_kind = 'instance_hour'"
    assert ask(builder, f"{piece} order by 1").rows() == [(run, "tag", Decimal("1.006")) for run in named]
    estimated = "select run_id, estimated_cost_usd from mart_run_cost order by 1"
    assert ask(builder, estimated).rows() == [(run, Decimal("1.006")) for run in named]


def test_an_account_that_moves_team_mid_month_keeps_the_days_team(tmp_path: Path) -> None:
    """T24. Two hours at 1.006 USD, one on the 10th under team nlp, one on the 20th under team vision."""
    lines = [
        instance_hour(f"2026-07-{day}T10", "i-0moved", "g5.xlarge", "1.006", tags=f'{{"accountTag/team": "{team}"}}')
        for day, team in ((10, "nlp"), (20, "vision"))
    ]
    export = write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    rows = ask(
        builder, "select usage_date, tagged_team, effective_cost_usd from mart_unattributed_cost_daily order by 1"
    ).rows()
    assert rows == [(date(2026, 7, 10), "nlp", Decimal("1.006")), (date(2026, 7, 20), "vision", Decimal("1.006"))]
    teams = ask(builder, "select team, unattributed_cost_usd from mart_team_cost_monthly order by 1").rows()
    assert teams == [("nlp", Decimal("1.006")), ("vision", Decimal("1.006"))]


def test_a_node_that_another_run_takes_over_changes_hands_with_its_tag(tmp_path: Path) -> None:
    """Lines of 10.00 an hour. i-0x is tagged a at 8 and 9, not at all at 10, and b from 11 to 13; i-0y is tagged a for
    all six hours, i-0z b for its three. Run a lives from 8 to 14, b from 11. So do c and d on nodes of their own, of
    which d is not recorded.

    a: i-0x until 11, 30.00, and i-0y, 60.00. b: i-0x from 11 and i-0z, 60.00. c as a, and d as b, by its tag alone.
    """
    tags = {"i-0x": "aa.bbb", "i-0y": "aaaaaa", "i-0z": "   bbb", "i-1x": "cc.ddd", "i-1y": "cccccc", "i-1z": "   ddd"}
    lines = [
        instance_hour(f"2026-07-10T{number:02d}", node, "g5.xlarge", "10.00")
        | ({} if tag == "." else {"resource_tags": f'{{"user_run_id": "{tag}"}}'})
        for node, row in tags.items()
        for number, tag in enumerate(row, start=8)
        if tag != " "
    ]
    events = [
        event
        for run, hour in (("a", 8), ("b", 11), ("c", 8))
        for event in one_attempt(run, (), "g5.xlarge", datetime(2026, 7, 10, hour), timedelta(hours=14 - hour))
    ]
    export = write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events)))
    sums = "select run_id, evidence, bucket, sum(effective_cost_usd) from fct_ledger group by all order by 1"
    paid = (("a", "tag", 90), ("b", "tag", 60), ("c", "tag", 90), ("d", "tag_only", 60))
    assert ask(builder, sums).rows() == [(run, evidence, "run", cost) for run, evidence, cost in paid]


def test_a_tag_activated_late_and_backfilled_moves_dollars_to_its_run(tmp_path: Path) -> None:
    """T24. Facts 4.5: activation is not retroactive, a backfill restates a closed month.

    Two hours at 1.006 of a node that no run names. First delivery: only the second hour carries the tag, of a run
    that lived through both; once tagged, the node's untagged hour is the run's too. After the backfill both carry it:
    the bill is 2.012 each time, and so is the run.
    """
    first = [
        instance_hour("2026-07-10T10", "i-0late", "g5.xlarge", "1.006"),
        instance_hour("2026-07-10T11", "i-0late", "g5.xlarge", "1.006", resource_tags='{"user_run_id": "r-1"}'),
    ]
    backfilled = [line | {"resource_tags": '{"user_run_id": "r-1"}'} for line in first]
    runs = write_events(
        tmp_path / "runs",
        [
            {"event": "run_started", "run_id": "r-1", "at": "2026-07-10T10:00:00Z", "model": "m"},
            {"event": "attempt_started", "run_id": "r-1", "attempt": 1, "at": "2026-07-10T10:00:00Z"},
            {
                "event": "attempt_ended",
                "run_id": "r-1",
                "attempt": 1,
                "at": "2026-07-10T12:00:00Z",
                "reason": "completed",
            },
            {"event": "run_ended", "run_id": "r-1", "at": "2026-07-10T12:00:00Z", "status": "completed"},
        ],
    )
    for number, lines in enumerate((first, backfilled), start=1):
        export = write_export(tmp_path, {"2026-07": lines}, execution=f"20260801T00000{number}Z-delivery{number}")
        builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=runs))
        assert ask(builder, "select effective_cost_usd from mart_run_cost").rows() == [(Decimal("2.012"),)]
        tagged = (
            "select sum(tagged_cost_usd), sum(taggable_cost_usd) from detail_tag_coverage_monthly where tag = 'run_id'"
        )
        expected = Decimal("1.006") if number == 1 else Decimal("2.012")
        assert ask(builder, tagged).rows() == [(expected, Decimal("2.012"))]
