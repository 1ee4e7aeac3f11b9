"""Laws of serving: tokens, time and dollars are conserved over any traffic, servers and restarts."""

from __future__ import annotations

from datetime import UTC, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab import Lab
from support.ledger_law import LINES_THAT_DO_NOT_SUM
from support.random_ledgers import FIRST, HOURS, MONTH, Stay, any_stays, machine_line, tracker

from pipelines.analysis.crossover import Capacity, crossover_tokens
from pipelines.config.sources import ServingServer, ServingSource
from pipelines.ingest.serving.records import SERVER, TRAFFIC, ServingRecords, records
from pipelines.ingest.serving.sources import read_serving

FEW = settings(max_examples=10, deadline=None, derandomize=True, database=None)
SOURCE = ServingSource(name="servers", location="servers")
MINUTES = HOURS * 60
MACHINE = "i-0a"
# Minutes at which records end, and what each counted; None where nothing is recorded.
any_traffic = st.lists(
    st.tuples(st.integers(1, 200), st.none() | st.integers(0, 10**9)), min_size=1, max_size=8
)  # fmt: skip


def recorded(lengths: list[tuple[int, int | None]]) -> list[dict[str, Any]]:
    """Records one after the other from FIRST on, those without tokens too."""
    ends = [0]
    for minutes, _ in lengths:
        ends.append(min(ends[-1] + minutes, MINUTES))
    times = [FIRST + timedelta(minutes=minutes) for minutes in ends]
    return [
        {
            "started_at": begun,
            "ended_at": ended,
            "request_count": tokens,
            "input_tokens": tokens,
            "cache_read_tokens": 0,
            "output_tokens": tokens,
        }
        for (begun, ended), (_, tokens) in zip(pairwise(times), lengths, strict=True)
        if ended > begun
    ]


def served(lengths: list[tuple[int, int | None]], used: int | None = None, server: str = "s") -> ServingRecords:
    """A server on MACHINE for the first hours, its records one after the other."""
    return split(lengths, set(), used, server)


def split(
    lengths: list[tuple[int, int | None]], cuts: set[int], used: int | None = None, server: str = "s"
) -> ServingRecords:
    """The same with a restart before each record in `cuts`, every other uptime of another server."""
    ups, traffic = [], []
    for number, row in enumerate(recorded(lengths)):
        if not ups or number in cuts:
            name = server if len(ups) % 2 == 0 else f"{server}-2"
            up = {"server_id": name, "model": "m", "resource_id": MACHINE, "instance_type": "p5.48xlarge"}
            ups.append({**up, "evidence": "imds", "accelerators_used": used, "started_at": row["started_at"]})
        ups[-1]["stopped_at"] = row["ended_at"]
        traffic.append({**row, "server_id": ups[-1]["server_id"]})
    return records(SOURCE, ups, [row for row in traffic if row["output_tokens"] is not None])


def rows_of(*found: ServingRecords) -> dict[str, list[dict[str, Any]]]:
    return {name: [row for one in found for row in one.tables[name].to_dicts()] for name in (SERVER, TRAFFIC)}


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(any_traffic)
def test_tokens_and_uptime_are_conserved(lengths: list[tuple[int, int | None]]) -> None:
    found = served(lengths)
    rows = found.tables[TRAFFIC].sort("started_at").to_dicts()
    whole = min(sum(minutes for minutes, _ in lengths), MINUTES)
    until, tokens = 0, 0
    for minutes, counted in lengths:
        tokens += (counted or 0) if until < MINUTES else 0
        until += minutes
    assert sum(row["output_tokens"] or 0 for row in rows) == tokens
    assert sum(((row["ended_at"] - row["started_at"]).total_seconds() for row in rows), 0.0) == whole * 60
    # They touch, and none is over a full hour.
    assert all(one["ended_at"] == other["started_at"] for one, other in pairwise(rows))
    assert all((row["ended_at"] - timedelta(microseconds=1)).hour == row["started_at"].hour for row in rows)
    assert found.warnings == []


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.tuples(st.integers(1, 90), st.integers(0, 10**9)), min_size=1, max_size=8), st.sets(st.integers(0, 7))
)
def test_tokens_are_conserved_over_hours_servers_and_restarts(lengths: list[tuple[int, int]], cuts: set[int]) -> None:
    one, other = served([*lengths]), split([*lengths], cuts)
    counts = ("request_count", "input_tokens", "output_tokens")
    assert other.tables[TRAFFIC].select(counts).sum().rows() == one.tables[TRAFFIC].select(counts).sum().rows()
    length = pl.col("ended_at") - pl.col("started_at")
    assert other.tables[TRAFFIC].select(length.sum()).item() == one.tables[TRAFFIC].select(length.sum()).item()
    assert other.warnings == []


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.integers(1, 90), st.integers(0, 10**6), st.booleans()), min_size=1, max_size=8))
def test_counters_give_what_each_process_counted(scrapes: list[tuple[int, int, bool]]) -> None:
    """A process that restarts right after a scrape loses nothing; its counter may then be higher or lower."""
    with TemporaryDirectory() as folder:
        at = started = FIRST.replace(tzinfo=UTC)
        counted = 0
        (Path(folder) / "s").mkdir()
        for minutes, tokens, is_new in scrapes:
            started, counted = (at, 0) if is_new else (started, counted)
            at, counted = at + timedelta(minutes=minutes), counted + tokens
            text = f"vllm:generation_tokens_total {counted}\nprocess_start_time_seconds {started.timestamp()}\n"
            (Path(folder) / "s" / f"{at:%Y%m%dT%H%M%SZ}.txt").write_text(text)
        server = ServingServer(server_id="s", resource=MACHINE)
        found = read_serving([ServingSource(name="v", kind="vllm", location=folder, servers=(server,))])
    assert found.tables[TRAFFIC]["output_tokens"].sum() == sum(tokens for _, tokens, _ in scrapes)
    assert found.warnings == []


@pytest.mark.slow
@FEW
@given(any_traffic, st.sets(st.integers(0, 7)))
def test_dollars_are_conserved_over_servers_and_restarts(lengths: list[tuple[int, int | None]], cuts: set[int]) -> None:
    bill = [machine_line(MACHINE, number, "1", "55.04") for number in range(HOURS)]
    name = "mart_inference_cost_daily"
    costs = []
    for found in (served(lengths), split(lengths, cuts)):
        with Lab({MONTH: bill}, tracker([]), serving=rows_of(found)) as made:
            costs += made.ask(
                f"select sum(effective_cost_usd), sum(idle_cost_usd), sum(output_tokens) from {name}", name
            )
    assert costs[0] == costs[1]


@pytest.mark.slow
@FEW
@given(any_traffic, any_traffic, any_stays, st.sampled_from(["1", "0.3333333333"]))
def test_dollars_are_conserved_with_runs_and_servers_on_one_machine(
    one: list[tuple[int, int | None]], other: list[tuple[int, int | None]], stays: list[Stay], part: str
) -> None:
    """Each piece is a run's, a server's or no one's; what the servers are charged is in the ledger."""
    bill = [machine_line(MACHINE, number, part, "55.04") for number in range(HOURS)]
    serving = rows_of(served(one, 2, "s"), served(other, 1, "t"))
    with Lab({MONTH: bill}, tracker(stays), serving=serving) as made:
        assert made.ask(LINES_THAT_DO_NOT_SUM, "fct_charge", "fct_ledger") == []
        mixed = "select count(*) from fct_ledger where (run_id is not null and server_id is not null) or "
        assert made.ask(mixed + "(bucket = 'serving') > (server_id is not null)", "fct_ledger") == [(0,)]
        own = "select coalesce(sum(effective_cost_usd), 0) from fct_ledger where "
        held = "bucket in ('serving', 'idle') and resource_id = 'i-0a'"
        [(whole,)] = made.ask(own + held, "fct_ledger")
        [(servers,)] = made.ask(own + "server_id is not null", "fct_ledger")
        capacity = "detail_serving_capacity_hourly"
        [(charged,)] = made.ask(f"select coalesce(sum(effective_cost_usd), 0) from {capacity}", capacity)
        # Idle cost of no one may be negative where runs claim too much, which a check refuses.
        assert min(servers, whole) - Decimal("1e-6") <= charged <= max(servers, whole) + Decimal("1e-6")


@pytest.mark.slow
@FEW
@given(any_traffic)
def test_an_idle_hour_never_lowers_the_cost_of_a_token(lengths: list[tuple[int, int | None]]) -> None:
    costs = []
    for hours in (HOURS, HOURS + 1):
        bill = [machine_line(MACHINE, number, "1", "55.04") for number in range(hours)]
        with Lab({MONTH: bill}, tracker([]), serving=rows_of(served(lengths))) as made:
            name = "mart_inference_cost_daily"
            costs += made.ask(f"select sum(effective_cost_usd), sum(output_tokens) from {name}", name)
    (before, tokens), (after, same) = costs
    assert tokens == same
    # The whole hour is the server's: no other held the machine.
    assert after - before == Decimal("55.04")


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    st.floats(0.01, 100),
    st.none() | st.floats(1, 1e5),
    st.integers(1, 9),
    st.floats(0, 1e5),
    st.floats(0.001, 100),
    st.floats(1, 3),
)
def test_the_crossover_is_monotone_in_price(
    hourly: float, speed: float | None, replicas: int, monthly: float, price: float, times: float
) -> None:
    """A higher price of tokens never raises the volume, a higher one of capacity never lowers it; None is never."""

    def volume(hourly: float, price: float) -> float:
        found = crossover_tokens(Capacity(hourly, speed, replicas, monthly), price)
        return float("inf") if found is None else found

    now = volume(hourly, price)
    assert volume(hourly, price * times) <= now * (1 + 1e-12)
    assert volume(hourly * times, price) >= now * (1 - 1e-12)
