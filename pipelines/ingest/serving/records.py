"""The two tables that every source of serving fills: servers while they are up, and traffic within one clock hour.

Traffic covers all of a server's recorded uptime: where no record shows what a server did, its counts are null. So a
stretch of traffic is also a stay on the server's machine. Calls of a managed model have no server.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

import polars as pl

from pipelines.config.sources import ServingSource
from pipelines.ingest.schema import schema

SERVER, TRAFFIC = "serving_server", "serving_traffic"
# Times are naive UTC. Input tokens leave out those read from a cache.
SCHEMAS = {
    SERVER: schema(
        "source_name server_id model precision engine resource_id instance_type account_id region_id "
        "accelerators_used:count max_tokens_per_second:number ttft_target_seconds:number itl_target_seconds:number "
        "team evidence started_at ended_at is_end_inferred:flag"
    ),
    TRAFFIC: schema(
        "source_name server_id model resource_id account_id region_id caller started_at ended_at is_quiet:flag "
        "request_count:count error_count:count input_tokens:count cache_read_tokens:count cache_write_tokens:count "
        "output_tokens:count running_count:number waiting_count:number ttft_p90_seconds:number itl_p90_seconds:number"
    ),
}
_COUNTS = ("request_count", "error_count", "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
_LEVELS = ("running_count", "waiting_count")
_LATENCIES = ("ttft_p90_seconds", "itl_p90_seconds")
# What shows that a machine was at work; the last two of its cores, which serve no other table.
_BUSY = ("request_count", "input_tokens", "output_tokens", "running_count", "execution_count", "core_utilization_ratio")
_HOUR = timedelta(hours=1)
# AWS serves nothing before; a clock that was never set begins in 1970.
EARLIEST = datetime(2006, 1, 1)

Row = dict[str, Any]


@dataclass(frozen=True)
class ServingRecords:
    """The tables of SCHEMAS by name, and the warnings of reading them, one sentence each."""

    tables: Mapping[str, pl.DataFrame]
    warnings: Sequence[str] = ()


def records(
    source: ServingSource, servers: Iterable[Row], traffic: Iterable[Row], warnings: Sequence[str] = ()
) -> ServingRecords:
    """The tables of a source. `servers` are their starts, with `stopped_at` where it is recorded; `traffic` are records
    of any length, of counts since the record before. A record that overlaps another of its server is skipped.
    """
    found = [*warnings]
    measured = _by_server(traffic)
    ups = {name: _stretches(rows, measured.get(name, ())) for name, rows in _by_server(servers).items()}
    pieces: list[Row] = []
    edges = {name: sorted({up[at] for up in rows for at in ("started_at", "ended_at")}) for name, rows in ups.items()}
    for name, rows in measured.items():
        known = _without_overlap(name, rows, found)
        pieces += [piece for row in known for piece in _hours(row, edges.get(name, ()))]
        if name not in ups:
            found.append(
                f"Server {name} has traffic and no start, so what it cost is unknown; record server_started with its "
                "`resource`."
            )
        elif any(not any(up["started_at"] <= row["started_at"] < up["ended_at"] for up in ups[name]) for row in known):
            found.append(
                f"Server {name} has traffic while it was not up; those tokens have no cost. Correct the clock or its "
                "start and stop."
            )
    for name, rows in ups.items():
        for up in rows:
            gap = {"server_id": name, "model": up["model"]}
            pieces += [piece for span in _gaps(up, measured.get(name, ())) for piece in _hours(gap | span)]
            if up["started_at"] == up["ended_at"]:
                found.append(f"Server {name} has neither traffic nor a stop; record one, else it holds no machine.")
    targets = source.model_dump(include={"ttft_target_seconds", "itl_target_seconds"})
    tables = {SERVER: [up for rows in ups.values() for up in rows], TRAFFIC: _merged(pieces, edges)}
    whole = {name: [row | targets | {"source_name": source.name} for row in rows] for name, rows in tables.items()}
    return ServingRecords({name: table(name, rows) for name, rows in whole.items()}, sorted(set(found)))


def table(name: str, rows: Sequence[Row]) -> pl.DataFrame:
    """Rows as the table of that name, sorted."""
    return pl.DataFrame(rows, schema=SCHEMAS[name]).unique().sort(pl.all(), nulls_last=True)


def _by_server(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each server by time; a row that is there twice counts once."""
    once = {tuple(sorted((key, value) for key, value in row.items() if value is not None)): row for row in rows}
    found = sorted(
        once.values(), key=lambda row: (row["server_id"], row["started_at"], row.get("ended_at") or row["started_at"])
    )
    return {name: [*group] for name, group in groupby(found, key=lambda row: row["server_id"])}


def _stretches(starts: Sequence[Row], traffic: Sequence[Row]) -> list[Row]:
    """The uptimes of a server. One without a recorded stop ends with its last traffic before the next start."""
    found = []
    for start, following in pairwise([*starts, None]):
        assert start is not None
        until = following["started_at"] if following else datetime.max
        seen = [min(row["ended_at"], until) for row in traffic if start["started_at"] <= row["started_at"] < until]
        stopped_at = start.get("stopped_at")
        # A stop after the next start is that one's.
        is_known = stopped_at is not None and stopped_at <= until
        ended_at = stopped_at if is_known else max([start["started_at"], *seen])
        found.append(start | {"ended_at": ended_at, "is_end_inferred": not is_known})
    return found


def _without_overlap(server_id: str, rows: Sequence[Row], warnings: list[str]) -> list[Row]:
    kept: list[Row] = []
    for row in rows:
        if kept and row["started_at"] < kept[-1]["ended_at"]:
            warnings.append(
                f"Server {server_id} has traffic that overlaps from {row['started_at']}; the later record is skipped. "
                "Export the counters of a server once."
            )
        else:
            kept.append(row)
    return kept


def _gaps(up: Row, traffic: Sequence[Row]) -> Iterator[Row]:
    """The times of an uptime that no record covers."""
    at = up["started_at"]
    for row in traffic:
        if row["ended_at"] > at and row["started_at"] < up["ended_at"]:
            if row["started_at"] > at:
                yield {"started_at": at, "ended_at": row["started_at"]}
            at = row["ended_at"]
    if at < up["ended_at"]:
        yield {"started_at": at, "ended_at": up["ended_at"]}


def _hours(row: Row, edges: Sequence[datetime] = ()) -> Iterator[Row]:
    """A record cut at full hours and at sorted `edges`; its counts fall evenly on its time and keep their sums."""
    at = row["started_at"]
    shown = [row[name] for name in _BUSY if row.get(name) is not None]
    # Whether no request ran; None where the record does not show that.
    is_quiet = not any(shown) if shown else None
    while at < row["ended_at"]:
        cut = min(row["ended_at"], _hour(at) + _HOUR, *edges[(after := bisect_right(edges, at)) : after + 1])
        counts = {name: _upto(row, name, cut) - _upto(row, name, at) for name in _COUNTS if row.get(name) is not None}
        yield row | counts | {"started_at": at, "ended_at": cut, "is_quiet": is_quiet}
        at = cut


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _upto(row: Row, name: str, moment: datetime) -> int:
    microsecond = timedelta(microseconds=1)
    whole = (row["ended_at"] - row["started_at"]) // microsecond
    return row[name] * ((moment - row["started_at"]) // microsecond) // whole


def _merged(pieces: Iterable[Row], edges: Mapping[str, Sequence[datetime]]) -> list[Row]:
    """Neighbors of one server, hour and state as one row, unless an uptime of the server begins or ends there."""
    cuts = {(name, at) for name, moments in edges.items() for at in moments}
    found: list[Row] = []
    for piece in sorted(pieces, key=lambda row: (row["server_id"], row["started_at"])):
        last = found[-1] if found else {}
        is_cut = (piece["server_id"], piece["started_at"]) in cuts
        is_next = last.get("ended_at") == piece["started_at"] and not is_cut
        is_alike = all(last.get(name) == piece.get(name) for name in ("server_id", "model", "is_quiet"))
        if is_next and is_alike and _hour(last["started_at"]) + _HOUR >= piece["ended_at"]:
            found[-1] = _sum(last, piece)
        else:
            found.append(piece)
    return found


def _sum(one: Row, other: Row) -> Row:
    """Two neighbors as one: counts add, levels are means over time, of percentiles the worse one counts."""
    both = [(row, (row["ended_at"] - row["started_at"]).total_seconds()) for row in (one, other)]
    found = one | {"ended_at": other["ended_at"]}
    for name in (*_COUNTS, *_LEVELS, *_LATENCIES):
        known = [(row[name], seconds) for row, seconds in both if row.get(name) is not None]
        if name in _LATENCIES:
            found[name] = max((value for value, _ in known), default=None)
        elif len(known) < len(both):
            found[name] = None
        elif name in _COUNTS:
            found[name] = sum(value for value, _ in known)
        else:
            found[name] = sum(value * seconds for value, seconds in known) / sum(seconds for _, seconds in known)
    return found


# The last part of an ARN; a system profile is its model with the geography before it.
_NAME, _GEOGRAPHY = r"([^/]+)$", r"^(us|eu|apac|jp|au|ca|us-gov|global)\."
# What the bill names where a call was not of a foundation model.
_RESOURCE = r":(?:application-inference-profile|provisioned-model|imported-model|custom-model-deployment)/([^/]+)$"


def model_of(source: ServingSource, *columns: str) -> pl.Expr:
    """The model of a call: as configured for the id in the last of `columns`, else the first id there is."""
    mapped = pl.col(columns[-1]).replace_strict(source.models, default=None, return_dtype=pl.String)
    return pl.coalesce(mapped, pl.coalesce(*columns).str.extract(_NAME).str.replace(_GEOGRAPHY, ""))


def resource_of(column: str) -> pl.Expr:
    """The id of the profile or the provisioned or imported model that was called; null for a foundation model."""
    return pl.col(column).str.extract(_RESOURCE)


def call_records(source: ServingSource, sums: pl.DataFrame, warnings: Sequence[str]) -> ServingRecords:
    """Sums by hour as traffic: `started_at`, `model` and the counts; what else SCHEMAS has may be missing."""
    rows = sums.with_columns(
        source_name=pl.lit(source.name),
        ended_at=pl.col("started_at").dt.offset_by("1h"),
        is_quiet=pl.lit(False),
    )
    whole = pl.concat([table(TRAFFIC, []), rows], how="diagonal_relaxed")
    typed = whole.select(pl.col(name).cast(dtype) for name, dtype in SCHEMAS[TRAFFIC].items())
    # An application profile has an id of letters and digits alone; the id of a model names its vendor.
    is_profile = ~pl.col("model").str.contains(".", literal=True) & ~pl.col("model").is_in([*source.models.values()])
    profiles = typed.filter(is_profile)["model"].unique().sort()
    unnamed = [
        f"{source.name}: {name} is the id of an inference profile or of a provisioned or imported model; add its model "
        f"to `models` of [[serving]] {source.name}."
        for name in profiles
    ]
    return ServingRecords(
        {SERVER: table(SERVER, []), TRAFFIC: typed.sort(pl.all(), nulls_last=True)}, [*warnings, *unnamed]
    )
