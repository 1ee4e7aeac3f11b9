"""Open intervals are closed by the last thing known and marked.

Expected times are read off the events of each test by hand.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.trackers import staged


def event(kind: str, clock: str, /, run_id: str = "r", **fields: Any) -> dict[str, Any]:
    return {"event": kind, "run_id": run_id, "at": f"2026-07-01T{clock}Z", **fields}


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-07-01T{clock}")


def rows(root: Path, events: list[dict[str, Any]], sql: str) -> list[tuple[Any, ...]]:
    with staged(root, events) as engine:
        return engine.query(sql).rows()


ATTEMPT = "select attempt_no, started_at, ended_at, is_end_inferred, end_reason from stg_tracker__attempt order by 1"
JOINED = event("resource_joined", "10:00:00", attempt=1, resource="i-1", instance_type="p5.48xlarge")


def test_what_is_recorded_is_kept(tmp_path: Path) -> None:
    events = [
        event("attempt_started", "10:00:00"),
        event("attempt_ended", "11:00:00", reason="oom"),
        event("heartbeat", "11:00:03"),
    ]
    assert rows(tmp_path, events, ATTEMPT) == [(1, at("10:00:00"), at("11:00:00"), False, "oom")]


def test_an_attempt_that_died_ends_where_it_was_last_seen(tmp_path: Path) -> None:
    events = [event("attempt_started", "10:00:00"), event("heartbeat", "10:40:00")]
    assert rows(tmp_path, events, ATTEMPT) == [(1, at("10:00:00"), at("10:40:00"), True, "unknown")]


def test_tokens_of_heartbeats_are_those_of_the_job(tmp_path: Path) -> None:
    """4 devices that have seen 250 million tokens each: the most of any heartbeat, whatever came in which order."""
    events = [
        event("run_started", "10:00:00", tokens_unit="device", tokens_unit_count=4),
        event("heartbeat", "10:40:00", tokens_seen=2.5e8),
        event("heartbeat", "10:20:00", tokens_seen=1e8),
        event("heartbeat", "10:50:00"),
    ]
    assert rows(tmp_path, events, "select tokens_seen from stg_tracker__attempt") == [(1e9,)]


def test_an_attempt_that_died_is_over_when_the_next_begins(tmp_path: Path) -> None:
    events = [
        event("attempt_started", "10:00:00", attempt=1),
        event("attempt_started", "11:00:00", attempt=2),
        # A rank of the dead attempt that is slow to notice.
        event("heartbeat", "11:00:20", attempt=1),
        event("heartbeat", "11:30:00", attempt=2),
    ]
    assert rows(tmp_path, events, ATTEMPT) == [
        (1, at("10:00:00"), at("11:00:00"), True, "unknown"),
        (2, at("11:00:00"), at("11:30:00"), True, "unknown"),
    ]


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        ("completed", "12:00:00"),
        ("failed", "12:00:00"),
        ("killed", "12:00:00"),
        ("abandoned", "10:40:00"),
        (None, "10:40:00"),
    ],
)
def test_the_end_of_the_run_ends_its_last_attempt(tmp_path: Path, status: str | None, ended: str) -> None:
    events = [
        event("attempt_started", "09:00:00", attempt=1),
        event("heartbeat", "09:30:00", attempt=1),
        event("attempt_started", "10:00:00", attempt=2),
        event("heartbeat", "10:40:00", attempt=2),
        event("run_ended", "12:00:00", **({"status": status} if status else {})),
    ]
    assert rows(tmp_path, events, ATTEMPT) == [
        (1, at("09:00:00"), at("09:30:00"), True, "unknown"),
        (2, at("10:00:00"), at(ended), True, "unknown"),
    ]


def test_an_open_stay_ends_with_its_attempt(tmp_path: Path) -> None:
    events = [
        JOINED,
        {**JOINED, "resource": "i-2"},
        event("resource_left", "10:20:00", attempt=1, resource="i-2"),
        event("attempt_ended", "11:00:00", attempt=1),
    ]
    stays = "select resource_id, left_at from stg_tracker__resource order by 1"
    assert rows(tmp_path, events, stays) == [("i-1", at("11:00:00")), ("i-2", at("10:20:00"))]


def test_a_stay_with_no_end_but_the_run_s(tmp_path: Path) -> None:
    events = [JOINED, event("run_ended", "13:00:00", status="completed")]
    stays = "select joined_at, left_at from stg_tracker__resource"
    assert rows(tmp_path, events, stays) == [(at("10:00:00"), at("13:00:00"))]


def test_an_open_phase_ends_where_the_next_begins_or_with_its_attempt(tmp_path: Path) -> None:
    events = [
        event("phase_started", "10:00:00", attempt=1, phase="compile"),
        event("phase_started", "10:10:00", attempt=1, phase="train"),
        event("attempt_ended", "11:00:00", attempt=1),
    ]
    phases = "select phase, started_at, ended_at, is_end_inferred from stg_tracker__phase order by 2"
    assert rows(tmp_path, events, phases) == [
        ("compile", at("10:00:00"), at("10:10:00"), True),
        ("train", at("10:10:00"), at("11:00:00"), True),
    ]


RUN = "select status, started_at, ended_at, is_end_inferred, attempt_count from stg_tracker__run"


def test_a_run_without_its_ends_takes_those_of_its_attempts(tmp_path: Path) -> None:
    events = [
        event("attempt_started", "10:00:00", attempt=1),
        event("attempt_ended", "10:30:00", attempt=1, reason="spot_interruption"),
        event("attempt_started", "11:00:00", attempt=2),
        event("attempt_ended", "11:30:00", attempt=2, reason="completed"),
    ]
    assert rows(tmp_path, events, RUN) == [("completed", at("10:00:00"), at("11:30:00"), True, 2)]


def test_a_run_that_just_stops_speaking_is_of_unknown_status(tmp_path: Path) -> None:
    events = [event("run_started", "10:00:00"), event("heartbeat", "10:30:00")]
    assert rows(tmp_path, events, RUN) == [("unknown", at("10:00:00"), at("10:30:00"), True, 1)]
