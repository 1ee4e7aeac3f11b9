"""The tables every run source fills: their columns, and rows of a source as typed tables (facts training-runs 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipelines.config.sources import RunSource
from pipelines.ingest.runs.clean import clean
from pipelines.warehouse.storage import Store
from pipelines.warehouse.stores import open_store

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


def open_run_store(source: RunSource) -> Store:
    """The store a run source lives in."""
    return open_store(source.location, endpoint_url=source.endpoint_url, region=source.region, profile=source.profile)


def listed_state(source: RunSource) -> str:
    """The state of a source that is a folder of files: one listing."""
    return "\n".join(f"{item.key} {item.size} {item.etag}" for item in open_run_store(source).list())
