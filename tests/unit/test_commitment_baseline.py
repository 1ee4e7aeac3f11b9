"""The commitment that history proves, held against figures worked out by hand and against trying every commitment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.analysis.commitment_baseline import (
    WEEK_HOURS,
    Use,
    back_test,
    best_commitment,
    next_dollar,
    proven_commitment,
    resampled_commitment,
    simulate,
)


def use(demand: np.ndarray, *paid: float, discount: tuple[float, ...] = (0.0,)) -> Use:
    """Use of these prices under a plan, at these parts of list, with these discounts on the on-demand price."""
    listed = demand / np.array(paid)
    return Use(demand, listed, listed * (1 - np.array(discount)))


def hours(*demands: float) -> np.ndarray:
    return np.array(demands, dtype=float)[:, None]


def weeks(*patterns: list[float]) -> np.ndarray:
    return np.concatenate([np.array(pattern, dtype=float) for pattern in patterns])[:, None]


def week(busy_hours: int, demand: float = 10.0) -> list[float]:
    return [demand] * busy_hours + [0.0] * (WEEK_HOURS - busy_hours)


def test_one_rate_gives_the_newsvendor_quantile() -> None:
    """At 60 % of list a dollar must be met in more than 60 % of hours. Of ten hours with demand 1 to 10 seven have 4 or
    more and six have 5 or more, which is no more than even: so 4."""
    assert best_commitment(use(hours(*range(1, 11)), 0.6)) == 4.0


def test_outcome_is_that_of_the_golden_hour() -> None:
    """Facts aws-billing 2.4: 40 committed, 30 used, list 55.04: utilization 75 %, saving 15.04."""
    outcome = simulate(40.0, use(hours(30.0), 30 / 55.04))
    assert outcome.utilization == 0.75
    assert outcome.savings == pytest.approx(15.04)
    assert outcome.coverage == 1.0


def test_the_larger_discount_is_taken_first() -> None:
    """6 of a plan that pays half and 6 of one that pays 0.9: 8 committed cover 12 at list with the first and 2 / 0.9
    with the second."""
    outcome = simulate(8.0, use(np.array([[6.0, 6.0]]), 0.5, 0.9))
    assert outcome.savings == pytest.approx(12 + 2 / 0.9 - 8)


def test_a_weekly_retrain_is_no_baseline() -> None:
    """40 busy hours of 168 are 24 % of the time; at 60 % of list a dollar must be met 60 % of it."""
    demand = weeks(*[week(40)] * 12)
    assert best_commitment(use(demand, 0.6)) == 0.0
    assert proven_commitment(use(demand, 0.6)) == 0.0


def test_what_runs_all_the_time_is_committed_whole() -> None:
    demand = weeks(*[week(WEEK_HOURS)] * 8)
    assert proven_commitment(use(demand, 0.6)) == 10.0
    assert next_dollar(10.0, use(demand, 0.6)) == -1.0
    assert next_dollar(9.0, use(demand, 0.6)) == pytest.approx(1 / 0.6 - 1)


def test_three_weeks_prove_nothing() -> None:
    assert proven_commitment(use(weeks(*[week(WEEK_HOURS)] * 3), 0.6)) == 0.0


def test_weeks_that_may_not_come_again_are_not_proven() -> None:
    """Six of ten weeks are busy: over all of them 10 is met 60 % of the time, which pays at 55 % of list. Of ten weeks
    drawn again, far more than one history in twenty has five or fewer busy ones: so nothing is proven."""
    demand = weeks(*[week(WEEK_HOURS)] * 6, *[week(0)] * 4)
    assert best_commitment(use(demand, 0.55)) == 10.0
    assert proven_commitment(use(demand, 0.55)) == 0.0


def test_the_newest_weeks_limit_what_is_proven() -> None:
    """Eleven weeks at 10 and two at 4, at half of list: over random weeks 10 pays, in the newest two alone 4."""
    demand = weeks(*[week(WEEK_HOURS)] * 11, *[week(WEEK_HOURS, 4.0)] * 2)
    assert resampled_commitment(use(demand, 0.5)) == 10.0
    assert proven_commitment(use(demand, 0.5)) == 4.0


def test_back_test_names_its_regret() -> None:
    """Nine weeks: six at 10, three at 4. Learned on six: 10 an hour, of which 4 is met: 4 / 0.5 - 10 = -2 an hour. Who
    had known would have taken 4 and saved 4 an hour."""
    found = back_test(use(weeks(*[week(WEEK_HOURS)] * 6, *[week(WEEK_HOURS, 4.0)] * 3), 0.5))
    assert found is not None
    commitment, outcome, best = found
    assert commitment == 10.0
    assert outcome.savings == pytest.approx(-2 * 3 * WEEK_HOURS)
    assert best == pytest.approx(4 * 3 * WEEK_HOURS)
    assert outcome.worst_week == pytest.approx(-2 * WEEK_HOURS)


def test_five_weeks_are_too_few_to_hold_back_any() -> None:
    assert back_test(use(weeks(*[week(WEEK_HOURS)] * 5), 0.5)) is None


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12),
    st.tuples(st.sampled_from([0.3, 0.5, 0.7]), st.sampled_from([0.75, 0.9])),
    st.tuples(st.sampled_from([0.0, 0.6]), st.sampled_from([0.0, 0.2])),
)
def test_no_other_commitment_saves_more(
    demands: list[tuple[int, int]], paid: tuple[float, float], discount: tuple[float, float]
) -> None:
    """Demands are whole, so every bend of the saving is at a whole commitment: trying those tries all."""
    used = use(np.array(demands, dtype=float), *paid, discount=discount)
    best = simulate(best_commitment(used), used).savings
    tried = [simulate(float(each), used).savings for each in range(13)]
    assert best == pytest.approx(max(tried), abs=1e-9)


@given(st.lists(st.floats(0, 100), min_size=4, max_size=8), st.floats(0.3, 0.95))
def test_the_bound_is_below_the_best_and_the_same_again(levels: list[float], paid: float) -> None:
    demand = weeks(*[week(WEEK_HOURS, level) for level in levels])
    proven = proven_commitment(use(demand, paid))
    assert proven <= best_commitment(use(demand, paid))
    assert proven == proven_commitment(use(demand, paid))
