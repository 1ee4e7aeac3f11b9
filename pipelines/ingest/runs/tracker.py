"""Training runs from any kind of source in one set of tables (facts training-runs 2).

A run id counts as the same run in two sources if all but one of them declare it (`trainledger.run_id`, a label, a
folder): their records are merged, each fact from the source nearest to the machines that has it, and counted once.
Runs that only share a name are kept apart.

Each kind of source is a module of this package. Its `read` gives everything a source recorded, and names what is
malformed; its `state`, a text that changes when the records may have, where that is not a listing. An end that was not
recorded stays null here; it is inferred in staging, from `last_seen_at`.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from importlib import import_module
from types import ModuleType
from typing import Any

import polars as pl

from pipelines.base.address import redacted
from pipelines.base.errors import UsageError, listing
from pipelines.base.parse import reading
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import DECLARED, SCHEMAS, UNREAD, Row, RunRecords, coalesced, listed_state, once

# Nearest to the machines first: writers during the run, schedulers, scorers, and readers of files.
NEARNESS = (
    "events", "sagemaker", "batch", "kubernetes", "slurm", "ray", "mllog", "mlflow", "wandb", "trainer_state",
    "lightning", "checkpoints",
)  # fmt: skip
# The key of a table's rows of one run where several sources may each have some; other tables come from one source.
_KNOWN_BY = {"tracker_resource": "resource_id", "tracker_evaluation": "metric"}
_MOMENT = {
    "tracker_resource": "joined_at",
    "tracker_phase": "started_at",
    "tracker_epoch": "completed_at",
    "tracker_checkpoint": "durable_at",
    "tracker_evaluation": "evaluated_at",
}
_INSTANCE = re.compile("i-|arn:")
# A machine in one spelling, a SageMaker job by its name alone and an instance by its id; the SQL function `machine_id`
# does so for servers.
_NAME = pl.col("resource_id")
_IS_JOB = _NAME.str.contains("-job/", literal=True) & ~_NAME.str.contains(":", literal=True)
_IS_JOBS_NAME = pl.col("instance_type").str.starts_with("ml.") & ~_NAME.str.contains(":|^i-")
_JOBS_NAME = _NAME.str.extract("([^/]+)$").str.to_lowercase()
_MACHINE = pl.when(_IS_JOB | _IS_JOBS_NAME).then(_JOBS_NAME).otherwise(_NAME.str.replace("^arn:.*:instance/", ""))
_Rows = list[Row]
# Tables of records of runs that are merged.
_MERGED = [table for table in SCHEMAS if table != UNREAD]
_LISTED = ("checkpoints", "trainer_state", "lightning")
# The module of each kind, imported when a source of the kind is read.
READERS = {kind: f"pipelines.ingest.runs.{kind}" for kind in sorted(NEARNESS)}


def read_runs(source: RunSource, today: date | None = None) -> RunRecords:
    """Everything a source recorded; what is malformed is left out, with a warning."""
    with _reader(source) as reader:
        read = reader.read(source, today) if source.kind == "events" else reader.read(source)
    stays = read.tables["tracker_resource"].with_columns(resource_id=_MACHINE)
    return replace(read, tables={**read.tables, "tracker_resource": stays})


def read_all(
    sources: Sequence[RunSource], before: Mapping[str, pl.DataFrame] | None = None, today: date | None = None
) -> RunRecords:
    """The records of all sources, each run once; `before` are the tables as read the last time.

    `today` is another day than that of the clock if they were read before.
    """
    return _merged(sources, {one.name: kept(one, read_runs(one, today), before or {}) for one in sources})


def runs_fingerprint(source: RunSource) -> str:
    """A digest of the source's state: unchanged as long as nothing of the source changed."""
    with _reader(source) as reader:
        state = f"{source!r}\n{getattr(reader, 'state', listed_state)(source)}"
    return hashlib.sha256(state.encode()).hexdigest()


def require_known_kind(source: RunSource) -> None:
    """UsageError for a source of a kind that no module reads."""
    if source.kind not in READERS:
        known = ", ".join(READERS)
        raise UsageError(f"[[runs]] {source.name}: kind {source.kind!r} is not supported; write one of {known}.")


@contextmanager
def _reader(source: RunSource) -> Iterator[ModuleType]:
    """The module that reads the kind of a source; malformed content is a SourceError with the source."""
    require_known_kind(source)
    what = f"[[runs]] {source.name}: the content of {redacted(source.location)}"
    with reading(what, f"check that it is of kind {source.kind!r}"), listing(f"[[runs]] {source.name}"):
        yield import_module(READERS[source.kind])


def kept(source: RunSource, read: RunRecords, before: Mapping[str, pl.DataFrame]) -> RunRecords:
    """The records of a source that is a listing, with those of earlier saves that are no longer in it."""
    if source.kind not in _LISTED or not before:
        return read
    tables = dict(read.tables)
    run_ids = tables["tracker_run"]["run_id"]
    for table, keys in (
        ("tracker_checkpoint", ["run_id", "checkpoint_id"]),
        ("tracker_run", ["run_id"]),
        ("tracker_attempt", ["run_id", "attempt_no"]),
    ):
        if (old := _own(before.get(table), table, source.name)) is None:
            continue
        gone = old.join(tables[table].select(keys), on=keys, how="anti")
        if table == "tracker_attempt":
            gone = gone.filter(~pl.col("run_id").is_in(run_ids.to_list()))
        tables[table] = pl.concat([tables[table], gone]).sort(pl.all(), nulls_last=True)
    declared = set(tables["tracker_run"]["run_id"]) if source.kind == "checkpoints" else read.declared
    return RunRecords(tables, read.warnings, frozenset(declared))


def _own(frame: pl.DataFrame | None, table: str, name: str) -> pl.DataFrame | None:
    """The rows of a source in today's columns, whatever version wrote them."""
    if frame is None:
        return None
    schema = SCHEMAS[table]
    lacking = [pl.lit(None, dtype).alias(column) for column, dtype in schema.items() if column not in frame.columns]
    typed = frame.with_columns(lacking).select(pl.col(column).cast(dtype) for column, dtype in schema.items())
    # A run kept apart from another source's has its own name here.
    return typed.filter(pl.col("source_name") == name).with_columns(pl.col("run_id").str.strip_suffix(f"@{name}"))


def _merged(sources: Sequence[RunSource], records: Mapping[str, RunRecords]) -> RunRecords:
    """The records of all sources as one: those of one run are merged or, where its id is not declared, kept apart."""
    warnings = [warning for read in records.values() for warning in read.warnings]
    recorded_by: dict[str, list[str]] = {}
    for source in sorted(sources, key=lambda source: NEARNESS.index(source.kind)):
        for run_id in records[source.name].tables["tracker_run"]["run_id"].unique():
            recorded_by.setdefault(run_id, []).append(source.name)
    several = {run_id: names for run_id, names in sorted(recorded_by.items()) if len(names) > 1}
    rows = {name: _by_run(read, several) for name, read in records.items()}
    extra: dict[str, _Rows] = {table: [] for table in _MERGED}
    for run_id, names in several.items():
        others = [name for name in names if run_id not in records[name].declared][1:]
        same = [name for name in names if name not in others]
        one = _one(run_id, [rows[name][run_id] for name in same], warnings)
        for table in _MERGED:
            extra[table] += one[table]
            for other in others:
                extra[table] += _apart(rows[other][run_id], table, f"{run_id}@{other}", one)
        warnings += [
            f"Run {run_id!r} is recorded by the [[runs]] sources {same[0]} and {other}, and neither declares the "
            f"other's; they are kept apart as {run_id!r} and '{run_id}@{other}', and machine time that both claim "
            f"goes to the first. If they are one run, set `{DECLARED}` in one of them, else rename one."
            for other in others
        ]
    tables = {}
    for table in _MERGED:
        own = [read.tables[table].filter(~pl.col("run_id").is_in(list(several))) for read in records.values()]
        merged = once(table.removeprefix("tracker_"), extra[table])
        tables[table] = pl.concat([*own, pl.DataFrame(merged, schema=SCHEMAS[table], strict=False)])
    unread = [read.tables[UNREAD] for read in records.values()]
    tables[UNREAD] = pl.concat([pl.DataFrame(schema=SCHEMAS[UNREAD]), *unread])
    return RunRecords(tables, warnings)


def _by_run(read: RunRecords, wanted: Mapping[str, Any]) -> dict[str, dict[str, _Rows]]:
    found: dict[str, dict[str, _Rows]] = {run_id: {table: [] for table in _MERGED} for run_id in wanted}
    for table in _MERGED:
        for row in read.tables[table].filter(pl.col("run_id").is_in(list(wanted))).iter_rows(named=True):
            found[row["run_id"]][table].append(row)
    return found


def _apart(own: Mapping[str, _Rows], table: str, name: str, one: Mapping[str, _Rows]) -> _Rows:
    """The rows of a run that only shares another's name, under its own; without the machine time the other has."""
    found = own[table]
    if table == "tracker_resource":
        # A machine known by its type may be the one that the other names.
        named = [row for row in found if not (one[table] and _is_any(row))]
        found = _less(named, one[table], one["tracker_attempt"])
    return [row | {"run_id": name} for row in found]


def _one(run_id: str, found: Sequence[Mapping[str, _Rows]], warnings: list[str]) -> dict[str, _Rows]:
    """The rows of one run from its sources, nearest first."""
    rows = {table: [own[table] for own in found] for table in _MERGED}
    rows["tracker_resource"] = _identified(found)
    runs = [row for own in rows["tracker_run"] for row in own]
    last_at = max((row["last_seen_at"] for row in runs if row["last_seen_at"]), default=None)
    run = coalesced(runs) | {"last_seen_at": last_at}
    attempts = next((own for own in rows["tracker_attempt"] if own), [])
    base = attempts[0]["source_name"] if attempts else None
    kept = {"tracker_run": [run], "tracker_attempt": attempts}
    for table, moment in _MOMENT.items():
        if table == "tracker_checkpoint":
            chosen = _saves(rows[table])
        elif table in _KNOWN_BY:
            chosen = _first_by(rows[table], _KNOWN_BY[table])
        else:
            chosen = next((own for own in rows[table] if own), [])
        kept[table] = [
            row if row["source_name"] == base else row | {"attempt_no": _attempt_at(attempts, row[moment])}
            for row in chosen
        ]
    if run["purpose"] == "compile_only":
        # A precompile leaves empty saves.
        kept["tracker_checkpoint"] = [row | {"is_complete": False} for row in kept["tracker_checkpoint"]]
    _warn_of_differences(run_id, rows["tracker_resource"], warnings)
    return kept


def _identified(found: Sequence[Mapping[str, _Rows]]) -> list[_Rows]:
    """The stays of each source, less nodes known by name alone where the others name an instance for each."""
    sources: list[list[tuple[Row, datetime, datetime]]] = []
    for own in found:
        ends = {row["attempt_no"]: row["ended_at"] or row["last_seen_at"] for row in own["tracker_attempt"]}
        held = [
            (row, row["joined_at"], row["left_at"] or ends.get(row["attempt_no"])) for row in own["tracker_resource"]
        ]
        sources.append([(row, begun, max(begun, ended or begun)) for row, begun, ended in held])

    def is_known(row: Row, begun: datetime, ended: datetime) -> bool:
        # A restart may take other nodes, and clocks differ: the middle of a stay is of one attempt.
        middle = begun + (ended - begun) / 2
        held = [[one for one, since, until in own if since <= middle <= until] for own in sources]
        mine = next(rows for rows in held if row in rows)
        instances = {one["resource_id"] for rows in held for one in rows if rows is not mine and _is_instance(one)}
        names = {one["resource_id"] for one in mine if _is_name(one)}
        return len(instances - {one["resource_id"] for one in mine}) >= len(names)

    return [[row for row, *span in own if not (_is_name(row) and is_known(row, *span))] for own in sources]


def _is_name(row: Mapping[str, Any]) -> bool:
    """Whether a row has the name of a node, of which nothing shows the instance."""
    return row["evidence"] == "nodemap" and not _is_instance(row)


def _is_instance(row: Mapping[str, Any]) -> bool:
    return _INSTANCE.match(str(row["resource_id"])) is not None


def _first_by(sources: Sequence[_Rows], key: str) -> _Rows:
    """The rows of each key from the first source that has it; machines known by type only where none is named."""
    kept: _Rows = []
    known: set[Any] = set()
    if key == "resource_id" and any(_is_instance(row) for own in sources for row in own):
        sources = [[row for row in own if not _is_any(row)] for own in sources]
    for own in sources:
        kept += [row for row in own if row[key] not in known]
        known |= {row[key] for row in own}
    return kept


def _is_any(row: Mapping[str, Any]) -> bool:
    """Whether a row names the type of a machine, not the instance."""
    return str(row.get("resource_id")).startswith("any ")


def _saves(sources: Sequence[_Rows]) -> _Rows:
    """One row per save, by its address, else its step; complete only if no source denies it."""
    kept: _Rows = []
    for own in sources:
        fresh = []
        for row in own:
            same = next((save for save in kept if _is_same_save(save, row)), None)
            if same is None:
                fresh.append(row)
            else:
                denied = False in (same["is_complete"], row["is_complete"])
                same |= coalesced((same, row)) | ({"is_complete": False} if denied else {})
        kept += fresh
    return kept


def _is_same_save(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one["uri"] and other["uri"] and one["uri"].rstrip("/") == other["uri"].rstrip("/"):
        return True
    return one["step"] is not None and one["step"] == other["step"]


def _attempt_at(attempts: _Rows, moment: datetime | None) -> int:
    """The latest attempt that had begun at a moment; the first one where none had."""
    begun = [row["attempt_no"] for row in attempts if moment is None or row["started_at"] <= moment]
    return max(begun, default=min((row["attempt_no"] for row in attempts), default=1))


def _warn_of_differences(run_id: str, sources: Sequence[_Rows], warnings: list[str]) -> None:
    """Warn where sources differ by more than a minute on how long a node was held: the nearer one counts."""
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
                    f"{own[0]['source_name']}; {name} counts. Correct the other, or remove the node from it."
                )


def _less(stays: _Rows, held: _Rows, attempts: _Rows) -> _Rows:
    """The stays without the time in which `held` has the same node; open stays of `held` end with their attempt."""
    ends = {row["attempt_no"]: row["ended_at"] or row["last_seen_at"] for row in attempts}
    remaining: _Rows = []
    for stay in stays:
        pieces = [(stay["joined_at"], stay["left_at"])]
        for row in held:
            if row["resource_id"] == stay["resource_id"]:
                until = row["left_at"] or ends.get(row["attempt_no"]) or row["joined_at"]
                pieces = [rest for piece in pieces for rest in _without(piece, row["joined_at"], until)]
        remaining += [stay | {"joined_at": begun, "left_at": ended} for begun, ended in pieces]
    return remaining


def _without(
    piece: tuple[datetime, datetime | None], begun: datetime, ended: datetime
) -> list[tuple[datetime, datetime | None]]:
    first, last = piece
    if ended <= first or (last is not None and begun >= last):
        return [piece]
    rest: list[tuple[datetime, datetime | None]] = [(first, begun)] if first < begun else []
    # A stay without an end continues after the held time.
    return [*rest, (ended, last)] if last is None or ended < last else rest
