"""Servers and traffic of all sources of a configuration as two tables (facts serving 3)."""

import hashlib
from collections.abc import Sequence
from functools import partial

import polars as pl

from pipelines.base.errors import listing
from pipelines.config.sources import ServingSource
from pipelines.ingest.serving import bedrock_log, cloudwatch, events, metrics
from pipelines.ingest.serving.records import SCHEMAS, SERVER, TRAFFIC, ServingRecords, table
from pipelines.warehouse.stores import open_store

_CALLED = ["account_id", "region_id", "started_at"]


def read_serving(sources: Sequence[ServingSource], answered: cloudwatch.Answered | None = None) -> ServingRecords:
    """The tables of all sources. A damaged file is skipped with a warning; `answered` has what APIs answered already.

    A server of two sources is the first's, and a monitor of cores counts where no other source has a server. A call
    counts once over all logs, and CloudWatch counts only hours of which no log of its account and region has calls.
    """
    frames: dict[str, list[pl.DataFrame]] = {name: [table(name, [])] for name in SCHEMAS}
    warnings: list[str] = []
    known: dict[str, str] = {}
    # A log names each call, so it goes before the sums of CloudWatch.
    readers = {
        "events": events.read,
        **dict.fromkeys(("neuron_monitor", "tgi", "vllm"), metrics.read),
        "bedrock_log": partial(bedrock_log.read, seen={}),
        "cloudwatch": partial(cloudwatch.read, answered=answered),
    }
    for source in sorted(sources, key=lambda source: source.kind == "cloudwatch"):
        found = readers[source.kind](source)
        own = {server for frame in found.tables.values() for server in frame["server_id"].drop_nulls().unique()}
        twice = sorted(own & {*known})
        for name, frame in found.tables.items():
            frames[name].append(frame.filter(~pl.col("server_id").is_in(twice).fill_null(False)))
        if source.kind == "cloudwatch":
            earlier = pl.concat(frames[TRAFFIC][:-1]).filter(pl.col("server_id").is_null())
            frames[TRAFFIC][-1] = frames[TRAFFIC][-1].join(earlier.select(_CALLED).unique(), on=_CALLED, how="anti")
        warnings += [*found.warnings]
        warnings += [
            f"Server {name} is recorded by the [[serving]] sources {known[name]} and {source.name}; the first counts. "
            "Remove it from one, or give one of them another server_id."
            for name in twice
        ]
        known |= dict.fromkeys(own - {*known}, source.name)
    whole = {name: pl.concat(parts).sort(pl.all(), nulls_last=True) for name, parts in frames.items()}
    is_monitor = pl.col("source_name").is_in([one.name for one in sources if one.kind == "neuron_monitor"])
    held = whole[SERVER].filter(~is_monitor).select("resource_id")
    monitors = whole[SERVER].filter(is_monitor).join(held, "resource_id", "semi")["server_id"].unique().sort()
    warnings += [
        f"Server {name} monitors a machine that a server of another [[serving]] source holds; only the other counts. "
        f"Remove it from {known[name]}."
        for name in monitors
    ]
    is_other = ~pl.col("server_id").is_in(monitors.implode()).fill_null(False)
    return ServingRecords({name: frame.filter(is_other) for name, frame in whole.items()}, warnings)


def serving_fingerprint(source: ServingSource, answered: cloudwatch.Answered | None = None) -> str:
    """A digest of the source, and of one listing of its files or of the answers of its API, kept in `answered`."""
    if source.location is None:
        state: object = [*cloudwatch.found_answers(source, [], answered)]
    else:
        with listing(f"[[serving]] {source.name}"):
            state = [(item.key, item.size, item.etag) for item in open_store(source.location, **source.reach).list()]
    return hashlib.sha256(repr((source, state)).encode()).hexdigest()
