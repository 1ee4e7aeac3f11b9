"""Run events that are none, or that cannot be true: one sentence with file, line and fix.

Those that stop no build are in one ledger, `odd`, which is built once: each is of a run and a machine of its own.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.bills import instance_hour, write_config, write_events, write_export
from support.ledgers import ask_published, publish_tables
from support.spoiled import COST_OF_THE_RUN, HOURS, MONTH, Ledger, run_events, write_lines

from pipelines.models.build import Builder

DAY = f"{MONTH}-01T"


def event(kind: str, clock: str, /, **fields: Any) -> dict[str, Any]:
    return {"event": kind, "run_id": "x", "at": f"{DAY}{clock}Z", **fields}


def on_machine(run_id: str, machine: str, **joined: Any) -> list[dict[str, Any]]:
    """The run of two hours, on another machine than the good one."""
    events = run_events(run_id, resource=machine, **joined)
    return [{**one, "resource": machine} if "resource" in one else one for one in events]


def billed(machine: str, hours: int = 2, **more: str) -> list[dict[str, str]]:
    """As many hours of a p5 at 55.04."""
    return [instance_hour(f"{DAY}{hour:02d}", machine, "p5.48xlarge", "55.04", **more) for hour in range(hours)]


# By the run that each sets aside: its lines after the first, and what is reported of the last of them.
SET_ASIDE: dict[str, tuple[list[dict[str, Any]], str]] = {
    "without a time": ([{"event": "heartbeat"}], r"has no `at`; every event needs one"),
    "without a zone": (
        [{"event": "heartbeat", "at": f"{DAY}00:00:00"}],
        r'has `at` ".*"; write RFC 3339 with its zone',
    ),
    "without a resource": (
        [event("resource_joined", "00:00:00")],
        r"is `resource_joined` without `resource`; add it",
    ),
    "attempt 0": ([event("heartbeat", "00:00:00", attempt=0)], r"has `attempt` 0; number attempts from 1"),
    "half an epoch": (
        [event("epoch_completed", "00:00:00", epoch=2.97)],
        r"has `epoch` 2.97; write a whole number",
    ),
    "attempt ends first": (
        [event("attempt_started", "02:00:00"), event("attempt_ended", "01:00:00")],
        r"has `at` 2026-07-01T01:00:00Z: attempt 1 of run 'attempt ends first' ends before it starts at "
        r"2026-07-01T02:00:00Z.*; fix the times",
    ),
    "ends first": (
        [event("run_started", "02:00:00"), event("run_ended", "01:00:00", status="completed")],
        r"has `at` 2026-07-01T01:00:00Z: run 'ends first' ends before it starts at 2026-07-01T02:00:00Z"
        r".*; fix the times",
    ),
    "left first": (
        [event("resource_joined", "02:00:00", resource="i-1"), event("resource_left", "01:00:00", resource="i-1")],
        r"has `at` 2026-07-01T01:00:00Z: resource_left of 'i-1' .* comes before its start.*; fix the times",
    ),
}
# Lines that name no run, and what is reported of each.
NO_RUN: list[tuple[str | bytes | dict[str, Any], str]] = [
    ('{"event": oops}', r"is not JSON \(.*\); fix or remove the line"),
    ("[" * 100_000, r"is nested more than 100 levels deep"),
    ("[1]", r"is not a JSON object; write one event a line"),
    (b"\xff\xfe", r"is not UTF-8 text"),
    ({"event": "heartbeat", "at": f"{DAY}00:00:00Z"}, r"has no `run_id`; every event needs one"),
]
# A run that diverges logs these.
NO_NUMBERS = ["NaN", "Infinity", "-Infinity", '"NaN"']


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """The good ledger with a run of each oddity of the tests below, published."""
    root = tmp_path_factory.mktemp("odd")
    runs = root / "runs"
    write_events(runs, run_events())
    for run_id, (events, _) in SET_ASIDE.items():
        started = event("run_started", "00:00:00") if len(events) == 1 else event("heartbeat", "03:00:00")
        write_events(runs, [{**one, "run_id": run_id} for one in (started, *events)], f"{run_id}.jsonl")

    write_events(root / "again", on_machine("twice", "i-twice"))
    more = [*on_machine("twice", "i-twice"), *on_machine("one", "i-both"), *on_machine("other", "i-both")]
    late = on_machine("late", "i-late", accelerators_used=4)
    more += [*late[:3], *({**one, "at": f"{DAY}09:00:00Z"} for one in late[3:])]
    more += on_machine("ghost", "i-ghost") + on_machine("stray", "i-stray", instance_type="g6e.12xlarge")
    begun = [one for one in on_machine("odd end", "i-odd") if one["event"] in ("run_started", "resource_joined")]
    more += [*begun, event("run_ended", "02:00:00", run_id="odd end", status="fail")]
    more += on_machine("new", "i-new", instance_type="p99.48xlarge")
    write_events(runs, more, "more.jsonl")

    evaluation = json.dumps(event("evaluation", "01:00:00", run_id="good", metric="loss", value=0))
    lines = [
        evaluation.replace('"value": 0', f'"value": {value}').replace("01:00", f"01:0{place}")
        for place, value in enumerate(NO_NUMBERS)
    ]
    write_lines(runs / "no numbers.jsonl", lines)
    harmless = [event("heartbeat", "00:00:00", run_id="good"), event("coffee_break", "00:10:00", run_id="good")]
    torn = write_lines(runs / "torn.jsonl", harmless)
    torn.write_bytes(torn.read_bytes() + b'{"event":"heartbeat","run_')

    for number, (line, _) in enumerate(NO_RUN):
        write_lines(runs / f"no run {number}.jsonl", [line])
    (runs / "no.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00 and no more")

    bill = [*HOURS, *billed("i-twice"), *billed("i-both"), *billed("i-late", 6), *billed("i-new")]
    bill += [*billed("i-odd"), *billed("i-tagged", resource_tags='{"user_run_id": "attempt 0"}')]
    config = write_config(root, billing=write_export(root, {MONTH: bill}), runs="runs")
    config.write_text(config.read_text() + '\n[[runs]]\nname = "again"\nlocation = "again"\n')
    return publish_tables(config, ["mart_run_cost", "detail_claim_gap_monthly", "detail_provisional_run"])


def found(odd: Builder, check: str) -> list[dict[str, Any]]:
    """The first rows that a check of the publication finds wrong."""
    (result,) = (one for one in odd.lake.publications.predecessor().checks if one["check"] == check)
    return result["sample"]


def warnings(odd: Builder) -> str:
    """What was reported of reading the sources."""
    checks = odd.lake.publications.predecessor().checks
    return "\n".join(row["warning"] for check in checks for row in check["sample"] if "warning" in row)


def costs(odd: Builder, *runs: str) -> list[tuple[str, str | None]]:
    """What runs whose name begins with one of these cost."""
    rows = ask_published(odd, "select run_id, cast(effective_cost_usd as varchar) from mart_run_cost order by 1").rows()
    return [row for row in rows if row[0].startswith(runs)]


@pytest.mark.parametrize("run_id", SET_ASIDE)
def test_a_run_of_a_line_that_is_no_event_or_ends_first_is_set_aside(odd: Builder, run_id: str) -> None:
    """A line that names a run sets that run aside, and no other."""
    where = rf"runs/{run_id}\.jsonl line {len(SET_ASIDE[run_id][0]) + 1} {SET_ASIDE[run_id][1]}"
    aside = rf"Run '{run_id}' is set aside, so what its machines cost is no run's: .*{where}"
    assert re.search(aside, warnings(odd))
    assert costs(odd, run_id) == []


def test_the_good_run_next_to_those_set_aside_costs_what_it_did(odd: Builder) -> None:
    assert costs(odd, "good") == [("good", COST_OF_THE_RUN)]


@pytest.mark.parametrize("number", range(len(NO_RUN)))
def test_a_line_of_no_run_is_skipped(odd: Builder, number: int) -> None:
    message = NO_RUN[number][1]
    assert re.search(
        rf"runs/no run {number}\.jsonl line 1 {message}.*\. It is skipped, and comparisons with runs of that file stay "
        r"indicative\.",
        warnings(odd),
    )


def test_a_file_that_is_no_gzip_file_is_skipped(odd: Builder) -> None:
    assert re.search(
        r"runs/no\.jsonl\.gz is not a complete gzip file .*; write it again\. It is skipped", warnings(odd)
    )


def test_a_run_that_is_set_aside_is_named_with_its_dollars(odd: Builder) -> None:
    """Two hours at 55.04 carry its tag: 110.08, next to the runs that are right."""
    assert "110.08 USD is tagged with a run that is not read. Run 'attempt 0' is set aside" in warnings(odd)


def test_an_end_of_an_unknown_word_is_an_unknown_end(odd: Builder) -> None:
    """However it ended, it ended at two: 2 h of its node at 55.04 are its own, and no word makes a success."""
    sentence = (
        r"Run 'odd end' counts as a run of unknown end: .*more\.jsonl line \d+ has `status` \"fail\"; write one of "
        r"completed, failed, killed, abandoned, unknown\."
    )
    assert re.search(sentence, warnings(odd))
    assert costs(odd, "odd end") == [("odd end", COST_OF_THE_RUN)]
    ends = "status = 'unknown' and not is_end_inferred"
    assert ask_published(odd, f"select {ends} from mart_run_cost where run_id = 'odd end'").rows() == [(True,)]


def test_a_folder_that_is_gone(ledger: Ledger) -> None:
    ledger.configure('"runs"', '"run"')
    assert re.search(
        r"run cannot be listed: No such file or directory; check `location` of \[\[runs\]\] jobs\.", ledger.refused(3)
    )


def test_a_folder_of_something_else(ledger: Ledger) -> None:
    ledger.events.rename(ledger.events.with_suffix(".json"))
    assert re.search(r"runs holds no event file, only such as events\.json; name them \.jsonl", ledger.refused(3))


def test_one_run_in_two_sources(odd: Builder) -> None:
    """Nothing declares that they are one, so there are two, the first has the machine, and a warning names both."""
    assert costs(odd, "twice") == [("twice", COST_OF_THE_RUN), ("twice@again", None)]
    assert "Run 'twice' is recorded by the [[runs]] sources jobs and again" in warnings(odd)


def gaps(odd: Builder, *resources: str) -> list[tuple]:
    figures = "run_id, resource_id, gap_kind, cast(gap_hours as double), cast(cost_at_stake_usd as varchar)"
    rows = ask_published(odd, f"select {figures} from detail_claim_gap_monthly order by 1, 2").rows()
    return [row for row in rows if row[1] in resources]


def test_two_runs_that_claim_one_machine_share_it_and_are_named(odd: Builder) -> None:
    """Both claim all 8 GPUs for the two billed hours, 110.08: each pays half, and the rest of the bill is untouched."""
    assert costs(odd, "one", "other") == [("one", "55.0400000000"), ("other", "55.0400000000")]
    # Time that another claims too is on the bill.
    assert gaps(odd, "i-both") == []
    (row,) = found(odd, "runs_claim_more_of_a_machine_than_it_has")
    assert (row["resource_id"], row["claimed_by"], row["hour_count"]) == ("i-both", "one, other", 2)
    assert float(row["cost_at_stake_usd"]) == 110.08


def test_hours_the_bill_does_not_have(odd: Builder) -> None:
    """The node is billed until six; a run claims that it had four of its GPUs until nine. It costs what is billed."""
    assert gaps(odd, "i-1", "i-late") == [
        # 3 h of 4 GPUs, each GPU-hour at 55.04 / 8.
        ("late", "i-late", "claimed_not_billed", 12.0, "82.5600000000"),
        # Four hours that no run claims, and six hours of the other four GPUs.
        ("no run", "i-1", "billed_not_claimed", 32.0, "220.1600000000"),
        ("no run", "i-late", "billed_not_claimed", 24.0, "165.1200000000"),
    ]
    reported = {row["run_id"]: row["cost_at_stake_usd"] for row in found(odd, "run_hours_not_on_the_bill")}
    assert float(reported["late"]) == 82.56


def test_a_resource_the_bill_does_not_have(odd: Builder) -> None:
    """Two hours on a node of no bill line, priced like the billed one of its type; of a type not billed, unknown."""
    assert gaps(odd, "i-ghost", "i-stray") == [
        ("ghost", "i-ghost", "claimed_not_billed", 16.0, "110.0800000000"),
        ("stray", "i-stray", "claimed_not_billed", 8.0, None),
    ]
    # Neither was the time of no accelerator: how long they had one is unknown.
    hours = "select distinct accelerator_hours from mart_run_cost where run_id in ('ghost', 'stray')"
    assert ask_published(odd, hours).rows() == [(None,)]


def test_a_run_on_an_accelerator_that_no_list_has(odd: Builder) -> None:
    named = "accelerator_type_missing_from_ref_instance_type"
    checks = odd.lake.publications.predecessor().checks
    (check,) = (one for one in checks if (one["table"], one["check"]) == ("core/fct_run", named))
    (row,) = check["sample"]
    # The bill shows what the machine was: two hours of a p5 at 55.04.
    assert (row["run_id"], row["instance_type"], float(row["effective_cost_usd"])) == ("new", "p99.48xlarge", 110.08)


def test_an_evaluation_that_is_no_number(odd: Builder) -> None:
    """A run that diverges logs NaN: it meets no target, keeps its cost, and is named with each of them."""
    (row,) = found(odd, "run_whose_evaluation_is_no_number")
    assert (row["run_id"], row["evaluation_unmeasured_count"]) == ("good", len(NO_NUMBERS))
    assert float(row["effective_cost_usd"]) == 110.08


def test_what_is_odd_but_harmless_becomes_a_warning(odd: Builder) -> None:
    assert re.search(r"torn\.jsonl ends in the middle of line 3", warnings(odd))
    assert "unknown kind 'coffee_break'" in warnings(odd)


def test_a_hostile_name_stays_within_its_sentence(ledger: Ledger) -> None:
    """A machine of that name is billed twice for one hour, which stops the build."""
    name = "i-two\nlines \x1b[31m" + "r" * 10_000
    ledger.restate(*2 * [instance_hour(f"{DAY}00", name, "p5.48xlarge", "55.04")])
    error = ledger.refused(1)
    assert r"two\nlines \x1b[31mrrr" in error
    assert len(error) < 1000
