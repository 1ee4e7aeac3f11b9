"""Costs far from their own history: how often calm data raise an alarm, and that planted ones are found."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import exp

import polars as pl
import pytest

from pipelines.models.contract import load_contract
from pipelines.transforms.detail_cost_anomaly import build, far_off

TRIALS = 20_000
FIRST = date(2026, 1, 1)
RUNS = {
    "run_id": pl.String, "workload_id": pl.String, "instance_type": pl.String, "billing_currency": pl.String,
    "status": pl.String, "ended_at": pl.Datetime("ms"), "effective_cost_usd": pl.Decimal(20, 10),
    "cost_per_epoch_usd": pl.Decimal(20, 10), "cost_per_million_tokens_usd": pl.Decimal(20, 10),
    "unbilled_hours": pl.Float64,
}  # fmt: skip
MONTHS = {
    "team": pl.String, "billing_month": pl.Date, "billing_currency": pl.String, "showback_cost_usd": pl.Decimal(20, 10),
    "is_cost_partial": pl.Boolean,
}  # fmt: skip
DAYS = {
    "watched_kind": pl.String, "subject": pl.String, "usage_date": pl.Date, "billing_currency": pl.String,
    "effective_cost_usd": pl.Decimal(20, 10),
}  # fmt: skip


def listed(
    runs: list[tuple] | None = None, months: list[tuple] | None = None, days: list[tuple] | None = None
) -> pl.DataFrame:
    rows = build(
        pl.DataFrame(runs or [], schema=RUNS, orient="row"),
        pl.DataFrame(months or [], schema=MONTHS, orient="row"),
        pl.DataFrame(days or [], schema=DAYS, orient="row"),
    )
    return load_contract("detail/detail_cost_anomaly").frame(rows)


def usd(cost: float) -> Decimal:
    return Decimal(f"{cost:.6f}")


def day_costs(costs: list[float], kind: str = "team_day", subject: str = "nlp") -> list[tuple]:
    return [(kind, subject, FIRST + timedelta(days=n), "USD", usd(cost)) for n, cost in enumerate(costs)]


def run(number: int, per_token: float, tokens: float = 100, unbilled: float | None = None, **other: str) -> tuple:
    ended = datetime(2026, 1, 1) + timedelta(hours=number)
    name, currency = f"run-{number:02d}", other.get("currency", "USD")
    cost = usd(per_token * tokens)
    status, unit = other.get("status", "completed"), None if "whole" in other else usd(per_token)
    return (name, other.get("workload", "llama"), "p5.48xlarge", currency, status, ended, cost, None, unit, unbilled)


@pytest.mark.parametrize("length", [8, *(pytest.param(length, marks=pytest.mark.slow) for length in (14, 28, 56))])
@pytest.mark.parametrize("spread", [0.05, 0.2, 0.5])
def test_calm_costs_raise_fewer_than_one_alarm_in_a_thousand(length: int, spread: float) -> None:
    """Lognormal costs around one level: nothing happened, so every alarm is false."""
    draw = random.Random(length * 1000 + spread)
    alarms = 0
    for _ in range(TRIALS):
        *history, observed = (exp(draw.gauss(4, spread)) for _ in range(length + 1))
        alarms += far_off(observed, history, below=True) is not None
    assert alarms < TRIALS / 1000


def test_a_year_of_a_team_that_trains_in_bursts_raises_no_alarm() -> None:
    """Weekdays around 1,000 USD, weekends around 80, every fourth Monday a run of 4,000."""
    draw = random.Random(3)
    level = [4000 if n % 28 == 0 else 80 if n % 7 in (5, 6) else 1000 for n in range(365)]
    found = listed(days=day_costs([usd * exp(draw.gauss(0, 0.15)) for usd in level]))
    # At the second burst one before it is no pattern yet.
    assert found["observed_date"].to_list() in ([], [FIRST + timedelta(days=28)])


@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_planted_costs_are_found_and_nothing_else(spread: float) -> None:
    """Six times what is usual, on the hundredth day, once in each of fifty series."""
    draw, found = random.Random(5), 0
    for _ in range(50):
        costs = [500 * exp(draw.gauss(0, spread)) for _ in range(120)]
        costs[100] *= 6
        rows = listed(days=day_costs(costs))
        assert set(rows["observed_date"]) <= {FIRST + timedelta(days=100)}
        found += rows.height
    assert found == 50 if spread < 0.1 else found >= 45


def test_a_run_is_held_against_earlier_runs_of_its_workload_per_unit_of_work() -> None:
    """Twice the tokens for twice the money is nothing; the same tokens for twice the money is.

    Eight runs at 1.00 per million tokens, one of twice the length, and one at 2.00 for 100 million: 100 too much.
    """
    steady = [run(n, 1.0) for n in range(8)]
    (row,) = listed(runs=[*steady, run(8, 1.0, tokens=200), run(9, 2.0)]).to_dicts()
    assert (row["subject"], row["anomaly_measure"], row["history_count"]) == ("run-09", "per million tokens", 9)
    assert (row["observed_cost_usd"], row["expected_cost_usd"], row["excess_cost_usd"]) == (2.0, 1.0, 100.0)
    assert row["anomaly_reason"] == (
        "2.00 USD per million tokens is 2.0 times the median of its 9 earlier runs of llama on p5.48xlarge: 1.00, "
        "lowest 1.00, highest 1.00"
    )


def test_a_run_that_cost_almost_nothing_is_listed_too() -> None:
    """Half a bill is a fault as much as twice the bill: 0.25 in place of 1.00 for 100 million is 75 too little."""
    (row,) = listed(runs=[*(run(n, 1.0) for n in range(8)), run(8, 0.25)]).to_dicts()
    assert row["excess_cost_usd"] == -75
    assert row["anomaly_reason"].startswith("0.25 USD per million tokens is 25% of the median of its 8 earlier runs")


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([run(n, 1.0) for n in range(7)] + [run(7, 9.0)], "seven runs are no history"),
        ([run(n, 0.001) for n in range(8)] + [run(8, 0.09)], "9 dollars raise no alarm"),
        ([run(n, 1.0, status="failed") for n in range(8)] + [run(8, 9.0)], "what failed measures nothing"),
        ([run(n, 1.0 + 8 * (n == 8), workload="? / ? / seq ?") for n in range(9)], "unknown work is not the same work"),
        ([run(n, 1.0, currency="EUR") for n in range(8)] + [run(8, 9.0)], "another currency is no history"),
        (
            [run(n, 1.0, whole="") for n in range(8)] + [run(8, 0.25, unbilled=24, whole="")],
            "the bill has a quarter of it",
        ),
        ([run(n, 1.0 + 0.4 * (n % 2)) for n in range(8)] + [run(8, 1.4)], "it was so before"),
    ],
)
def test_what_is_no_anomaly(runs: list[tuple], why: str) -> None:
    assert listed(runs=runs).is_empty(), why


def test_months_and_idle_machines_are_watched_too_and_only_more_expensive_ones() -> None:
    """Eight months at 100, then 1,000 (900 too much) or 1; twenty idle days at 20, then 200 (180 too much)."""
    months = [("nlp", date(2026, n, 1), "USD", usd(100), False) for n in range(1, 9)]
    costly, cheap = ("nlp", date(2026, 9, 1), "USD", usd(1000), False), ("nlp", date(2026, 9, 1), "USD", usd(1), False)
    idle = day_costs([20.0] * 20 + [200.0], "idle_day", "account 1, gpu")
    assert listed(months=[*months, cheap]).is_empty()
    rows = listed(months=[*months, costly], days=idle)
    assert rows["anomaly_kind"].to_list() == ["idle_day", "team_month"]
    assert rows["excess_cost_usd"].to_list() == [180, 900]
    assert rows["anomaly_reason"][0].startswith("200.00 USD per day is 10.0 times the median of its 20 earlier days")
