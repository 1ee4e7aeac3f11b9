"""Training runs as recorded, from any kind of source, in one set of tables (facts training-runs 2).

Each kind of source is a module `run_<kind>` with `read` and `state`. An end nobody recorded stays null here;
it is inferred in staging, from `last_seen_at`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

import polars as pl

from pipelines.base.address import redacted
from pipelines.base.errors import SourceError, UsageError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.clean import MALFORMED, clean, form_of
from pipelines.warehouse.storage import Store, open_store

# The tag, parameter or label by which another tool's record says which run it is.
DECLARED = "trainledger.run_id"
_AT = pl.Datetime("ms")
_TEXT, _COUNT, _NUMBER, _FLAG = pl.String, pl.Int64, pl.Float64, pl.Boolean

# Times are naive UTC; tokens_seen and samples_seen count over the run's lineage, not one launch, in tokens_unit:
# those of the whole job, or of one of its tokens_unit_count devices or cores.
SCHEMAS: dict[str, dict[str, pl.DataType | type[pl.DataType]]] = {
    "tracker_run": {
        "source_name": _TEXT,
        "run_id": _TEXT,
        "source_system": _TEXT,
        "model": _TEXT,
        "dataset": _TEXT,
        "dataset_tokens": _NUMBER,
        "dataset_samples": _NUMBER,
        "epoch_unit": _TEXT,
        "epoch_unit_size": _NUMBER,
        "tokens_unit": _TEXT,
        "tokens_unit_count": _COUNT,
        "params_total": _NUMBER,
        "params_active": _NUMBER,
        "n_layers": _COUNT,
        "n_heads": _COUNT,
        "head_dim": _COUNT,
        "seq_len": _COUNT,
        "global_batch_samples": _COUNT,
        "precision": _TEXT,
        "code_revision": _TEXT,
        "target_metric": _TEXT,
        "target_value": _NUMBER,
        "target_direction": _TEXT,
        "target_passes": _COUNT,
        "purpose": _TEXT,
        "experiment": _TEXT,
        "team": _TEXT,
        "owner": _TEXT,
        **dict.fromkeys(("parent_run_id", "base_checkpoint_id", "compile_run_id", "workload_id"), _TEXT),
        "status": _TEXT,
        "started_at": _AT,
        "ended_at": _AT,
        "last_seen_at": _AT,
    },
    "tracker_attempt": {
        "source_name": _TEXT,
        "run_id": _TEXT,
        "attempt_no": _COUNT,
        "started_at": _AT,
        "ended_at": _AT,
        "end_reason": _TEXT,
        "last_seen_at": _AT,
    },
    "tracker_resource": {
        "source_name": _TEXT,
        "run_id": _TEXT,
        "attempt_no": _COUNT,
        "resource_id": _TEXT,
        "instance_type": _TEXT,
        "account_id": _TEXT,
        "region_id": _TEXT,
        "accelerators_used": _COUNT,
        "reservation_id": _TEXT,
        "node_rank": _COUNT,
        "market": _TEXT,
        "joined_at": _AT,
        "left_at": _AT,
        "evidence": _TEXT,
    },
    "tracker_phase": {
        "source_name": _TEXT,
        "run_id": _TEXT,
        "attempt_no": _COUNT,
        "phase": _TEXT,
        "started_at": _AT,
        "ended_at": _AT,
    },
    "tracker_epoch": {
        "source_name": _TEXT,
        "run_id": _TEXT,
        "attempt_no": _COUNT,
        "epoch_index": _COUNT,
        "started_at": _AT,
        "completed_at": _AT,
        "step": _COUNT,
        "tokens_seen": _NUMBER,
        "samples_seen": _NUMBER,
        "fraction": _NUMBER,
    },
    "tracker_checkpoint": {
        "source_name": _TEXT,
        "run_id": _TEXT,
        "attempt_no": _COUNT,
        "checkpoint_id": _TEXT,
        "step": _COUNT,
        "uri": _TEXT,
        "save_started_at": _AT,
        "durable_at": _AT,
        "stall_seconds": _NUMBER,
        "bytes": _COUNT,
        "is_resumable": _FLAG,
        "is_complete": _FLAG,
        "tokens_seen": _NUMBER,
    },
    "tracker_evaluation": {
        "source_name": _TEXT,
        "run_id": _TEXT,
        "attempt_no": _COUNT,
        "step": _COUNT,
        "metric": _TEXT,
        "value": _NUMBER,
        "split": _TEXT,
        "evaluated_at": _AT,
    },
}


@dataclass(frozen=True)
class RunRecords:
    """The tables of SCHEMAS by name, and what was read with a doubt, one sentence each."""

    tables: dict[str, pl.DataFrame]
    warnings: list[str] = field(default_factory=list)
    # Runs whose id somebody gave on purpose (a tag, a label, a folder): other sources may tell of the same run.
    declared: frozenset[str] = frozenset()


class RunReader(Protocol):
    """What a module that reads one kind of source offers."""

    def read(self, source: RunSource) -> RunRecords:
        """Everything the source recorded. Raises SourceError for what is not what it claims to be."""
        ...

    def state(self, source: RunSource) -> str:
        """A text that changes when what the source recorded may have; as cheap as one listing."""
        ...


# The module of each kind, imported when a source of the kind is read.
READERS = {
    "checkpoints": "pipelines.ingest.runs.checkpoints",
    "events": "pipelines.ingest.runs.events",
    "kubernetes": "pipelines.ingest.runs.kubernetes",
    "lightning": "pipelines.ingest.runs.lightning",
    "mlflow": "pipelines.ingest.runs.mlflow",
    "mllog": "pipelines.ingest.runs.mllog",
    "sagemaker": "pipelines.ingest.runs.sagemaker",
    "slurm": "pipelines.ingest.runs.slurm",
    "trainer_state": "pipelines.ingest.runs.trainer_state",
    "wandb": "pipelines.ingest.runs.wandb",
}


def records(
    source: RunSource,
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    warnings: Sequence[str],
    declared: Iterable[str] = (),
) -> RunRecords:
    """Rows by table (`run`, `attempt`, …) as typed and sorted tables; what a row leaves out is null."""
    tables, doubts = {}, [*warnings]
    for table, schema in SCHEMAS.items():
        thing = table.removeprefix("tracker_")
        told = clean(thing, [{"source_name": source.name, **row} for row in rows.get(thing, ())], schema, doubts)
        frame = pl.DataFrame(told, schema=schema, strict=False)
        tables[table] = frame.unique().sort(pl.all(), nulls_last=True)
    return RunRecords(tables, sorted(set(doubts)), frozenset(declared))


def read_runs(source: RunSource) -> RunRecords:
    """Everything a source recorded. Raises SourceError for what is not what it claims to be."""
    with _well_formed(source):
        return _reader(source).read(source)


def read_all(sources: Sequence[RunSource], before: Mapping[str, pl.DataFrame] | None = None) -> RunRecords:
    """Everything all sources recorded, a run that several tell of once; `before` is what was read the last time."""
    from pipelines.ingest.runs.merge import Told, merged
    from pipelines.ingest.runs.rotation import kept

    read = [Told(source.name, source.kind, kept(source, read_runs(source), before or {})) for source in sources]
    return merged(read)


def runs_fingerprint(source: RunSource) -> str:
    """A digest of the source's state: unchanged as long as nothing of the source changed."""
    with _well_formed(source):
        state = f"{source!r}\n{_reader(source).state(source)}"
    return hashlib.sha256(state.encode()).hexdigest()


def open_run_store(source: RunSource) -> Store:
    """The store a run source lives in."""
    return open_store(source.location, endpoint_url=source.endpoint_url, region=source.region, profile=source.profile)


def listed_state(source: RunSource) -> str:
    """The state of a source that is a folder of files: one listing."""
    return "\n".join(f"{item.key} {item.size} {item.etag}" for item in open_run_store(source).list())


@contextmanager
def _well_formed(source: RunSource) -> Iterator[None]:
    """JSON that is whole but lacks a part, or holds another than it should, is refused by the source's name."""
    try:
        yield
    except MALFORMED as error:
        where = f"[[runs]] {source.name}: what {redacted(source.location)} gives"
        raise SourceError(f"{where} {form_of(error)}; is it whole, and of kind {source.kind!r}?") from error


def _reader(source: RunSource) -> RunReader:
    if source.kind not in READERS:
        known = ", ".join(READERS)
        raise UsageError(f"[[runs]] {source.name}: kind {source.kind!r} is not read; write one of {known}.")
    return import_module(READERS[source.kind])  # type: ignore[return-value]
