"""Recorded saves that `save_total_limit`, `keep_latest_k` or lifecycle rules removed since; they cost money."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import SCHEMAS, RunRecords

_LISTED = ("checkpoints", "trainer_state", "lightning")


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
