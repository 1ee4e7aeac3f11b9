"""Break-even of a port: figures of facts training-runs 8, a case by hand, and laws."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from math import exp

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, poisson

from pipelines.analysis.break_even import (
    INPUTS,
    Case,
    break_even_value,
    payback_probability,
    runs_to_break_even,
    tornado,
)
from pipelines.transforms.mart_break_even import _realized
from pipelines.transforms.port_case import PortCase, _add_runs, runs_per_month

# Two engineer-weeks at $8k; a run of $6,000 on the GPU, 40 % less on Trainium.
FACTS = Case(port_cost=16_000, baseline=6_000, saving_per_run=2_400, runs_per_month=1, months=12)
usd = st.floats(1, 1e6)
share = st.floats(0, 0.95)
cases = st.builds(
    lambda candidate, **other: Case(saving_per_run=other["baseline"] - candidate, **other),
    port_cost=usd, baseline=usd, candidate=usd, runs_per_month=st.floats(0.1, 100), months=st.integers(1, 60),
    upkeep=st.floats(0, 1e4), discount=st.floats(0, 1), baseline_price_fall_ratio=share,
    success_ratio=st.floats(0.05, 1),
)  # fmt: skip


def test_the_example_of_the_facts() -> None:
    """16,000 / 2,400 = 6.67: the seventh run pays it back."""
    assert FACTS.saving_per_run == 2_400
    assert runs_to_break_even(FACTS.port_cost, FACTS.saving_per_run) == 7


@pytest.mark.parametrize(
    ("port", "saving", "runs"),
    [
        (100.0, 10.0, 10),
        (0.3, 0.1, 3),
        (100.0, 0.0, None),
        (100.0, -5.0, None),
        (0.0, 5.0, 0),
        (0.0, -5.0, None),
    ],
)
def test_runs_to_break_even(port: float, saving: float, runs: int | None) -> None:
    """0.3 / 0.1 is 2.9999999999999996 as doubles; without a saving it is never (facts training-runs 8), even where the
    port costs nothing; with one and without a cost it is at once."""
    assert runs_to_break_even(port, saving) == runs


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        # Over a month at least, and from 1 July to 31 August, 61 days or 2.0041 months.
        (None, 2),
        (datetime(2026, 7, 20), 2),
        (datetime(2026, 8, 31), 2 / (61 / (365.25 / 12))),
        # Training that stopped more than 90 days before the newest usage saves nothing.
        (datetime(2026, 12, 1), 0),
    ],
)
def test_runs_a_month_count_up_to_the_newest_usage(newest: datetime | None, expected: float) -> None:
    """Two run ids of one job and one of no known job ended on 2 July: two runs."""
    start = datetime(2026, 7, 1)
    about = {"purpose": None, "status": "completed", "started_at": start, "ended_at": start + timedelta(days=1)}
    runs = [{**about, "run_id": run_id, "job_id": job_id} for run_id, job_id in (("a", "a"), ("b", "a"), ("c", None))]
    frame = pl.DataFrame(runs, schema_overrides={"purpose": pl.String})
    assert runs_per_month(frame, newest) == pytest.approx(expected)


def test_a_run_of_a_port_costs_once_and_only_as_a_whole() -> None:
    """`a` of 10.00 is named as pilot and as validation; of `b` the bill lacks 3 hours, so its 5.00 are not its cost."""
    own = pl.DataFrame({"run_id": ["a", "a", "b"], "port_cost_kind": ["pilot", "validation", "failed_pair"]})
    runs = {"run_id": ["a", "b"], "effective_cost_usd": [10.0, 5.0], "unbilled_hours": [None, 3.0]}
    found = PortCase({}, dict.fromkeys(("pilot", "validation", "failed_pair"), 0.0))
    _add_runs(found, own, pl.DataFrame(runs).with_columns(billing_currency=pl.lit("USD")))
    assert found.costs == {"pilot": 10.0, "validation": 0.0, "failed_pair": None}
    assert found.gaps == ["the bill has the failed pair run b in part only"]


def test_a_pilot_is_a_cost_of_the_port_and_no_saving_too() -> None:
    """Each run costs 64.50 and avoids 110.08. The pilot's 64.50 is in the port's 364.50: 45.58 - 364.50 = -318.92."""
    day = date(2026, 7, 10)
    about = {"workload_id": "w", "billing_currency": "USD", "begun_date": day, "baseline_cost_usd": 110.08}
    runs = [{**about, "run_id": run_id, "job_id": run_id, "actual_cost_usd": 64.5} for run_id in ("pilot", "tune")]
    adjustments = pl.DataFrame(
        schema={"workload_id": pl.String, "billing_currency": pl.String, "month_date": pl.Date, "adjustment_usd": float}
    )
    port = {"workload_id": "w", "started_date": day, "planned_baseline_cost_per_run_usd": None}
    found = PortCase(port | {"planned_saving_ratio": None}, {"engineering": 300.0, "pilot": 64.5}, ["pilot"])
    row = _realized(found, pl.DataFrame(runs), adjustments)
    assert row == {
        "realized_run_count": 1,
        "realized_saving_usd": pytest.approx(45.58),
        "realized_net_usd": pytest.approx(-318.92),
    }


def test_net_present_value_by_hand() -> None:
    """Two months of one run at 2,400 less 100 of upkeep, undiscounted: 4,600 - 16,000 = -11,400."""
    case = replace(FACTS, months=2, upkeep=100)
    assert case.npv == pytest.approx(-11_400)
    # Of the twelfth month alone, at 21 % a year: a run every month, prices 19 % lower after a year.
    late = replace(FACTS, discount=0.21, baseline_price_fall_ratio=0.19)
    month = (6_000 * 0.81 - 3_600) / 1.21
    assert late.benefit - replace(late, months=11).benefit == pytest.approx(month)


def test_half_the_ports_fail() -> None:
    """E = 0.5 x (12,800 + 16,000) - 16,000 = -1,600, with 12 x 2,400 - 16,000 = 12,800 if it succeeds."""
    assert FACTS.npv == pytest.approx(12_800)
    assert replace(FACTS, success_ratio=0.5).expected == pytest.approx(-1_600)


def test_probability_without_an_interval_is_unknown() -> None:
    assert payback_probability(FACTS, None, None) is None
    assert payback_probability(FACTS, 2_000, None) is None
    # What cost nothing is paid back if it succeeds.
    free = replace(FACTS, port_cost=0, success_ratio=0.9)
    assert payback_probability(free, None, None) == 0.9
    assert payback_probability(replace(free, saving_per_run=-5), -5, -5) == 0
    assert str(break_even_value(free, "runs_per_month")) == "0.0"


def test_probability_of_an_exact_saving_is_that_of_enough_runs() -> None:
    """Two runs needed, one expected: 1 - P(0) - P(1) = 1 - 2/e; half of it where half of ports fail."""
    case = Case(port_cost=20, baseline=20, saving_per_run=10, runs_per_month=0.5, months=2)
    assert payback_probability(case, 10, 10) == pytest.approx(1 - 2 / exp(1))
    assert payback_probability(replace(case, success_ratio=0.5), 10, 10) == pytest.approx(0.5 - 1 / exp(1))


def test_probability_with_an_interval() -> None:
    """Of very many runs a saving about 0 pays in half the cases; one far from 0 in all or none."""
    case = Case(port_cost=1, baseline=100, saving_per_run=0, runs_per_month=1e4, months=12)
    assert payback_probability(case, -10, 10) == pytest.approx(0.5, abs=1e-3)
    assert payback_probability(replace(case, saving_per_run=50), 45, 55) == pytest.approx(1)
    assert payback_probability(replace(case, saving_per_run=-50), -55, -45) == pytest.approx(0)


@given(cases, st.sampled_from(INPUTS))
def test_at_its_break_even_value_a_port_brings_what_it_costs(case: Case, name: str) -> None:
    value = break_even_value(case, name)
    if value is None:
        return
    at = replace(case, **{name: value})
    size = (
        case.months * (at.runs_per_month * (at.baseline + abs(at.baseline - at.saving_per_run)) + at.upkeep)
        + at.port_cost
    )
    assert abs(at.expected) <= 1e-6 * size


@given(cases)
def test_a_saving_that_is_larger_brings_more(case: Case) -> None:
    assert replace(case, saving_per_run=case.saving_per_run + 1).expected > case.expected
    needed = runs_to_break_even(case.port_cost, case.saving_per_run)
    more = runs_to_break_even(case.port_cost, case.saving_per_run + 1)
    assert needed is None or (more is not None and more <= needed)


@given(cases)
def test_bars_are_sorted_and_hold_their_base(case: Case) -> None:
    bars = tornado(case, case.saving_per_run - 1, case.saving_per_run + 1)
    assert [bar.swing_usd for bar in bars] == sorted((bar.swing_usd for bar in bars), reverse=True)
    assert {bar.sensitivity_input for bar in bars} == set(INPUTS)
    assert all(bar.low_value <= bar.base_value <= bar.high_value for bar in bars)


def test_bars_by_hand() -> None:
    """A quarter more port cost takes 4,000; the port breaks even at 28,800, at 6.67 / 12 runs a month, at 55.6 %."""
    bars = {bar.sensitivity_input: bar for bar in tornado(FACTS)}
    assert (bars["port_cost"].low_npv_usd, bars["port_cost"].high_npv_usd) == pytest.approx((16_800, 8_800))
    assert bars["port_cost"].break_even_value == pytest.approx(28_800)
    assert bars["runs_per_month"].break_even_value == pytest.approx(16_000 / 2_400 / 12)
    assert bars["success_ratio"].break_even_value == pytest.approx(16_000 / 28_800)
    assert bars["saving_per_run"].break_even_value == pytest.approx(16_000 / 12)


@given(cases, st.floats(1, 1e4), st.booleans())
def test_the_probability_is_that_of_scipy(case: Case, width: float, has_interval: bool) -> None:
    """Poisson numbers of runs and a normal saving, all of them added up."""
    low, high = (case.saving_per_run + end * width / 2 * has_interval for end in (-1, 1))
    expected = case.runs_per_month * case.months
    runs = np.arange(1, int(poisson.ppf(1 - 1e-12, expected)) + 2)
    if has_interval:
        paid = norm.sf(case.port_cost / runs, case.saving_per_run, width / (2 * norm.ppf(0.975)))
    else:
        paid = runs >= (runs_to_break_even(case.port_cost, case.saving_per_run) or np.inf)
    probability = case.success_ratio * min(1.0, float((poisson.pmf(runs, expected) * paid).sum()))
    assert payback_probability(case, low, high) == pytest.approx(probability, abs=1e-9)
