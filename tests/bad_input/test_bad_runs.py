"""Run events that are none, or that cannot be true: one sentence with file, line and fix."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.bills import instance_hour
from support.spoiled import COST_OF_THE_RUN, HOURS, MONTH, Ledger, run_events

DAY = f"{MONTH}-01T"


def event(kind: str, clock: str, /, **fields: Any) -> dict[str, Any]:
    return {"event": kind, "run_id": "x", "at": f"{DAY}{clock}Z", **fields}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"event": oops}', r"is not JSON \(.*\); fix or remove the line"),
        ("[" * 100_000, r"is nested more than 100 levels deep"),
        ("[1]", r"is not a JSON object; write one event a line"),
        (b"\xff\xfe", r"is not UTF-8 text"),
        ({"event": "heartbeat", "at": f"{DAY}00:00:00Z"}, r"has no `run_id`; every event needs one"),
        ({"event": "heartbeat", "run_id": "x"}, r"has no `at`; every event needs one"),
        ({"event": "heartbeat", "run_id": "x", "at": f"{DAY}00:00:00"}, r'has `at` ".*"; write RFC 3339 with its zone'),
        (event("resource_joined", "00:00:00"), r"is `resource_joined` without `resource`; add it"),
        (event("heartbeat", "00:00:00", attempt=0), r"has `attempt` 0; number attempts from 1"),
        (event("run_ended", "00:00:00", status="fine"), r'has `status` "fine"; write one of completed, failed'),
        (event("epoch_completed", "00:00:00", epoch=2.97), r"has `epoch` 2.97; write a whole number"),
    ],
)
def test_a_line_that_is_no_event(ledger: Ledger, line: str | bytes | dict[str, Any], message: str) -> None:
    """A line that names a run sets that run aside, and no other; a line of no run is refused."""
    ledger.record(event("run_started", "00:00:00"), line)
    where = rf"runs/more\.jsonl line 2 {message}"
    if isinstance(line, dict) and "run_id" in line:
        assert re.search(rf"Run 'x' is set aside, so what its machines cost is no run's: .*{where}", set_aside(ledger))
    else:
        assert re.search(where, ledger.refused(3))


def set_aside(ledger: Ledger) -> str:
    """The warnings of a build that publishes the good run alone."""
    result = ledger.run("build")
    assert result.code == 0, result.err
    answer = ledger.run("query", "select run_id, cast(effective_cost_usd as varchar) from mart_run_cost", "--csv")
    assert answer.out.splitlines()[1:] == [f"good,{COST_OF_THE_RUN}"]
    (path,) = sorted((ledger.root / "warehouse/publications").glob("*.json"))[-1:]
    record = json.loads(path.read_text())
    return "\n".join(row["warning"] for check in record["checks"] for row in check["sample"] if "warning" in row)


def test_a_run_that_is_set_aside_is_named_with_its_dollars(ledger: Ledger) -> None:
    """Two hours at 55.04 carry its tag: 110.08, next to the runs that are right."""
    tag = {"resource_tags": '{"user_run_id": "x"}'}
    hours = (instance_hour(f"{MONTH}-02T{hour}", "i-9", "p5.48xlarge", "55.04", **tag) for hour in ("01", "02"))
    ledger.restate(*HOURS, *hours)
    ledger.record(event("run_ended", "00:00:00", status="fine"))
    assert "110.08 USD is tagged with a run that is not read. Run 'x' is set aside" in set_aside(ledger)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            [event("attempt_started", "02:00:00"), event("attempt_ended", "01:00:00")],
            r"line 2 has `at` 2026-07-01T01:00:00Z: attempt 1 of run 'x' ends before it starts at 2026-07-01T02:00:00Z",
        ),
        (
            [event("run_started", "02:00:00"), event("run_ended", "01:00:00", status="completed")],
            r"line 2 has `at` 2026-07-01T01:00:00Z: run 'x' ends before it starts at 2026-07-01T02:00:00Z",
        ),
        (
            [event("resource_joined", "02:00:00", resource="i-1"), event("resource_left", "01:00:00", resource="i-1")],
            r"line 2 has `at` 2026-07-01T01:00:00Z: resource_left of 'i-1' .* comes before its start",
        ),
    ],
)
def test_what_ends_before_it_starts(ledger: Ledger, events: list[dict[str, Any]], message: str) -> None:
    ledger.record(*events)
    assert re.search(rf"runs/more\.jsonl {message}.*; fix the times", set_aside(ledger))


def test_a_file_that_is_no_gzip_file(ledger: Ledger) -> None:
    (ledger.root / "runs/more.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00 and no more")
    assert re.search(r"runs/more\.jsonl\.gz is not a complete gzip file .*; write it again", ledger.refused(3))


def test_a_folder_that_is_gone(ledger: Ledger) -> None:
    ledger.configure('"runs"', '"run"')
    assert re.search(r"run cannot be listed: No such file or directory; check", ledger.refused(3))


def test_a_folder_of_something_else(ledger: Ledger) -> None:
    ledger.events.rename(ledger.events.with_suffix(".json"))
    assert re.search(r"runs holds no event file, only such as events\.json; name them \.jsonl", ledger.refused(3))


def test_one_run_in_two_sources(ledger: Ledger) -> None:
    """Nothing declares that they are one, so there are two, the first has the machine, and a warning names both."""
    ledger.config.write_text(ledger.config.read_text() + '\n[[runs]]\nname = "again"\nlocation = "runs"\n')
    result = ledger.run("build")
    assert result.code == 0, result.err
    answer = ledger.run(
        "query", "select run_id, cast(effective_cost_usd as varchar) from mart_run_cost order by 1", "--csv"
    )
    assert answer.out.splitlines()[1:] == [f"good,{COST_OF_THE_RUN}", "good@again,"]
    (path,) = sorted((ledger.root / "warehouse/publications").glob("*.json"))[-1:]
    record = json.loads(path.read_text())
    warnings = [row["warning"] for check in record["checks"] for row in check["sample"] if "warning" in row]
    assert any("Run 'good' is recorded by the [[runs]] sources jobs and again" in warning for warning in warnings)


def test_two_runs_that_claim_one_machine_share_it_and_are_named(ledger: Ledger) -> None:
    """Both claim all 8 GPUs for the two billed hours, 110.08: each pays half, and the rest of the bill is untouched."""
    ledger.record(*run_events("other"))
    result = ledger.run("build")
    assert result.code == 0, result.err
    figures = "run_id, cast(effective_cost_usd as varchar)"
    answer = ledger.run("query", f"select {figures} from mart_run_cost order by 1", "--csv")
    assert answer.out.splitlines()[1:] == ["good,55.0400000000", "other,55.0400000000"]
    # Time that another claims too is on the bill.
    gaps = "select count(*) from detail_claim_gap_monthly where gap_kind = 'claimed_not_billed'"
    assert ledger.run("query", gaps, "--csv").out.splitlines()[1:] == ["0"]
    record = json.loads((ledger.root / "warehouse/publications/000002.json").read_text())
    (check,) = (c for c in record["checks"] if c["check"] == "runs_claim_more_of_a_machine_than_it_has")
    (row,) = check["sample"]
    assert (row["resource_id"], row["claimed_by"], row["hour_count"]) == ("i-1", "good, other", 2)
    assert float(row["cost_at_stake_usd"]) == 110.08


def test_hours_the_bill_does_not_have(ledger: Ledger) -> None:
    """The node is billed until six; a run claims that it had four of its GPUs until nine. It costs what is billed."""
    late = run_events("late", resource="i-3", accelerators_used=4)
    late[3:4] = [{**late[3], "resource": "i-3", "at": f"{DAY}09:00:00Z"}]
    late[4:] = [{**event, "at": f"{DAY}09:00:00Z"} for event in late[4:]]
    ledger.restate(*HOURS, *[instance_hour(f"{DAY}{hour:02d}", "i-3", "p5.48xlarge", "55.04") for hour in range(6)])
    ledger.record(*late)
    assert ledger.run("build").code == 0
    figures = "run_id, resource_id, gap_kind, gap_hours, cast(cost_at_stake_usd as varchar)"
    answer = ledger.run(
        "query", f"select {figures} from detail_claim_gap_monthly order by 1, 2", "--csv"
    ).out.splitlines()[1:]
    assert answer == [
        # 3 h of 4 GPUs, each GPU-hour at 55.04 / 8.
        "late,i-3,claimed_not_billed,12.0,82.5600000000",
        # Four hours that no run claims, and six hours of the other four GPUs.
        "no run,i-1,billed_not_claimed,32.0,220.1600000000",
        "no run,i-3,billed_not_claimed,24.0,165.1200000000",
    ]
    record = json.loads((ledger.root / "warehouse/publications/000002.json").read_text())
    (check,) = (c for c in record["checks"] if c["check"] == "run_hours_not_on_the_bill")
    assert check["sample"][0]["run_id"] == "late" and float(check["sample"][0]["cost_at_stake_usd"]) == 82.56


def test_a_resource_the_bill_does_not_have(ledger: Ledger) -> None:
    """Two hours on a node of no bill line, priced like the billed one of its type; of a type not billed, unknown."""
    events = [*run_events("ghost", resource="i-9"), *run_events("stray", resource="i-8", instance_type="g6e.12xlarge")]
    for event in events:
        if event["event"] == "resource_left":
            event["resource"] = {"ghost": "i-9", "stray": "i-8"}[event["run_id"]]
    ledger.record(*events)
    assert ledger.run("build").code == 0
    sql = "select run_id, gap_hours, cast(cost_at_stake_usd as varchar) from detail_claim_gap_monthly"
    answer = ledger.run("query", f"{sql} where gap_kind = 'claimed_not_billed' order by 1", "--csv")
    assert answer.out.splitlines()[1:] == ["ghost,16.0,110.0800000000", "stray,8.0,"]


def test_a_run_on_an_accelerator_that_no_list_has(ledger: Ledger) -> None:
    ledger.record(
        *[
            {**event, "resource": "i-2"} if "resource" in event else event
            for event in run_events("new", instance_type="p99.48xlarge")
        ]
    )
    ledger.restate(*HOURS, *[instance_hour(f"{DAY}{hour:02d}", "i-2", "p5.48xlarge", "55.04") for hour in range(2)])
    assert ledger.run("build").code == 0
    record = json.loads((ledger.root / "warehouse/publications/000002.json").read_text())
    named = "accelerator_type_missing_from_ref_instance_type"
    (check,) = (c for c in record["checks"] if (c["table"], c["check"]) == ("core/fct_run", named))
    (row,) = check["sample"]
    # The bill shows what the machine was: two hours of a p5 at 55.04.
    assert (row["run_id"], row["instance_type"], float(row["effective_cost_usd"])) == ("new", "p99.48xlarge", 110.08)


def test_an_evaluation_that_is_no_number(ledger: Ledger) -> None:
    """A run that diverges logs NaN: it meets no target, keeps its cost, and is named with each of them."""
    line = json.dumps(event("evaluation", "01:00:00", run_id="good", metric="loss", value=0))
    values = ["NaN", "Infinity", "-Infinity", '"NaN"']
    ledger.record(
        *[
            line.replace('"value": 0', f'"value": {value}').replace("01:00", f"01:0{place}")
            for place, value in enumerate(values)
        ]
    )
    assert ledger.run("build").code == 0
    record = json.loads((ledger.root / "warehouse/publications/000002.json").read_text())
    (check,) = (c for c in record["checks"] if c["check"] == "run_whose_evaluation_is_no_number")
    (row,) = check["sample"]
    assert (row["run_id"], row["evaluation_unmeasured_count"]) == ("good", len(values))
    assert float(row["effective_cost_usd"]) == 110.08


def test_what_is_odd_but_harmless_becomes_a_warning(ledger: Ledger) -> None:
    torn = ledger.record(
        event("heartbeat", "00:00:00", run_id="good"), event("coffee_break", "00:10:00", run_id="good")
    )
    torn.write_bytes(torn.read_bytes() + b'{"event":"heartbeat","run_')
    assert ledger.run("build").code == 0
    record = json.loads((ledger.root / "warehouse/publications/000002.json").read_text())
    warnings = [row["warning"] for check in record["checks"] for row in check["sample"] if "warning" in row]
    assert any("more.jsonl ends in the middle of line 3" in warning for warning in warnings)
    assert any("unknown kind 'coffee_break'" in warning for warning in warnings)
    answer = ledger.run("query", "select run_id, cast(effective_cost_usd as varchar) from mart_run_cost", "--csv")
    assert answer.out.splitlines()[1:] == ["good,110.0800000000"]


def test_a_hostile_name_stays_within_its_sentence(ledger: Ledger) -> None:
    """A machine of that name is billed twice for one hour, which stops the build."""
    name = "i-two\nlines \x1b[31m" + "r" * 10_000
    ledger.restate(*2 * [instance_hour(f"{DAY}00", name, "p5.48xlarge", "55.04")])
    error = ledger.refused(1)
    assert r"two\nlines \x1b[31mrrr" in error
    assert len(error) < 1000
