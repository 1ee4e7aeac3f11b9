"""Several sources, one set of runs: what tells of one run is brought together, what may only seem to is kept apart.

A run id counts as the same run in two sources where all but one of them were told it on purpose (`trainledger.run_id`,
a label, a folder). Each fact then comes from the source nearest to the machines that knows it, and is counted once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from pipelines.ingest.runs.merge_stays import less
from pipelines.ingest.runs.records import DECLARED, SCHEMAS, RunRecords

# Nearest to the machines first: who wrote while it ran, who placed it, who scored it, who only sees files.
NEARNESS = (
    "events",
    "sagemaker",
    "kubernetes",
    "slurm",
    "mllog",
    "mlflow",
    "wandb",
    "trainer_state",
    "lightning",
    "checkpoints",
)
# What a table's rows of one run are told apart by, where one source may know some and another the rest; of the other
# tables one source tells all.
_KNOWN_BY = {"tracker_resource": "resource_id", "tracker_evaluation": "metric"}
_MOMENT = {
    "tracker_resource": "joined_at",
    "tracker_phase": "started_at",
    "tracker_epoch": "completed_at",
    "tracker_checkpoint": "durable_at",
    "tracker_evaluation": "evaluated_at",
}
_INSTANCE = re.compile("i-|arn:")
_Rows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Told:
    """What one source recorded, with its name and kind."""

    name: str
    kind: str
    records: RunRecords


def merged(sources: Sequence[Told]) -> RunRecords:
    """The records of all sources as one; a run told twice is brought together or, where nobody said so, kept apart."""
    warnings = [warning for told in sources for warning in told.records.warnings]
    tellers: dict[str, list[Told]] = {}
    for told in sorted(sources, key=lambda told: NEARNESS.index(told.kind)):
        for run_id in told.records.tables["tracker_run"]["run_id"].unique():
            tellers.setdefault(run_id, []).append(told)
    several = {run_id: found for run_id, found in sorted(tellers.items()) if len(found) > 1}
    rows = {told.name: _by_run(told, several) for told in sources}
    extra: dict[str, _Rows] = {table: [] for table in SCHEMAS}
    for run_id, found in several.items():
        strangers = [told for told in found if run_id not in told.records.declared][1:]
        same = [told for told in found if told not in strangers]
        one = _one(run_id, [rows[told.name][run_id] for told in same], warnings)
        for table in SCHEMAS:
            extra[table] += one[table]
            for stranger in strangers:
                extra[table] += _apart(rows[stranger.name][run_id], table, f"{run_id}@{stranger.name}", one)
        warnings += [_conflict(run_id, same, stranger) for stranger in strangers]
    tables = {}
    for table, schema in SCHEMAS.items():
        own = [told.records.tables[table].filter(~pl.col("run_id").is_in(list(several))) for told in sources]
        tables[table] = pl.concat([*own, pl.DataFrame(extra[table], schema=schema, strict=False)])
    return RunRecords(tables, warnings)


def _by_run(told: Told, wanted: Mapping[str, Any]) -> dict[str, dict[str, _Rows]]:
    """The rows of some runs of a source, by run and table."""
    found: dict[str, dict[str, _Rows]] = {run_id: {table: [] for table in SCHEMAS} for run_id in wanted}
    for table in SCHEMAS:
        for row in told.records.tables[table].filter(pl.col("run_id").is_in(list(wanted))).iter_rows(named=True):
            found[row["run_id"]][table].append(row)
    return found


def _conflict(run_id: str, same: Sequence[Told], stranger: Told) -> str:
    return (
        f"Run {run_id!r} is recorded by the [[runs]] sources {same[0].name} and {stranger.name}, and neither names the "
        f"other's; they are kept apart as {run_id!r} and '{run_id}@{stranger.name}', and what both claim of a machine "
        f"is the first one's. If they are one, give it `{DECLARED}` in one of them, else rename one."
    )


def _apart(told: Mapping[str, _Rows], table: str, name: str, one: Mapping[str, _Rows]) -> _Rows:
    """The rows of a run that only has another's name, under its own; the same machine at the same time is not its."""
    found = told[table]
    if table == "tracker_resource":
        # Nor is any machine of a kind: it may be the very one the other names.
        named = [row for row in found if not (one[table] and _is_any(row))]
        found = less(named, one[table], one["tracker_attempt"])
    return [row | {"run_id": name} for row in found]


def _one(run_id: str, found: Sequence[Mapping[str, _Rows]], warnings: list[str]) -> dict[str, _Rows]:
    """The rows of one run from those who tell of it, nearest first."""
    rows = {table: [told[table] for told in found] for table in SCHEMAS}
    runs = [row for own in rows["tracker_run"] for row in own]
    run = _coalesced(runs) | {
        "last_seen_at": max((row["last_seen_at"] for row in runs if row["last_seen_at"]), default=None)
    }
    attempts = next((own for own in rows["tracker_attempt"] if own), [])
    base = attempts[0]["source_name"] if attempts else None
    kept = {"tracker_run": [run], "tracker_attempt": attempts}
    for table, moment in _MOMENT.items():
        if table == "tracker_checkpoint":
            told = _saves(rows[table])
        elif table in _KNOWN_BY:
            told = _first_by(rows[table], _KNOWN_BY[table])
        else:
            told = next((own for own in rows[table] if own), [])
        kept[table] = [
            row if row["source_name"] == base else row | {"attempt_no": _attempt_at(attempts, row[moment])}
            for row in told
        ]
    if run["purpose"] == "compile_only":
        # What a precompile leaves behind looks like a save and holds nothing.
        kept["tracker_checkpoint"] = [row | {"is_complete": False} for row in kept["tracker_checkpoint"]]
    _tell_differences(run_id, rows["tracker_resource"], warnings)
    return kept


def _coalesced(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for row in rows:
        told |= {name: value for name, value in row.items() if told.get(name) is None}
    return told


def _first_by(sources: Sequence[_Rows], key: str) -> _Rows:
    """The rows of each thing from the first source that knows it; a machine of a kind only where none is named."""
    kept: _Rows = []
    known: set[Any] = set()
    if any(_INSTANCE.match(str(row[key])) for own in sources for row in own):
        sources = [[row for row in own if not _is_any(row)] for own in sources]
    for own in sources:
        kept += [row for row in own if row[key] not in known]
        known |= {row[key] for row in own}
    return kept


def _is_any(row: Mapping[str, Any]) -> bool:
    """Whether a row tells of which kind a machine was and not which one."""
    return str(row.get("resource_id")).startswith("any ")


def _saves(sources: Sequence[_Rows]) -> _Rows:
    """One row a save: the same address, else the same step, is the same; whole only if nobody denies it."""
    kept: _Rows = []
    for own in sources:
        fresh = []
        for row in own:
            same = next((save for save in kept if _is_same_save(save, row)), None)
            if same is None:
                fresh.append(row)
            else:
                denied = False in (same["is_complete"], row["is_complete"])
                same |= _coalesced((same, row)) | ({"is_complete": False} if denied else {})
        kept += fresh
    return kept


def _is_same_save(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one["uri"] and other["uri"] and one["uri"].rstrip("/") == other["uri"].rstrip("/"):
        return True
    return one["step"] is not None and one["step"] == other["step"]


def _attempt_at(attempts: _Rows, moment: datetime | None) -> int:
    """The attempt that had begun last at a moment; the first one where none had."""
    begun = [row["attempt_no"] for row in attempts if moment is None or row["started_at"] <= moment]
    return max(begun, default=min((row["attempt_no"] for row in attempts), default=1))


def _tell_differences(run_id: str, sources: Sequence[_Rows], warnings: list[str]) -> None:
    """Two sources that differ by more than a minute on how long a node was held: the nearer one counts."""
    held: dict[str, tuple[str, float]] = {}
    for own in sources:
        mine: dict[str, list[float]] = {}
        for row in own:
            if row["left_at"] is not None and row["joined_at"] is not None:
                mine.setdefault(row["resource_id"], []).append((row["left_at"] - row["joined_at"]).total_seconds())
        for resource_id, seconds in sorted(mine.items()):
            name, counted = held.setdefault(resource_id, (own[0]["source_name"], sum(seconds)))
            if abs(counted - sum(seconds)) > 60:
                warnings.append(
                    f"Run {run_id!r} held {resource_id} for {counted:.0f} s by {name} and {sum(seconds):.0f} s by "
                    f"{own[0]['source_name']}; {name} counts."
                )
