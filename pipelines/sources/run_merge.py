"""Several sources, one set of runs: what tells of one run is brought together, what may only seem to is kept apart.

A run id counts as the same run in two sources where all but one of them were told it on purpose (`trainledger.run_id`,
a label, a folder). Each fact then comes from the source nearest to the machines that knows it, and is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from pipelines.sources.run_tracker import DECLARED, SCHEMAS, RunRecords

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
_Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Told:
    """What one source recorded, with its name and kind."""

    name: str
    kind: str
    records: RunRecords


def merged(sources: Sequence[Told]) -> RunRecords:
    """The records of all sources as one; a run told twice is brought together or, where nobody said so, kept apart."""
    near = sorted(sources, key=lambda told: NEARNESS.index(told.kind))
    tellers: dict[str, list[Told]] = {}
    for told in near:
        for run_id in told.records.tables["tracker_run"]["run_id"].unique().sort():
            tellers.setdefault(run_id, []).append(told)
    warnings = [warning for told in sources for warning in told.records.warnings]
    renamed: dict[str, dict[str, str]] = {}
    together: dict[str, list[Told]] = {}
    for run_id, found in sorted(tellers.items()):
        if len(found) > 1:
            own = [told for told in found if run_id not in told.records.declared]
            for stranger in own[1:]:
                apart = f"{run_id}@{stranger.name}"
                renamed.setdefault(stranger.name, {})[run_id] = apart
                warnings.append(
                    f"Run {run_id!r} is recorded by the [[runs]] sources {own[0].name} and {stranger.name}, and "
                    f"neither names the other's; they are kept apart as {run_id!r} and {apart!r}. If they are one, "
                    f"give it `{DECLARED}` in one of them, else rename one."
                )
            same = [told for told in found if told not in own[1:]]
            if len(same) > 1:
                together[run_id] = same
    tables = {
        table: pl.concat(
            [
                pl.DataFrame(schema=schema),
                *(_apart(told, table, renamed.get(told.name, {}), together) for told in sources),
            ]
        )
        for table, schema in SCHEMAS.items()
    }
    for run_id, found in together.items():
        for table, rows in _one(run_id, found, warnings).items():
            tables[table] = pl.concat([tables[table], pl.DataFrame(rows, schema=SCHEMAS[table], strict=False)])
    return RunRecords(tables, warnings)


def _apart(told: Told, table: str, renamed: Mapping[str, str], together: Mapping[str, list[Told]]) -> pl.DataFrame:
    mine = [run_id for run_id, found in together.items() if told in found]
    frame = told.records.tables[table].filter(~pl.col("run_id").is_in(mine))
    return frame.with_columns(pl.col("run_id").replace(renamed)) if renamed else frame


def _one(run_id: str, found: Sequence[Told], warnings: list[str]) -> dict[str, _Rows]:
    """The rows of one run from those who tell of it, nearest first."""
    rows = {
        table: [told.records.tables[table].filter(pl.col("run_id") == run_id).to_dicts() for told in found]
        for table in SCHEMAS
    }
    run = _coalesced([row for own in rows["tracker_run"] for row in own])
    run["last_seen_at"] = max(row["last_seen_at"] for own in rows["tracker_run"] for row in own if row["last_seen_at"])
    attempts = next((own for own in rows["tracker_attempt"] if own), [])
    merged_rows = {"tracker_run": [run], "tracker_attempt": attempts}
    for table, moment in _MOMENT.items():
        if table == "tracker_checkpoint":
            kept = _saves(rows[table])
        elif table in _KNOWN_BY:
            kept = _first_by(rows[table], _KNOWN_BY[table])
        else:
            kept = next((own for own in rows[table] if own), [])
        base = attempts[0]["source_name"] if attempts else None
        merged_rows[table] = [
            row if row["source_name"] == base else row | {"attempt_no": _attempt_at(attempts, row[moment])}
            for row in kept
        ]
    if run.get("purpose") == "compile_only":
        # What a precompile leaves behind looks like a save and holds nothing.
        merged_rows["tracker_checkpoint"] = [row | {"is_complete": False} for row in merged_rows["tracker_checkpoint"]]
    _tell_differences(run_id, rows["tracker_resource"], warnings)
    return merged_rows


def _coalesced(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for row in rows:
        told |= {name: value for name, value in row.items() if told.get(name) is None}
    return told


def _first_by(sources: Sequence[_Rows], key: str) -> _Rows:
    """The rows of each thing from the first source that knows it."""
    kept: _Rows = []
    known: set[Any] = set()
    for own in sources:
        kept += [row for row in own if row[key] not in known]
        known |= {row[key] for row in own}
    return kept


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
