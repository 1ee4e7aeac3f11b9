"""Laws of serving: tokens, time and dollars are conserved over any traffic, servers and restarts."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab import Lab
from support.ledger_law import LINES_THAT_DO_NOT_SUM
from support.random_ledgers import FIRST, HOURS, MONTH, Stay, any_stays, machine_line, tracker

from pipelines.analysis.crossover import Capacity, crossover_tokens
from pipelines.config.sources import ServingSource
from pipelines.ingest.serving.records import SERVER, TRAFFIC, ServingRecords, records

FEW = settings(max_examples=10, deadline=None, derandomize=True, database=None)
SOURCE = ServingSource(name="servers", location="servers")
MINUTES = HOURS * 60
MACHINE = "i-0a"
# Minutes at which records end, and what each counted; None where nothing is recorded.
any_traffic = st.lists(
    st.tuples(st.integers(1, 200), st.none() | st.integers(0, 10**9)), min_size=1, max_size=8
)  # fmt: skip


def served(lengths: list[tuple[int, int | None]], used: int | None = None, server: str = "s") -> ServingRecords:
    """A server on MACHINE for the first hours, its records one after the other."""
    ends = [0]
    for minutes, _ in lengths:
        ends.append(min(ends[-1] + minutes, MINUTES))
    up = {"server_id": server, "model": "m", "resource_id": MACHINE, "instance_type": "p5.48xlarge", "evidence": "imds"}
    start = {**up, "accelerators_used": used, "started_at": FIRST, "stopped_at": FIRST + timedelta(minutes=ends[-1])}
    rows = [
        {
            "server_id": server,
            "started_at": FIRST + timedelta(minutes=begun),
            "ended_at": FIRST + timedelta(minutes=ended),
            "request_count": tokens,
            "input_tokens": tokens,
            "cache_read_tokens": 0,
            "output_tokens": tokens,
        }
        for (begun, ended), (_, tokens) in zip(pairwise(ends), lengths, strict=True)
        if tokens is not None and ended > begun
    ]
    return records(SOURCE, [start], rows)


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


@pytest.mark.slow
@FEW
@given(any_traffic, any_traffic, any_stays, st.sampled_from(["1", "0.3333333333"]))
def test_dollars_are_conserved_with_runs_and_servers_on_one_machine(
    one: list[tuple[int, int | None]], other: list[tuple[int, int | None]], stays: list[Stay], part: str
) -> None:
    """Each piece is a run's, a server's or nobody's; what the servers are charged is in the ledger."""
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
        # Idle of nobody may be negative where runs claim too much, which a check refuses.
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
