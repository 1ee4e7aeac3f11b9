"""Run events: JSON lines written by the training processes themselves, one file a process, any folder depth.

Every rank may tell the same story: an event told twice counts once, in any order, over any number of files. A last
line cut short by a crash is left out with a warning; anything else that is not an event is refused by file and line.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from pipelines.errors import SourceError
from pipelines.settings import RunSource
from pipelines.sources.run_event import FIELDS, Event, parse_event
from pipelines.sources.run_tracker import RunRecords, frames
from pipelines.storage import Store

SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
# Saves that hold no optimizer state protect no progress (facts training-runs 3).
_NOT_RESUMABLE = ("weights_only", "adapter", "export")


def read_events(source: RunSource, store: Store) -> RunRecords:
    """The runs of all event files of a source."""
    warnings: list[str] = []
    told = {event.text: event for event in _events(store, warnings)}
    unknown = sorted({event.kind for event in told.values()} - set(FIELDS))
    warnings += [f"{store.location}: events of kind {kind!r} are not known and were left out." for kind in unknown]
    ordered = sorted(told.values(), key=lambda e: (e.run_id, e.at, e.attempt, e.kind, e.text))
    rows: dict[str, list[dict[str, Any]]] = {}
    for run_id, events in _by_run(event for event in ordered if event.kind in FIELDS):
        for table, found in _Run(run_id, events, warnings).rows().items():
            rows.setdefault(table, []).extend({"source_name": source.name, "run_id": run_id, **row} for row in found)
    return RunRecords(frames(rows), warnings)


def _events(store: Store, warnings: list[str]) -> Iterator[Event]:
    for item in store.list():
        if not item.key.endswith(SUFFIXES):
            continue
        where = store.uri(item.key)
        content = store.read(item.key)
        if item.key.endswith(".gz"):
            try:
                content = gzip.decompress(content)
            except (OSError, EOFError) as error:
                raise SourceError(f"{where} is no whole gzip file ({error}); write it again.") from None
        lines = content.split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield parse_event(line, f"{where} line {number}")
            except SourceError:
                # Only the very end of a file can be a write that a crash cut short: it has no line end.
                if number < len(lines) or _is_whole(line):
                    raise
                warnings.append(f"{where} ends in the middle of line {number}; that event was left out.")


def _is_whole(line: bytes) -> bool:
    return line.rstrip().endswith(b"}")


def _by_run(events: Iterable[Event]) -> Iterator[tuple[str, list[Event]]]:
    from itertools import groupby

    for run_id, group in groupby(events, key=lambda event: event.run_id):
        yield run_id, list(group)


class _Run:
    """What the events of one run, in order of time, come to."""

    def __init__(self, run_id: str, events: list[Event], warnings: list[str]):
        self._id = run_id
        self._events = events
        self._warnings = warnings

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows by tracker table."""
        return {
            "tracker_run": [self._run()],
            "tracker_attempt": self._attempts(),
            "tracker_resource": self._resources(),
            "tracker_phase": self._phases(),
            "tracker_epoch": self._epochs(),
            "tracker_checkpoint": self._checkpoints(),
            "tracker_evaluation": self._evaluations(),
        }

    def _of(self, *kinds: str) -> list[Event]:
        return [event for event in self._events if event.kind in kinds]

    def _run(self) -> dict[str, Any]:
        started = self._of("run_started")
        ended = self._of("run_ended")
        if not started:
            self._warnings.append(f"Run {self._id} has no run_started event; its model and dataset are unknown.")
        facts: dict[str, Any] = {}
        for event in started:
            facts = {**event.fields, **facts}
        return {
            **facts,
            "source_system": "events",
            "status": ended[-1].fields.get("status") if ended else None,
            "started_at": started[0].at if started else None,
            "ended_at": ended[-1].at if ended else None,
            "last_seen_at": self._events[-1].at,
        }

    def _attempts(self) -> list[dict[str, Any]]:
        rows = []
        inside = [event for event in self._events if event.kind not in ("run_started", "run_ended")]
        for number in sorted({event.attempt for event in inside}):
            events = [event for event in inside if event.attempt == number]
            starts = [event for event in events if event.kind == "attempt_started"]
            ends = [event for event in events if event.kind == "attempt_ended"]
            start = starts[0].at if starts else events[0].at
            if ends and ends[-1].at < start:
                raise SourceError(
                    f"{ends[-1].place}: attempt {number} of run {self._id} ends at {ends[-1].at} before it starts at "
                    f"{start}; mend the clock or the line."
                )
            rows.append(
                {
                    "attempt_no": number,
                    "started_at": start,
                    "ended_at": ends[-1].at if ends else None,
                    "end_reason": ends[-1].fields.get("reason") if ends else None,
                    "last_seen_at": events[-1].at,
                }
            )
        return rows

    def _resources(self) -> list[dict[str, Any]]:
        rows = []
        for attempt, resource, joined, left, facts in self._spans("resource_joined", "resource_left", "resource"):
            rows.append(
                {
                    "attempt_no": attempt,
                    "resource_id": resource,
                    "joined_at": joined,
                    "left_at": left,
                    "region_id": facts.get("region"),
                    "evidence": facts.get("evidence", "imds"),
                    **{key: value for key, value in facts.items() if key not in ("resource", "region", "evidence")},
                }
            )
        return rows

    def _phases(self) -> list[dict[str, Any]]:
        return [
            {"attempt_no": attempt, "phase": phase, "started_at": started, "ended_at": ended}
            for attempt, phase, started, ended, _ in self._spans("phase_started", "phase_ended", "phase")
        ]

    def _spans(
        self, opening: str, closing: str, key: str
    ) -> list[tuple[int, str, datetime, datetime | None, dict[str, Any]]]:
        """Stretches between an opening and a closing event of the same thing; ranks may repeat either."""
        spans: dict[tuple[int, str], list[list[Any]]] = {}
        for event in self._of(opening, closing):
            found = spans.setdefault((event.attempt, event.fields[key]), [])
            is_open = bool(found) and found[-1][1] is None
            if event.kind == opening and is_open:
                found[-1][2] = {**event.fields, **found[-1][2]}
            elif event.kind == opening:
                found.append([event.at, None, event.fields])
            elif found:
                found[-1][1] = event.at
            else:
                raise SourceError(
                    f"{event.place}: {key} {event.fields[key]} of run {self._id} attempt {event.attempt} ends before "
                    f"it starts; add or mend its {opening} event."
                )
        return [
            (attempt, name, started, ended, facts)
            for (attempt, name), found in spans.items()
            for started, ended, facts in found
        ]

    def _epochs(self) -> list[dict[str, Any]]:
        rows: dict[tuple[int, int], dict[str, Any]] = {}
        for event in self._of("epoch_started", "epoch_completed"):
            row = rows.setdefault((event.attempt, int(event.fields["epoch"])), {})
            if event.kind == "epoch_started":
                row.setdefault("started_at", event.at)
            else:
                # The epoch is done when its last rank says so.
                row.update({"completed_at": event.at, **_without(event.fields, "epoch")})
        return [{"attempt_no": attempt, "epoch_index": epoch, **row} for (attempt, epoch), row in rows.items()]

    def _checkpoints(self) -> list[dict[str, Any]]:
        rows: dict[str, dict[str, Any]] = {}
        for event in self._of("checkpoint_started", "checkpoint_saved"):
            facts = event.fields
            row = rows.setdefault(self._checkpoint_id(event), {"attempt_no": event.attempt})
            if event.kind == "checkpoint_started":
                row.setdefault("save_started_at", event.at)
                continue
            kept = _without(facts, "resumable", "complete", "kind", "checkpoint_id")
            row.update(
                kept,
                durable_at=event.at,
                is_resumable=facts.get("resumable", facts.get("kind") not in _NOT_RESUMABLE),
                is_complete=facts.get("complete", True),
            )
        return [{"checkpoint_id": name, **row} for name, row in rows.items()]

    def _checkpoint_id(self, event: Event) -> str:
        """The given id, or one from attempt, step and place: the same place may be written again."""
        given = event.fields.get("checkpoint_id")
        if given:
            return given
        place = hashlib.sha256(str(event.fields.get("uri")).encode()).hexdigest()[:8]
        return f"{self._id}/{event.attempt}/{event.fields.get('step', event.at.isoformat())}/{place}"

    def _evaluations(self) -> list[dict[str, Any]]:
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for event in self._of("evaluation"):
            facts = event.fields
            key = (event.attempt, facts["metric"], facts.get("split"), facts.get("step", event.at))
            rows.setdefault(key, {"attempt_no": event.attempt, "evaluated_at": event.at, **facts})
        return list(rows.values())


def _without(facts: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key not in names}
