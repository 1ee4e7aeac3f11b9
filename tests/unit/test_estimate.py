"""The saving and its interval: examples by hand, laws, and the shipped simulation against its reference."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.analysis import quantiles
from pipelines.analysis.estimate import (
    estimate,
    interval,
    joined,
    not_inferior,
    portfolio,
    runs_needed,
    sample,
    unit_cost,
)
from pipelines.bench.comparison import Cell, simulate

COSTS = st.lists(st.floats(0.5, 5000), min_size=3, max_size=8)
STEPS = (1.0, 1.1, 1.21)
# Of STEPS: the sum is 3.31 and the squared residuals over it sum to 0.00201410; 3/2 of that is the variance of ln R.
VARIANCE = 1.5 * sum(((x - 3.31 / 3) / 3.31) ** 2 for x in STEPS)
# Exact bounds of a failure rate: 0 of 3 is 1 - 0.025^(1/3); 1 of 4 is 0.805880 (tables of Clopper and Pearson).
NONE_OF_THREE = 1 - 0.025 ** (1 / 3)
ONE_OF_FOUR = 0.805880


def test_the_interval_is_the_one_computed_by_hand() -> None:
    """GPU 10, 11, 12.1 and Trainium 8, 8.8, 9.68: t(0.975, 4) = 2.776445; a failure would cost half a success."""
    found = estimate(sample([10 * x for x in STEPS]), sample([8 * x for x in STEPS]))
    factor = exp(2.776445 * sqrt(2 * VARIANCE)) * (1 + NONE_OF_THREE / (1 - NONE_OF_THREE) / 2)
    assert (found.saving, found.method) == (pytest.approx(0.2), "ratio of sums")
    assert found.low == pytest.approx(1 - 0.8 * factor, abs=1e-5)
    assert found.high == pytest.approx(1 - 0.8 / factor, abs=1e-5)


def test_a_failed_run_counts_with_its_whole_cost_and_widens_its_end() -> None:
    """Trainium 8, 8.8, 9.68 and a failure of 4: R = 30.48 / 3 = 10.16; residuals -2.16, -1.36, -0.48 and 4 over 30.48
    have squares that sum to 0.024435, so the variance is 4/3 of it. A failed run costs 4, a success 8.826667."""
    from scipy import stats

    failing = sample([8, 8.8, 9.68, 4], [1, 1, 1, 0])
    found = estimate(sample([10 * x for x in STEPS]), failing)
    squares = (2.16**2 + 1.36**2 + 0.48**2 + 4**2) / 30.48**2
    variance = 4 / 3 * squares
    whole = VARIANCE + variance
    freedom = whole**2 / (VARIANCE**2 / 2 + variance**2 / 3)
    half = stats.t.ppf(0.975, freedom) * sqrt(whole)
    candidate = 8.826667 + ONE_OF_FOUR / (1 - ONE_OF_FOUR) * 4
    baseline = 11.033333 + NONE_OF_THREE / (1 - NONE_OF_THREE) * 4
    assert found.saving == pytest.approx(1 - 10.16 / 11.033333, abs=1e-6)
    assert found.low == pytest.approx(1 - candidate / 11.033333 * exp(half), rel=1e-4)
    assert found.high == pytest.approx(1 - 10.16 / baseline * exp(-half), rel=1e-4)


def test_pairs_need_a_variance_on_each_side() -> None:
    found = estimate(sample([10, 11, 12]), sample([5, 5, 5]), [(0, 0), (1, 1), (2, 2)])
    assert (found.low, found.missing) == (None, "all runs of a side cost the same, so nothing shows how costs vary")


def test_pairs_of_one_ratio_have_no_interval() -> None:
    """Each candidate costs half of its partner: the costs of a side vary, the ratio of pairs does not."""
    found = estimate(sample([8.0, 9.0, 10.0]), sample([4.0, 4.5, 5.0]), [(0, 0), (1, 1), (2, 2)])
    assert (found.low, (found.missing or "").partition(",")[0]) == (
        None,
        "the costs of all registered pairs have the same ratio",
    )


def test_registered_pairs_take_out_what_both_runs_share() -> None:
    """Seeds that cost 10, 100, 1000 on GPU and 4, 52, 490 on Trainium: means 370 and 182, t(0.975, 2) = 4.302653."""
    gpu, trainium = sample([10, 100, 1000]), sample([4, 52, 490])
    ratio, low, high = interval(gpu, trainium, [(0, 0), (1, 1), (2, 2)])
    z = [(c - 182) / 546 - (b - 370) / 1110 for b, c in ((10, 4), (100, 52), (1000, 490))]
    half = 4.302653 * sqrt(1.5 * sum(value**2 for value in z))
    factor = 1 + NONE_OF_THREE / (1 - NONE_OF_THREE) / 2
    assert float(ratio) == pytest.approx(log(546 / 1110))
    assert float(high) == pytest.approx(log(546 / 1110 * factor) + half, abs=1e-6)
    assert float(low) == pytest.approx(log(546 / 1110 / factor) - half, abs=1e-6)


def test_runs_that_share_a_machine_are_one_cluster() -> None:
    """1, 1.1 and 1.21 each twice on a machine: residuals of a machine add, so the variance is that of three."""
    twice = sample([x for x in STEPS for _ in "ab"], clusters=[0, 0, 1, 1, 2, 2])
    _, _, high = interval(twice, twice)
    rate = 1 - 0.025 ** (1 / 6)
    assert float(high) == pytest.approx(2.776445 * sqrt(2 * VARIANCE) + log(1 + rate / (1 - rate) / 2), abs=1e-6)
    two = sample([x for x in STEPS for _ in "ab"], clusters=[0, 0, 0, 1, 1, 1])
    assert estimate(two, twice).missing == "2 and 3 independent runs a side; an interval needs 3"


def test_a_larger_set_of_runs_shows_a_lower_failure_rate() -> None:
    few = sample([10 * x for x in STEPS])
    many = replace(few, rate_runs=97, rate_failed_runs=0)
    found = estimate(many, many)
    rate = 1 - 0.025 ** (1 / 100)
    assert found.high == pytest.approx(1 - exp(-2.776445 * sqrt(2 * VARIANCE)) / (1 + rate / (1 - rate) / 2), abs=1e-5)


@pytest.mark.parametrize("costs", [([10], [8]), ([10, 11], [8, 9, 10]), ([10, 10, 10], [8, 9, 10])])
def test_no_interval_of_few_runs_or_without_variation(costs: tuple[list[float], list[float]]) -> None:
    baseline, candidate = costs
    found = estimate(sample(baseline), sample(candidate))
    assert (found.low, found.high, found.conclusion) == (None, None, None)
    assert found.missing


def test_a_side_without_a_success_has_no_cost_per_success() -> None:
    with pytest.raises(ValueError, match="no cost per success"):
        estimate(sample([10, 11, 12]), sample([8, 9, 10], [0, 0, 0]))


def test_clusters_join_through_others() -> None:
    one, two, three, four = joined([["a"], ["b", "c"], ["a", "c"], ["d"]])
    assert one == two == three != four


@settings(deadline=None, max_examples=60)
@given(COSTS, COSTS, st.floats(0.01, 100))
def test_another_currency_or_unit_changes_no_saving(gpu: list[float], trainium: list[float], factor: float) -> None:
    one = estimate(sample(gpu), sample(trainium))
    other = estimate(sample([c * factor for c in gpu]), sample([c * factor for c in trainium]))
    assert other.saving == pytest.approx(one.saving, rel=1e-6, abs=1e-9)
    if one.low is not None and other.low is not None:
        assert other.low == pytest.approx(one.low, rel=1e-4, abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(COSTS, COSTS)
def test_interval_includes_the_saving_and_a_saving_is_below_one(gpu: list[float], trainium: list[float]) -> None:
    found = estimate(sample(gpu), sample(trainium))
    assert found.saving < 1
    if found.low is not None and found.high is not None:
        assert found.low <= found.saving + 1e-9 and found.saving <= found.high + 1e-9 and found.high <= 1


def test_needed_runs_are_those_that_make_the_interval_ten_points_wide() -> None:
    """Apart from the search: equal sides of n runs like STEPS, none failed; the story of wins and ties derives 76."""
    from scipy import stats

    def half_width(n: int) -> float:
        rate = 1 - 0.025 ** (1 / n)
        end = stats.t.ppf(0.975, 2 * n - 2) * sqrt(4 * VARIANCE / (n - 1)) * exp(0) + log(1 + rate / (1 - rate) / 2)
        return (exp(end) - exp(-end)) / 2

    side = sample([10 * x for x in STEPS])
    assert runs_needed(side, side) == 76
    assert half_width(76) <= 0.05 < half_width(75)
    assert runs_needed(side, sample([10.0])) is None


@pytest.mark.parametrize(("successes", "runs"), [(2, 10), (2, 12), (4, 20)])
def test_needed_runs_are_known_where_most_runs_fail(successes: int, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the quantiles of SciPy, also where a few runs would have less than half a success."""
    from scipy import special

    costs = [10 + 0.1 * number for number in range(runs)]
    often_fails = sample(costs, [1.0] * successes + [0.0] * (runs - successes))
    candidate = sample([5 + 0.1 * number for number in range(10)], [1.0] * 9 + [0.0])
    needed = runs_needed(often_fails, candidate, 0.0)
    monkeypatch.setattr(quantiles, "beta", special.betaincinv)
    assert needed == runs_needed(often_fails, candidate, 0.0) is not None


@pytest.mark.parametrize(
    ("cell", "coverage", "found"),
    [
        # 20,000 draws each of the reference simulation of design 5, within 4 standard errors of 4,000 draws.
        (Cell(5, 0.05, 0.05, 0.05, saving=0.4), 0.97, 0.38),
        (Cell(10, 0.05, 0.05, 0.05, saving=0.4), 0.97, 0.68),
        (Cell(20, 0.05, 0.05, 0.05, saving=0.2), 0.97, 0.53),
        (Cell(3, 0.3, 0.0, 0.1), 0.966, 0.0),
    ],
)
def test_simulation_has_the_reference_coverage_and_power(cell: Cell, coverage: float, found: float) -> None:
    result = simulate(cell, draws=4000)
    assert result.coverage >= coverage - 0.01
    assert result.found == pytest.approx(found, abs=4 * sqrt(0.25 / 4000) + 0.005)


@pytest.mark.slow
@pytest.mark.parametrize(("machines", "is_balanced"), [(0, True), (3, True), (3, False), (6, True), (6, False)])
@pytest.mark.parametrize("runs", [3, 5, 10, 20])
def test_no_cell_proves_falsely_more_than_35_times_in_a_thousand(runs: int, machines: int, is_balanced: bool) -> None:
    if 0 < runs < machines:
        pytest.skip("more machines than runs")
    rates = (0.0, 0.05, 0.1, 0.2, 0.3)
    for baseline in rates:
        for candidate in rates:
            for noise in ((0.03, 0.03), (0.1, 0.1), (0.03, 0.1)):
                found = simulate(
                    Cell(runs, baseline, candidate, *noise, machines=machines, is_balanced=is_balanced), draws=2000
                )
                assert found.found <= 0.035 + 4 * sqrt(0.035 / 2000), (baseline, candidate, noise)
                assert found.coverage >= 0.95 - 4 * sqrt(0.05 / 2000) or np.isnan(found.coverage)


def test_a_workload_is_one_replicate_of_a_portfolio() -> None:
    """Savings of 0.2, 0.12 and 0.2727…: logs ln 0.8 + (0, L, -L), L = ln 1.1, t(0.975, 2) = 4.302653."""
    found = portfolio({"a": 0.2, "b": 0.12, "c": 1 - 0.8 / 1.1})
    assert found.saving == pytest.approx(0.2)
    assert found.low == pytest.approx(1 - 0.8 * exp(4.302653 * log(1.1) / sqrt(3)), abs=1e-6)
    assert portfolio({"a": 0.2}).low is None


def test_quality_within_the_margin_by_hand() -> None:
    """Loss 2.00, 2.01, 2.02 against 2.01 to 2.03: worse by 0.01, se = 0.01 √(2/3), df 4, t(0.95, 4) = 2.131847."""
    gpu, trainium = [2.00, 2.01, 2.02], [2.01, 2.02, 2.03]
    worst = 0.01 + 2.131847 * 0.01 * sqrt(2 / 3)
    found = not_inferior(gpu, trainium, margin=0.03, direction="min")
    assert found is not None and found[0] == pytest.approx(worst, abs=1e-7) and found[1]
    missed = not_inferior(gpu, trainium, margin=0.02, direction="min")
    assert missed is not None and not missed[1]


def test_quality_is_read_in_the_direction_of_the_metric() -> None:
    """The same figures as an accuracy: Trainium is better by 0.01, so it is within a margin of nothing but noise."""
    found = not_inferior([2.00, 2.01, 2.02], [2.01, 2.02, 2.03], margin=0.008, direction="max")
    assert found is not None and found[0] == pytest.approx(-0.01 + 2.131847 * 0.01 * sqrt(2 / 3), abs=1e-7) and found[1]


def test_one_run_a_side_shows_no_quality() -> None:
    assert not_inferior([2.0], [2.0, 2.0], 0.1, "min") is None


def test_one_run_is_named_in_the_singular() -> None:
    assert unit_cost(sample([10.0]))[3] == "1 independent run; an interval needs 3"
    assert unit_cost(sample([10.0, 11.0]))[3] == "2 independent runs; an interval needs 3"
