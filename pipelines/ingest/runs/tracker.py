"""Training runs from any kind of source in one set of tables (facts training-runs 2).

Each kind of source is a module of this package. Its `read` gives everything a source recorded, or SourceError for
malformed content; its `state`, a text that changes when the records may have, where that is not a listing. An end that
was not recorded stays null here; it is inferred in staging, from `last_seen_at`.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

import polars as pl

from pipelines.base.address import redacted
from pipelines.base.errors import UsageError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.merge import NEARNESS, SourceRecords, merged
from pipelines.ingest.runs.records import SCHEMAS, RunRecords, listed_state, reading

_LISTED = ("checkpoints", "trainer_state", "lightning")
# The module of each kind, imported when a source of the kind is read.
READERS = {kind: f"pipelines.ingest.runs.{kind}" for kind in sorted(NEARNESS)}


def read_runs(source: RunSource) -> RunRecords:
    """Everything a source recorded. Raises SourceError for malformed content."""
    with _reader(source) as reader:
        return reader.read(source)


def read_all(sources: Sequence[RunSource], before: Mapping[str, pl.DataFrame] | None = None) -> RunRecords:
    """The records of all sources, each run once; `before` are the tables as read the last time."""
    return merged([SourceRecords(one.name, one.kind, kept(one, read_runs(one), before or {})) for one in sources])


def runs_fingerprint(source: RunSource) -> str:
    """A digest of the source's state: unchanged as long as nothing of the source changed."""
    with _reader(source) as reader:
        state = f"{source!r}\n{getattr(reader, 'state', listed_state)(source)}"
    return hashlib.sha256(state.encode()).hexdigest()


@contextmanager
def _reader(source: RunSource) -> Iterator[ModuleType]:
    """The module that reads the kind of a source; malformed content is a SourceError with the source."""
    if source.kind not in READERS:
        known = ", ".join(READERS)
        raise UsageError(f"[[runs]] {source.name}: kind {source.kind!r} is not supported; write one of {known}.")
    what = f"[[runs]] {source.name}: the content of {redacted(source.location)}"
    with reading(what, f"check that it is of kind {source.kind!r}"):
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
