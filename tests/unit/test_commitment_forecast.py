"""Forecasts of months ahead, held against figures worked out by hand and against simulated months."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from pipelines.analysis.forecast import Runway, months_ahead, runway

# Student's t at 97.5 %, from its table (NIST, e-Handbook 1.3.6.7.2).
T2, T4 = 4.303, 2.776


def test_three_months_vary_about_their_mean() -> None:
    """10, 12, 14: mean 12, standard deviation 2; the next month is 12 ± 4.303 x 2 x √(1 + 1/3)."""
    ahead = months_ahead([10, 12, 14], 1)
    assert ahead is not None and ahead.low is not None and ahead.high is not None
    assert (ahead.total, ahead.method) == (12.0, "the mean of 3 months")
    assert ahead.high - ahead.total == pytest.approx(T2 * 2 * sqrt(4 / 3), rel=1e-3)
    assert ahead.total - ahead.low == pytest.approx(ahead.high - ahead.total)


def test_six_months_on_a_line_go_on_along_it() -> None:
    """10, 20, … 60 with no month off the line: 70 + 80, and nothing to vary by."""
    ahead = months_ahead([10, 20, 30, 40, 50, 60], 2)
    assert ahead is not None
    assert [ahead.total, ahead.low, ahead.high] == pytest.approx([150.0] * 3)


def test_six_months_about_a_line_have_its_interval() -> None:
    """0, 2, 2, 2, 4, 2: about the middle the slope is (-3 - 1 + 1 + 6 + 5) / 17.5; the mean is 2. One month ahead lies
    3.5 from the middle: variance of a month × (1 + 1/6 + 3.5² / 17.5)."""
    values, at, slope = [0, 2, 2, 2, 4, 2], [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], 8 / 17.5
    left = sum((value - 2 - slope * place) ** 2 for value, place in zip(values, at, strict=True))
    ahead = months_ahead(values, 1)
    assert ahead is not None and ahead.high is not None
    assert ahead.total == pytest.approx(2 + 3.5 * slope)
    assert ahead.high - ahead.total == pytest.approx(T4 * sqrt(left / 4 * (1 + 1 / 6 + 3.5**2 / 17.5)), rel=1e-3)


@pytest.mark.parametrize("known", [3, 5, 6, 12])
def test_nineteen_of_twenty_sums_fall_within(known: int) -> None:
    """Months drawn about a steady level: the interval is meant to hold the next four's sum 95 times of 100."""
    draw = np.random.default_rng(7)
    held, times = 0, 1000
    for _ in range(times):
        months = draw.normal(100, 20, known + 4)
        ahead = months_ahead(list(months[:known]), 4)
        assert ahead is not None and ahead.low is not None and ahead.high is not None
        held += ahead.low <= months[known:].sum() <= ahead.high
    # Three standard errors of a share of 0.95 in a thousand draws.
    assert abs(held / times - 0.95) < 3 * sqrt(0.95 * 0.05 / times)


def test_too_few_months_have_no_interval() -> None:
    ahead = months_ahead([8, 12], 3)
    assert ahead is not None and (ahead.total, ahead.low, ahead.high) == (30.0, None, None)
    assert months_ahead([], 3) is None
    assert runway([8, 12], 30.0).months == 3.0
    assert runway([8, 12], 30.0).low is None


def test_a_pool_used_alike_every_month_has_one_runway() -> None:
    found = runway([10, 10, 10], 25.0)
    assert [found.months, found.low, found.high] == pytest.approx([2.5, 2.5, 2.5])


def test_bounds_of_a_runway_are_where_the_bounds_of_the_use_come_to_it() -> None:
    """At the lower runway the upper bound of what so many months use is what remains, and the other way round."""
    used, remaining = [95.0, 100.0, 105.0, 100.0], 800.0
    found = runway(used, remaining)
    assert found.low is not None and found.high is not None
    spread = sqrt(50 / 3)
    for months, sign in ((found.low, 1), (found.high, -1)):
        assert 100 * months + sign * 3.182446 * spread * sqrt(months + months**2 / 4) == pytest.approx(
            remaining, rel=1e-6
        )
    assert found.low < 8.0 < found.high


def test_nothing_left_lasts_no_month_and_nothing_used_lasts_for_ever() -> None:
    assert runway([5.0, 5.0, 5.0], 0.0).months == 0.0
    assert runway([0.0, 0.0, 0.0], 9.0).months is None
    assert runway([], 9.0).months is None
    # Credits that are taken back every month are never used up, nor is there a bound at which they are.
    assert runway([-100, -105, -95], 150) == Runway(None, None, None)
