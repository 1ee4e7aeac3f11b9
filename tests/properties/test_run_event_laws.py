"""What runs come to depends on what was recorded, never on the order, the files or how often it was recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import RunRecords
from pipelines.ingest.runs.tracker import read_runs

Story = list[dict[str, Any]]
# Few names and few moments, so that ties, repeats and near misses are common.
RUNS, ATTEMPTS, THINGS = ("a", "b"), (1, 2, None), ("x", "y")
NUMBER = st.integers(0, 3)
FIELDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "run_started": {"model": st.sampled_from(THINGS), "seq_len": NUMBER},
    "run_ended": {"status": st.sampled_from(("completed", "failed"))},
    "attempt_started": {},
    "attempt_ended": {"reason": st.sampled_from(("completed", "oom"))},
    "resource_joined": {
        "resource": st.sampled_from(THINGS),
        "accelerators_used": NUMBER,
        "evidence": st.sampled_from(("imds", "tag")),
    },
    "resource_left": {"resource": st.sampled_from(THINGS)},
    "phase_started": {"phase": st.sampled_from(THINGS)},
    "phase_ended": {"phase": st.sampled_from(THINGS)},
    "epoch_started": {"epoch": NUMBER},
    "epoch_completed": {"epoch": NUMBER, "tokens_seen": NUMBER},
    "checkpoint_started": {"step": NUMBER},
    "checkpoint_saved": {
        "step": NUMBER,
        "uri": st.sampled_from(THINGS),
        "resumable": st.booleans(),
        "bytes": NUMBER,
    },
    "evaluation": {"metric": st.sampled_from(THINGS), "value": NUMBER, "step": NUMBER},
    "heartbeat": {},
    "unheard_of": {"colour": NUMBER},
}
NEEDED = ("resource", "phase", "epoch", "metric", "value")


@st.composite
def event(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(sorted(FIELDS)))
    line = {
        "event": kind,
        "run_id": draw(st.sampled_from(RUNS)),
        "at": f"2026-07-01T10:0{draw(st.integers(1, 9))}:00Z",
        "attempt": draw(st.sampled_from(ATTEMPTS)),
    }
    for name, values in FIELDS[kind].items():
        if name in NEEDED or draw(st.booleans()):
            line[name] = draw(values)
    return line


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """A story in which everything that ends has begun first."""
    begun = [
        {"event": kind, "run_id": run, "at": "2026-07-01T10:00:00Z", "attempt": attempt, **field}
        for run in RUNS
        for attempt in (1, 2)
        for kind, field in (
            ("run_started", {}),
            ("attempt_started", {}),
            *(("resource_joined", {"resource": thing}) for thing in THINGS),
            *(("phase_started", {"phase": thing}) for thing in THINGS),
        )
    ]
    return begun + draw(st.lists(event(), max_size=25))


def read(*files: Story) -> RunRecords:
    with TemporaryDirectory() as folder:
        for number, story in enumerate(files):
            lines = "".join(json.dumps(line) + "\n" for line in story)
            (Path(folder) / f"rank-{number}.jsonl").write_text(lines)
        records = read_runs(RunSource(name="jobs", location=folder))
    # The place of a line is its own in every file.
    return RunRecords(records.tables, sorted(re.sub(r"\S+ line \d+", "", warning) for warning in records.warnings))


def same_tables(left: RunRecords, right: RunRecords) -> bool:
    return all(frame.equals(right.tables[table]) for table, frame in left.tables.items())


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(stories(), st.data())
def test_neither_order_nor_files_nor_repeats_matter(story: Story, data: st.DataObject) -> None:
    """A story is read as it is, shuffled, spread over four files, and with some of its lines again."""
    once = read(story)
    file_of = data.draw(st.lists(st.integers(0, 3), min_size=len(story), max_size=len(story)))
    files = [[line for line, file in zip(story, file_of, strict=True) if file == number] for number in range(4)]
    for other in (read(data.draw(st.permutations(story))), read(*files)):
        assert same_tables(once, other)
        assert once.warnings == other.warnings
    assert same_tables(once, read(story, data.draw(st.lists(st.sampled_from(story)))))
    keys_are_unique_and_nothing_ends_before_it_starts(once)


def keys_are_unique_and_nothing_ends_before_it_starts(records: RunRecords) -> None:
    tables = records.tables
    attempt = ["run_id", "attempt_no"]
    keys = {
        "run": ["run_id"],
        "attempt": attempt,
        "resource": [*attempt, "resource_id", "joined_at"],
        "phase": [*attempt, "phase", "started_at"],
        "epoch": [*attempt, "epoch_index"],
        "checkpoint": ["run_id", "checkpoint_id"],
        "evaluation": [*attempt, "metric", "split", "evaluated_at"],
    }
    for table, key in keys.items():
        assert not tables[f"tracker_{table}"].select(key).is_duplicated().any(), table
    for table, start, end in (
        ("run", "started_at", "ended_at"),
        ("attempt", "started_at", "ended_at"),
        ("attempt", "started_at", "last_seen_at"),
        ("resource", "joined_at", "left_at"),
        ("phase", "started_at", "ended_at"),
    ):
        frame = tables[f"tracker_{table}"]
        assert not (frame[end] < frame[start]).any(), (table, end)
