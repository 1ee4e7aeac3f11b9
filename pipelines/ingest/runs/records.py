"""The tables every run source fills: their columns, and rows of a source as typed tables (facts training-runs 2)."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl

from pipelines.base.errors import MalformedError, shown
from pipelines.base.groups import grouped
from pipelines.base.limits import MOST, MOST_ACCELERATORS
from pipelines.base.parse import ParseError, reading
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.event import TARGET
from pipelines.ingest.schema import FUTURE, Schema, latest, moment_of, schema
from pipelines.warehouse.storage import Store
from pipelines.warehouse.stores import open_store

# More epochs than any run has; each would be a row.
MOST_EPOCHS = 1_000_000
# Numbers of which parts, and any size, are possible; of all others there are 0 or more, at least one.
_MEASURES = ("value", "target_value", "fraction", "stall_seconds")
_MOST_OF = {
    "accelerators_used": MOST_ACCELERATORS,
    "tokens_unit_count": MOST_ACCELERATORS,
    "target_value": 1e150,
    "value": 1e150,
}
# Start and end columns by table.
_SPAN = ("started_at", "ended_at")
_SPANS = {"run": _SPAN, "attempt": _SPAN, "phase": _SPAN, "resource": ("joined_at", "left_at")}
# The key of a table's rows, and when what a row describes was over.
_KEYS = {
    "run": ("ended_at", "run_id"),
    "attempt": ("ended_at", "run_id", "attempt_no"),
    "resource": ("left_at", "run_id", "attempt_no", "resource_id", "joined_at"),
    "phase": ("ended_at", "run_id", "attempt_no", "phase", "started_at"),
    "epoch": ("completed_at", "run_id", "attempt_no", "epoch_index"),
    "checkpoint": ("durable_at", "run_id", "checkpoint_id"),
}
# So much of the last epoch may be missing.
_DROPPED = 0.05
# How names of metrics end that the trainer logs of an evaluation's own speed.
SPEEDS = ("_runtime", "_per_second", "_model_preparation_time")
# The tag, parameter or label that declares the run id in another tool's record.
DECLARED = "trainledger.run_id"
UNREAD = "tracker_unread_run"
_FIRST = datetime(1970, 1, 1)
# What follows the run in the warning of one that is not read.
ASIDE = " is set aside"
Row = dict[str, Any]
Tables = Mapping[str, Iterable[Mapping[str, Any]]]


def utc(value: datetime | str | float | None) -> datetime | None:
    """Naive UTC from a time, ISO text or seconds since 1970; None for none. ValueError for what no calendar has."""
    if value is None or value == "":
        return None
    if isinstance(value, int | float):
        return moment_of(value)
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at


def at_ms(ms: Any) -> datetime | None:
    """Milliseconds since 1970 as naive UTC; None for none."""
    return moment_of(int(ms) / 1000) if ms else None


def set_aside(run_id: str, why: str) -> str:
    """The warning of a run that is not read."""
    return f"Run {shown(run_id)}{ASIDE}, so what its machines cost is no run's: {why}"


def keep_latest(kept: dict[Any, Any], record_id: Any, record: Any, progress: Callable[[Any], Any]) -> None:
    """Keep, of the records of one thing in several saved answers, the one that has progressed furthest.

    ParseError for an id that is not text; that of several texts is a tuple.
    """
    if not record_id or not isinstance(record_id, str | tuple):
        raise ParseError("has an id that is not text")
    kept[record_id] = max(kept.get(record_id, record), record, key=progress)


def epoch_count(position: float, *, is_end: bool = False) -> int:
    """Whole epochs done at a position. ValueError for more than any run has.

    At the end of a completed run 2.97 is three: its Trainer dropped batches that were too few to accumulate.
    """
    if position > MOST_EPOCHS:
        raise ValueError(f"it reports epoch {position:g}")
    return int(position + (_DROPPED if is_end else 1e-6))


def is_evaluation(metric: str) -> bool:
    """Whether the name of a metric is that of an evaluation: `val_loss`, `eval/accuracy`, but not its speed."""
    kind = metric.replace("/", "_").split("_")[0]
    return kind in ("val", "valid", "validation", "test", "eval") and not metric.endswith(SPEEDS)


def coalesced(rows: Iterable[Mapping[str, Any]]) -> Row:
    """The first known value of each column."""
    found: Row = {}
    for row in rows:
        found |= {name: value for name, value in row.items() if found.get(name) is None}
    return found


def once(table: str, rows: Iterable[Row]) -> list[Row]:
    """One row of each key: of several the facts of the one that ended last, else of the next that has them."""
    if table not in _KEYS:
        return list(rows)
    end, *key = _KEYS[table]
    rows = [
        same[0] if len(same) == 1 else coalesced(sorted(same, key=lambda row: row[end] or datetime.min, reverse=True))
        for same in grouped(rows, lambda row: tuple(row[name] for name in key)).values()
    ]
    return _apart_in_time(rows) if table == "resource" else rows


def _apart_in_time(stays: Iterable[Row]) -> list[Row]:
    """Stays of an attempt on a machine as stays that do not overlap: it is held once at a time."""
    kept: dict[tuple[Any, ...], list[Row]] = {}
    for stay in sorted(stays, key=lambda stay: stay["joined_at"] or datetime.min):
        held = kept.setdefault((stay["run_id"], stay["attempt_no"], stay["resource_id"]), [])
        last = held[-1] if held else None
        if last and stay["joined_at"] and (last["left_at"] is None or stay["joined_at"] < last["left_at"]):
            # The later one knows whether the machine is still held.
            left_at = stay["left_at"] and max(stay["left_at"], last["left_at"] or datetime.min)
            held[-1] = coalesced((last, stay)) | {"left_at": left_at}
        else:
            held.append(stay)
    return [stay for held in kept.values() for stay in held]


def _in_turn(records: Sequence[dict[str, list[Row]]]) -> dict[str, list[Row]]:
    """Records of one run as one: their attempts follow one another, and the last to start has the run's end."""
    found: dict[str, list[Row]] = {}
    attempts = 0
    for record in sorted(records, key=lambda record: record["run"][0]["started_at"] or datetime.min):
        for table, rows in record.items():
            if table != "run":
                rows = [row | {"attempt_no": row["attempt_no"] + attempts} for row in rows]
            found.setdefault(table, []).extend(rows)
        attempts += max((row["attempt_no"] for row in record.get("attempt", ())), default=0)
    runs = found["run"]
    last, ends = runs[-1], [run["ended_at"] for run in runs if run.get("ended_at")]
    seen = [run["last_seen_at"] for run in runs if run.get("last_seen_at")]
    span = {
        "status": last.get("status"),
        "started_at": runs[0]["started_at"],
        "ended_at": max(ends) if last.get("ended_at") else None,
        "last_seen_at": max(seen, default=None),
    }
    return found | {"run": [coalesced(reversed(runs)) | span]}


def clean(table: str, rows: Sequence[Mapping[str, Any]], columns: Schema, warnings: list[str]) -> list[dict[str, Any]]:
    """Rows with the columns of the schema; a number no table can hold, and an end before its start, are unknown."""
    opens, closes = _SPANS.get(table, ("", ""))
    found = []
    for row in rows:
        kept = {name: _held(row, name, dtype, warnings) for name, dtype in columns.items()}
        begun, ended = kept.get(opens), kept.get(closes)
        if begun is not None and ended is not None and ended < begun:
            warnings.append(
                f"Run {kept['run_id']}: {closes} of its {table} is {ended}, before {opens} {begun}; "
                "it is read as unknown. Correct it in the source."
            )
            kept[closes] = None
        # A target of which a part is unknown is none.
        if table == "run" and None in [kept[name] for name in TARGET]:
            kept |= dict.fromkeys(TARGET)
        found.append(kept)
    return found


def _held(row: Mapping[str, Any], name: str, dtype: Any, warnings: list[str]) -> Any:
    value = row.get(name)
    if dtype == pl.String and isinstance(value, str | int | float):
        # A text that was cut may end in half of a character.
        return str(value).encode(errors="replace").decode()
    if value is None or (dtype not in (pl.Int64, pl.Float64) and not isinstance(value, Mapping | list)):
        return value
    if isinstance(value, float) and name == "value" and not math.isfinite(value):
        # A run that diverges measures NaN.
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST_OF.get(name, MOST):
        if dtype == pl.Float64 and (name in _MEASURES or value == 0 or value >= 1):
            return float(value)
        if dtype == pl.Int64 and int(value) == value:
            return int(value)
    run_id, shown = row.get("run_id"), str(value)[:40]
    warnings.append(f"Run {run_id}: {name} cannot be {shown!r}; it is read as unknown. Correct it in the source.")
    return None


# Times are naive UTC; tokens_seen and samples_seen count over the run's lineage, not one launch, in tokens_unit:
# those of the whole job, or of one of its tokens_unit_count devices or cores.
SCHEMAS: dict[str, Schema] = {
    "tracker_run": schema(
        "source_name run_id source_system model dataset dataset_tokens:number dataset_samples:number epoch_unit "
        "epoch_unit_size:number tokens_unit tokens_unit_count:count params_total:number params_active:number "
        "n_layers:count n_heads:count head_dim:count seq_len:count global_batch_samples:count precision code_revision "
        "target_metric target_value:number target_direction target_passes:count purpose experiment team owner "
        "parent_run_id base_checkpoint_id compile_run_id workload_id status started_at ended_at last_seen_at"
    ),
    "tracker_attempt": schema(
        "source_name run_id attempt_no:count started_at ended_at end_reason last_seen_at tokens_seen:number"
    ),
    "tracker_resource": schema(
        "source_name run_id attempt_no:count resource_id instance_type account_id region_id accelerators_used:count "
        "reservation_id node_rank:count market joined_at left_at evidence"
    ),
    "tracker_phase": schema("source_name run_id attempt_no:count phase started_at ended_at"),
    "tracker_epoch": schema(
        "source_name run_id attempt_no:count epoch_index:count started_at completed_at step:count tokens_seen:number "
        "samples_seen:number fraction:number"
    ),
    "tracker_checkpoint": schema(
        "source_name run_id attempt_no:count checkpoint_id step:count uri save_started_at durable_at "
        "stall_seconds:number bytes:count is_resumable:flag is_complete:flag tokens_seen:number"
    ),
    "tracker_evaluation": schema(
        "source_name run_id attempt_no:count step:count metric value:number split evaluated_at"
    ),
    # Runs of which a record cannot be read, with what else is known of them; null is unknown, also the run.
    UNREAD: schema(
        "source_name run_id workload_id model dataset seq_len:count global_batch_samples:count precision "
        "target_metric target_value:number target_direction instance_type started_at last_seen_at"
    ),
}


@dataclass(frozen=True)
class RunRecords:
    """The tables of SCHEMAS by name, and the warnings of reading them, one sentence each."""

    tables: dict[str, pl.DataFrame]
    warnings: list[str] = field(default_factory=list)
    # Runs whose id was declared (a tag, a label, a folder): other sources may record the same run.
    declared: frozenset[str] = frozenset()


class RunRows:
    """Rows of one source by table (`run`, `attempt`, …), its warnings and declared run ids, while it is read."""

    def __init__(self, source: RunSource):
        self.source = source
        # The tables of each record of a run.
        self.found: dict[str | None, list[dict[str, list[Row]]]] = {}
        self.unread: list[Row] = []
        self.warnings: list[str] = []
        self.declared: set[str] = set()

    def id_of(self, tags: Mapping[str, Any], own: Any) -> Any:
        """The run id that tags declare, which is noted, else the tool's `own`."""
        declared = tags.get(DECLARED)
        if declared and isinstance(declared, str):
            self.declared.add(declared)
        return declared or own

    def add(self, run_id: Any, where: str, read: Callable[..., Tables], *facts: Any) -> None:
        """Add the rows `read` makes of `facts`, in attempt 1 where none is named; a malformed run is set aside."""
        try:
            with reading(where):
                if not run_id or not isinstance(run_id, str):
                    raise ParseError("has an id that is not text")
                tables = {
                    table: [({} if table == "run" else {"attempt_no": 1}) | dict(row) for row in rows]
                    for table, rows in read(*facts).items()
                }
                times = [at for rows in tables.values() for row in rows for at in row.values() if type(at) is datetime]
                if times and not _FIRST <= min(times) <= max(times) <= latest():
                    odd = f"{min(times)}, before {_FIRST.year}" if min(times) < _FIRST else f"{max(times)}, {FUTURE}"
                    raise ParseError(f"has the time {odd}")
        except MalformedError as error:
            self.set_aside(str(run_id), str(error))
        else:
            if tables:
                self.found.setdefault(run_id, []).append(tables)

    @contextmanager
    def skipping(self, where: str, fix: str = "fix or remove it") -> Iterator[None]:
        """Skip a malformed file or record, with a warning that names it; it may be of any run."""
        try:
            with reading(where, fix):
                yield
        except MalformedError as error:
            self.warnings.append(f"{error} Until then it is skipped, and comparisons stay indicative.")
            self.unread.append({"run_id": None})

    def set_aside(self, run_id: str, why: str, **known: Any) -> None:
        """Leave a run out of all tables but that of the unread ones, with what is `known` of it."""
        self.warnings.append(set_aside(run_id, why))
        self.unread.append({"run_id": run_id, **known})

    @property
    def runs(self) -> list[Row]:
        return [run for records in self.found.values() for tables in records for run in tables["run"]]

    def records(self, nothing: str = "") -> RunRecords:
        """The typed and sorted tables; `nothing` is the warning where there is no run."""
        warnings, tables = [*self.warnings], {}
        found: dict[str, list[Row]] = {"unread_run": self.unread} if self.unread else {}
        for run_id, record in self._apart(warnings):
            for table, rows in record.items():
                found.setdefault(table, []).extend({"run_id": run_id} | row for row in rows)
        if nothing and not found:
            warnings.append(f"{nothing}: no run is recorded there yet; check `location` if training has run.")
        for table, columns in SCHEMAS.items():
            thing = table.removeprefix("tracker_")
            named = [{"source_name": self.source.name} | row for row in found.get(thing, ())]
            rows = once(thing, clean(thing, named, columns, warnings))
            frame = pl.DataFrame(rows, schema=columns, strict=False)
            tables[table] = frame.unique().sort(pl.all(), nulls_last=True)
        return RunRecords(tables, sorted(set(warnings)), frozenset(self.declared))

    def _apart(self, warnings: list[str]) -> Iterator[tuple[str | None, dict[str, list[Row]]]]:
        """Each run with its tables: records that declare one id are one run, others of one id are several."""
        aside = {row["run_id"] for row in self.unread} - {None}
        for run_id, records in self.found.items():
            if run_id in aside:
                continue
            if len(records) == 1 or run_id in self.declared:
                yield run_id, records[0] if len(records) == 1 else _in_turn(records)
                continue
            yield from ((run_id if n == 1 else f"{run_id}@{n}", record) for n, record in enumerate(records, start=1))
            warnings.append(
                f"Run {run_id!r} is recorded {len(records)} times by the [[runs]] source {self.source.name}; the "
                f"records are kept apart as {run_id!r} to '{run_id}@{len(records)}'. If they are one run, set "
                f"`{DECLARED}` in each, else rename them."
            )


def open_run_store(source: RunSource) -> Store:
    return open_store(source.location, **source.reach)


def saved_files(rows: RunRows, suffix: str) -> Iterator[tuple[str, bytes, datetime]]:
    """Address, content and time of each file of a source whose name ends in `suffix`."""
    store = open_run_store(rows.source)
    for item in store.list():
        with rows.skipping(store.uri(item.key)):
            if item.key.endswith(suffix):
                yield store.uri(item.key), store.read(item.key), moment_of(item.modified_at.timestamp())


def listed_state(source: RunSource) -> str:
    """The state of a source that is a folder of files: one listing."""
    return "\n".join(f"{item.key} {item.size} {item.etag}" for item in open_run_store(source).list())
