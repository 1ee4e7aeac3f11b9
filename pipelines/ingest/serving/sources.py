"""Servers and traffic of all sources of a configuration as two tables (facts serving 3)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from pipelines.config.sources import ServingSource
from pipelines.ingest.serving import bedrock_log, events, vllm
from pipelines.ingest.serving.records import SCHEMAS, ServingRecords, table
from pipelines.warehouse.stores import open_store

READERS: Mapping[str, Callable[[ServingSource], ServingRecords]] = {
    "bedrock_log": bedrock_log.read,
    "events": events.read,
    "vllm": vllm.read,
}


def read_serving(sources: Sequence[ServingSource]) -> ServingRecords:
    """The tables of all sources; SourceError for a file that cannot be read. A server of two sources is the first's."""
    frames: dict[str, list[pl.DataFrame]] = {name: [table(name, [])] for name in SCHEMAS}
    warnings: list[str] = []
    known: dict[str, str] = {}
    for source in sources:
        found = READERS[source.kind](source)
        own = {server for frame in found.tables.values() for server in frame["server_id"].drop_nulls().unique()}
        twice = sorted(own & {*known})
        for name, frame in found.tables.items():
            frames[name].append(frame.filter(~pl.col("server_id").is_in(twice).fill_null(False)))
        warnings += [*found.warnings]
        warnings += [
            f"Server {name} is recorded by the [[serving]] sources {known[name]} and {source.name}; the first counts. "
            "Remove it from one, or give one of them another server_id."
            for name in twice
        ]
        known |= dict.fromkeys(own - {*known}, source.name)
    tables = {name: pl.concat(parts).sort(pl.all(), nulls_last=True) for name, parts in frames.items()}
    return ServingRecords(tables, warnings)


def serving_fingerprint(source: ServingSource) -> str:
    """A digest of the source and of its files: one listing."""
    listing = [(item.key, item.size, item.etag) for item in open_store(source.location, **source.reach).list()]
    return hashlib.sha256(repr((source, listing)).encode()).hexdigest()
