"""The two tables that every source of serving fills: servers while they are up, and traffic within one clock hour.

Traffic covers all of a server's recorded uptime: where no record shows what a server did, its counts are null. So a
stretch of traffic is also a stay on the server's machine. Calls of a managed model have no server.
"""

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
    for name, rows in measured.items():
        known = _without_overlap(name, rows, found)
        pieces += [piece for row in known for piece in _hours(row)]
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
    shared = {
        "source_name": source.name,
        "ttft_target_seconds": source.ttft_target_seconds,
        "itl_target_seconds": source.itl_target_seconds,
    }
    tables = {
        SERVER: [up | shared for rows in ups.values() for up in rows],
        TRAFFIC: [piece | shared for piece in _merged(pieces)],
    }
    return ServingRecords({name: table(name, rows) for name, rows in tables.items()}, sorted(set(found)))


def table(name: str, rows: Sequence[Row]) -> pl.DataFrame:
    """Rows as the table of that name, sorted."""
    columns = SCHEMAS[name]
    frame = pl.DataFrame([{column: row.get(column) for column in columns} for row in rows], schema=columns)
    return frame.unique().sort(pl.all(), nulls_last=True)


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


def _hours(row: Row) -> Iterator[Row]:
    """A record cut at full hours; its counts fall evenly on its time and keep their sums."""
    started_at, ended_at = row["started_at"], row["ended_at"]
    at = started_at
    while at < ended_at:
        cut = min(ended_at, at.replace(minute=0, second=0, microsecond=0) + _HOUR)
        counts = {name: _upto(row, name, cut) - _upto(row, name, at) for name in _COUNTS if row.get(name) is not None}
        yield row | counts | {"started_at": at, "ended_at": cut, "is_quiet": _is_quiet(row)}
        at = cut


def _upto(row: Row, name: str, moment: datetime) -> int:
    microsecond = timedelta(microseconds=1)
    whole = (row["ended_at"] - row["started_at"]) // microsecond
    return row[name] * ((moment - row["started_at"]) // microsecond) // whole


def _is_quiet(row: Row) -> bool | None:
    """Whether no request ran in a record; None where it does not show that."""
    shown = [row.get(name) for name in _BUSY]
    return None if all(value is None for value in shown) else not any(shown)


def _merged(pieces: Iterable[Row]) -> Iterator[Row]:
    """Neighbors of one server, hour and state as one row."""
    last: Row | None = None
    for piece in sorted(pieces, key=lambda row: (row["server_id"], row["started_at"])):
        if last and _are_one(last, piece):
            last = _sum(last, piece)
            continue
        if last:
            yield last
        last = piece
    if last:
        yield last


def _are_one(one: Row, other: Row) -> bool:
    same = ("server_id", "model", "is_quiet")
    return (
        one["ended_at"] == other["started_at"]
        and one["started_at"].replace(minute=0, second=0, microsecond=0) + _HOUR >= other["ended_at"]
        and all(one.get(name) == other.get(name) for name in same)
    )


def _sum(one: Row, other: Row) -> Row:
    """Two neighbors as one: counts add, levels are means over time, of percentiles the worse one counts."""
    both = (one, other)
    seconds = [(row["ended_at"] - row["started_at"]).total_seconds() for row in both]
    found = one | {"ended_at": other["ended_at"]}
    for name in (*_COUNTS, *_LEVELS, *_LATENCIES):
        values = [row.get(name) for row in both]
        known = [value for value in values if value is not None]
        if name in _LATENCIES:
            found[name] = max(known, default=None)
        elif len(known) < len(values):
            found[name] = None
        elif name in _COUNTS:
            found[name] = sum(known)
        else:
            weighted = [value * second for value, second in zip(known, seconds, strict=True)]
            found[name] = sum(weighted) / sum(seconds)
    return found
