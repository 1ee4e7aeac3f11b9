"""Bad run events are refused in one sentence that names file, line, key and fix."""

from __future__ import annotations

import json
import math
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pipelines.base.errors import SourceError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.tracker import read_runs

ASIDE = "Run 'r' is set aside, so what its machines cost is no run's: "
SKIPPED = " It is skipped, and comparisons with runs of that file stay indicative."
GOOD = {"event": "heartbeat", "run_id": "r", "at": "2026-07-01T10:00:00Z"}
START = {"event": "run_started", "run_id": "r", "at": "2026-07-01T10:00:00Z"}


def refusal(folder: Path, *lines: bytes | dict[str, Any]) -> str:
    """What is reported about a file of these lines, less the file's name: a line is skipped, or its run set aside."""
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    (folder / "rank.jsonl").write_bytes(b"".join(line + b"\n" for line in raw))
    message = skipped(folder)
    assert message.startswith(f"{folder / 'rank.jsonl'} ") and message.endswith(".") and "\n" not in message
    return message.removeprefix(f"{folder / 'rank.jsonl'} ")


def skipped(folder: Path) -> str:
    """The warning of a folder with one thing that cannot be read, which is in the table of such runs."""
    records = read_runs(RunSource(name="jobs", location=str(folder)))
    (warning,) = records.warnings
    (unread,) = records.tables["tracker_unread_run"]["run_id"].to_list()
    others = sum(table.height for name, table in records.tables.items() if name != "tracker_unread_run")
    if warning.startswith(ASIDE):
        assert (unread, others) == ("r", 0)
        return warning.removeprefix(ASIDE)
    assert warning.endswith(SKIPPED)
    assert (unread, others > 0) == ("r" if others else None, others > 0)
    return warning.removesuffix(SKIPPED)


TEXT = "write text in quotes."
PASSES = "write a whole number from 1 to 5."
COUNT = "write a whole number from 0 to 1,000,000,000,000,000."
NUMBER = "write a finite number, or leave it out."


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"hello", "is not JSON (Expecting value at character 1); fix or remove the line."),
        (b'{"event": "heart', "is not JSON (Unterminated string starting at at character 11); fix"),
        (b'{"event": "\xff"}', "is not UTF-8 text; fix or remove the line."),
        (b"[" * 100_000, "is nested more than 100 levels deep; fix or remove the line."),
        (b'{"run_id": ' + b"[" * 101 + b"]" * 101 + b"}", "is nested more than 100 levels deep; fix"),
        (
            b'{"run_id": ' + b"9" * 5000 + b"}",
            "is not JSON (a number has thousands of digits); fix or remove the line.",
        ),
        (b"[1]", "is not a JSON object; write one event a line."),
        (b"null", "is not a JSON object; write one event a line."),
        (b'{"event":"heartbeat","run_id":"\\ud800"}', f'has `run_id` "\\ud800"; {TEXT}'),
    ],
)
def test_a_line_that_is_no_event(tmp_path: Path, line: bytes, message: str) -> None:
    assert refusal(tmp_path, START, line, START).startswith(f"line 2 {message}")


@pytest.mark.parametrize(
    "fields",
    [
        {"event": "heartbeat", "at": "2999-01-01T00:00:00Z"},
        {"event": "unheard_of", "at": "2999-01-01T00:00:00Z"},
        {"event": "checkpoint_saved", "durable_at": "2999-01-01T00:00:00Z"},
        {"event": "epoch_completed", "epoch": 3, "at": "2999-01-01T00:00:00Z"},
    ],
)
def test_a_time_in_the_future_sets_its_run_aside(tmp_path: Path, fields: dict[str, Any]) -> None:
    """An epoch that has not been completed lowers the cost of one, an end that has not come claims a machine."""
    (tmp_path / "rank.jsonl").write_text("\n".join(json.dumps(one) for one in (START, GOOD | fields)))
    records = read_runs(RunSource(name="jobs", location=str(tmp_path)))
    future = "line 2 has the time 2999-01-01T00:00:00Z, which is in the future; fix the times."
    assert f"{ASIDE}{tmp_path / 'rank.jsonl'} {future}" in records.warnings
    tables = {name: table.height for name, table in records.tables.items() if table.height}
    assert tables == {"tracker_unread_run": 1}


@pytest.mark.parametrize(
    ("today", "is_read"), [(date(2026, 7, 14), False), (date(2026, 7, 15), True), (date(2999, 1, 1), True)]
)
def test_a_run_is_read_from_the_day_before_its_last_event_on(tmp_path: Path, today: date, is_read: bool) -> None:
    """A clock may be hours ahead; what was in the future is so no longer once its day has come."""
    late = GOOD | {"event": "heartbeat", "at": "2026-07-16T00:00:00Z"}
    (tmp_path / "rank.jsonl").write_text("\n".join(json.dumps(one) for one in (START, late)))
    records = read_runs(RunSource(name="jobs", location=str(tmp_path)), today)
    assert (records.tables["tracker_run"].height, not records.warnings) == (is_read, is_read)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"event": "heartbeat", "run_id": "r", "at": "2026-07-01T10:00:00Z", "at": "2026-07-02T10:00:00Z"}', "at"),
        (b'{"event":"heartbeat","run_id":"r","at":"2026-07-01T10:00:00Z","tags":{"a":1,"a":2}}', "a"),
        (b'{"event": "heartbeat", "run_id": "q", "run_id": "r", "at": "2026-07-01T10:00:00Z"}', "run_id"),
    ],
)
def test_a_key_that_a_line_has_twice(tmp_path: Path, line: bytes, key: str) -> None:
    """JSON leaves open which of two values counts, so none does; a colon in a text is no key."""
    assert refusal(tmp_path, START, line) == f"line 2 has `{key}` twice; keep the right one."
    (tmp_path / "rank.jsonl").write_bytes(json.dumps(START | {"model": '"a": "a":'}).encode())
    assert read_runs(RunSource(name="jobs", location=str(tmp_path))).warnings == []


@pytest.mark.parametrize(
    ("event", "fields", "message"),
    [
        (None, {}, f"has no `event`; every event needs one: {TEXT}"),
        ("heartbeat", {"run_id": None}, f"has no `run_id`; every event needs one: {TEXT}"),
        ("heartbeat", {"run_id": ""}, f"has no `run_id`; every event needs one: {TEXT}"),
        ("run_started", {"target_passes": 6}, f"has `target_passes` 6; {PASSES}"),
        ("run_started", {"target_passes": 0}, f"has `target_passes` 0; {PASSES}"),
        ("heartbeat", {"run_id": 42}, f"has `run_id` 42; {TEXT}"),
        ("unheard_of", {"run_id": None}, f"has no `run_id`; every event needs one: {TEXT}"),
        ("heartbeat", {"attempt": 0}, "has `attempt` 0; number attempts from 1."),
        ("heartbeat", {"attempt": "one"}, 'has `attempt` "one"; number attempts from 1.'),
        ("heartbeat", {"attempt": True}, "has `attempt` true; number attempts from 1."),
        ("run_started", {"seq_len": 1e30}, f"has `seq_len` 1e+30; {COUNT}"),
        (
            "run_started",
            {"dataset_tokens": -1},
            "has `dataset_tokens` -1; write 0, or a number from 1 to 1,000,000,000,000,000.",
        ),
        ("run_started", {"dataset_tokens": 10**400}, "has `dataset_tokens` 1000"),
        ("run_started", {"dataset_tokens": 0.5}, "has `dataset_tokens` 0.5; write 0, or a number from 1 to"),
        ("epoch_completed", {"epoch": 1 << 62}, f"has `epoch` {1 << 62}; {COUNT}"),
        (
            "resource_joined",
            {"resource": "i", "accelerators_used": 10**9},
            "has `accelerators_used` 1000000000; write how",
        ),
        ("checkpoint_saved", {"stall_seconds": 1e300}, "has `stall_seconds` 1e+300; write seconds of 0 or more"),
        ("heartbeat", {"at": "1600-01-01T00:00:00Z"}, 'has `at` "1600-01-01T00:00:00Z"; write RFC 3339'),
        ("epoch_completed", {"epoch": -1}, f"has `epoch` -1; {COUNT}"),
        ("epoch_completed", {"epoch": 2.97}, f"has `epoch` 2.97; {COUNT}"),
        ("epoch_completed", {}, "is `epoch_completed` without `epoch`; add it."),
        ("epoch_completed", {"epoch": 1, "fraction": 0}, "has `fraction` 0; write a number above 0 and up"),
        ("checkpoint_saved", {"bytes": "98 GB"}, f'has `bytes` "98 GB"; {COUNT}'),
        ("checkpoint_saved", {"resumable": "yes"}, 'has `resumable` "yes"; write true or false.'),
        ("checkpoint_saved", {"kind": ["full"]}, 'has `kind` ["full"]; write one of full, weights_only,'),
        ("run_started", {"target_value": math.nan}, f"has `target_value` NaN; {NUMBER}"),
        ("evaluation", {"metric": "loss"}, "is `evaluation` without `value`; add it."),
        ("resource_joined", {"resource": "i", "account_id": 1111}, f"has `account_id` 1111; {TEXT}"),
        (
            "resource_joined",
            {},
            "is `resource_joined` without `resource`; add it, or `instance_type` and `account_id` and `region`",
        ),
        ("resource_joined", {"resource": "i", "evidence": "guess"}, 'has `evidence` "guess"; write one of imds'),
        (
            "run_started",
            {"target_metric": "loss"},
            "gives a target without `target_value` and `target_direction`; "
            "give target_metric, target_value, target_direction or none of them.",
        ),
        ("run_started", {"target_direction": "down"}, 'has `target_direction` "down"; write one of min, max.'),
    ],
)
def test_a_field_that_is_wrong(tmp_path: Path, event: str | None, fields: dict[str, Any], message: str) -> None:
    line = {**GOOD, "event": event, **fields}
    assert refusal(tmp_path, START, line, START).startswith(f"line 2 {message}")


@pytest.mark.parametrize(
    "value",
    [
        None,
        1782900131,
        "",
        "yesterday",
        "2026-07-01",
        "2026-07-01T10:02:11",
        "20260701T100211Z",
        "2026-07-01T10:02:11+0200",
        "2026-13-01T10:02:11Z",
        "2026-07-01T10:02:61Z",
        "2026-07-01T10:60:00Z",
        "２026-07-01T10:02:11Z",
    ],
)
def test_a_time_that_is_none(tmp_path: Path, value: object) -> None:
    found = refusal(tmp_path, {**GOOD, "at": value})
    assert found.startswith("line 1 has ")
    assert "`at`" in found and "RFC 3339 with its zone" in found


def test_only_the_end_of_a_file_may_be_cut(tmp_path: Path) -> None:
    # A line with its line end was written to the end; text that starts no object was never an event.
    assert refusal(tmp_path, START, b'{"event": "heart').startswith("line 2 is not JSON")
    (tmp_path / "rank.jsonl").write_text("hello")
    assert "rank.jsonl line 1 is not JSON" in skipped(tmp_path)
    (tmp_path / "rank.jsonl").write_text(json.dumps({"event": "heartbeat"}))
    assert "rank.jsonl line 1 has no `run_id`" in skipped(tmp_path)


def moment(kind: str, clock: str, **fields: Any) -> dict[str, Any]:
    return {"event": kind, "run_id": "r", "at": f"2026-07-01T{clock}Z", **fields}


def test_an_attempt_that_ends_before_it_starts(tmp_path: Path) -> None:
    error = refusal(tmp_path, START, moment("attempt_ended", "09:00:00"), moment("attempt_started", "10:00:00"))
    assert error == (
        "line 2 has `at` 2026-07-01T09:00:00Z: attempt 1 of run 'r' ends before it starts at "
        "2026-07-01T10:00:00Z; fix the times."
    )


def test_a_run_that_ends_before_it_starts(tmp_path: Path) -> None:
    error = refusal(tmp_path, moment("run_ended", "09:00:00"), START)
    assert error.startswith("line 1 has `at` 2026-07-01T09:00:00Z: run 'r' ends before it starts")


def test_a_resource_that_leaves_before_it_joins(tmp_path: Path) -> None:
    error = refusal(
        tmp_path,
        START,
        moment("resource_joined", "11:00:00", resource="i-1"),
        moment("resource_left", "10:30:00", resource="i-1"),
        moment("resource_left", "12:00:00", resource="i-1"),
    )
    assert error == (
        "line 3 has `at` 2026-07-01T10:30:00Z: resource_left of 'i-1' in attempt 1 of run 'r' comes before its "
        "start at 2026-07-01T11:00:00Z; fix the times."
    )


def test_a_resource_that_only_leaves_is_passed_over(tmp_path: Path) -> None:
    # The file of the process that saw it join may be lost.
    (tmp_path / "rank.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in (START, moment("resource_left", "12:00:00", resource="i-1")))
    )
    records = read_runs(RunSource(name="jobs", location=str(tmp_path)))
    assert records.tables["tracker_resource"].is_empty()
    (warning,) = records.warnings
    assert warning == "Run 'r' attempt 1 has resource_left of 'i-1' without its start; it is skipped. Write both."


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08\x00broken", b"not gzip at all"])
def test_a_broken_gzip_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rank.jsonl.gz").write_bytes(content)
    assert re.search(r"rank\.jsonl\.gz is not a complete gzip file \(.*\); write it again\.", skipped(tmp_path))


def test_a_truncated_gzip_file(tmp_path: Path) -> None:
    import gzip

    whole = gzip.compress(b"".join(json.dumps({**GOOD, "step": step}).encode() + b"\n" for step in range(999)))
    (tmp_path / "rank.jsonl.gz").write_bytes(whole[:-200])
    assert "is not a complete gzip file" in skipped(tmp_path)


def test_a_line_without_end(tmp_path: Path) -> None:
    (tmp_path / "rank.jsonl").write_bytes(b'{"event": "' + b"x" * (20 << 20))
    assert skipped(tmp_path).endswith("has a line of over 16 MiB; write one event a line.")


def test_a_folder_of_something_else_or_none(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(SourceError, match=r"holds no event file, only such as notes\.txt; name them \.jsonl"):
        read_runs(RunSource(name="jobs", location=str(tmp_path)))
    with pytest.raises(SourceError, match="missing"):
        read_runs(RunSource(name="jobs", location=str(tmp_path / "missing")))
