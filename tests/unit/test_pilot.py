"""What a pilot must do: its runs by the power calculation, what they cost, and the saving that decides."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from pipelines.analysis.estimate import estimate, runs_to_decide, runs_wanted
from pipelines.analysis.pilot import costs_of_a_run, deciding_saving, runs_to_do

# Logarithms are a mean and 0, ± ln 1.1.
STEPS = [10.0, 11.0, 12.1]
HALF = [5.0, 5.5, 6.05]


def test_one_side_alone_tells_how_many_runs_five_points_take() -> None:
    """30 a side: the story of wins, ties and losses derives it for two sides that vary so and cost the same."""
    assert runs_wanted(STEPS) == 30
    assert runs_to_do(STEPS, [], None)[:2] == (27, 30)
    assert runs_to_do([], STEPS, None)[:2] == (30, 27)


@pytest.mark.parametrize("costs", [[], [10.0], [10.0, 10.0], [10.0, 0.0]])
def test_what_tells_no_variance_asks_for_three_a_side(costs: list[float]) -> None:
    assert runs_wanted(costs) is None
    assert runs_to_do(costs, [], None)[:2] == (max(0, 3 - len(costs)), 3)


def test_runs_that_may_claim_nothing_are_made_anew() -> None:
    """Far apart, three a side decide (the story's `worse`): none more, or three where Trainium's do not count."""
    assert runs_to_do(STEPS, HALF, 0.293429)[:2] == (0, 0)
    assert runs_to_do(STEPS, HALF, 0.293429, again=True)[:2] == (0, 3)


def test_a_saving_as_measured_takes_five_points_to_decide() -> None:
    """Nothing lies between the saving and what decides, so only the width is left; more runs than estimate counts."""
    more = estimate(STEPS, HALF).more_runs[0]
    assert more is not None
    assert runs_to_decide(STEPS, HALF, 0.5) == 3 + more


def test_planned_runs_decide_four_times_in_five() -> None:
    """By simulation: with a true ratio of 0.8 and a deviation of 0.2 the interval of so many runs leaves zero out."""
    rng = np.random.default_rng(7)
    base = np.array([-1.0, 0.0, 1.0]) * 0.2
    gpu, trainium = np.exp(base), np.exp(base + log(0.8))
    runs = runs_to_decide(list(gpu), list(trainium), 0.0)
    assert runs is not None
    told = 0
    for _ in range(1000):
        x, y = (np.exp(rng.normal(mean, 0.2, runs)) for mean in (0.0, log(0.8)))
        low = estimate(list(x), list(y)).low
        told += low is not None and low > 0
    # Within three standard errors of 0.8: sqrt(0.8 × 0.2 / 1000) = 0.0126.
    assert told / 1000 == pytest.approx(0.8, abs=0.038)


def test_a_side_without_a_run_may_cost_what_the_other_does() -> None:
    gpu, trainium = costs_of_a_run(900.0, None)
    assert (gpu.usd, trainium.usd) == (900.0, 900.0)
    assert (gpu.evidence, trainium.evidence) == ("measured", "at most what the other side costs")
    assert [side.evidence for side in costs_of_a_run(None, None)] == ["unknown", "unknown"]


def test_the_saving_that_decides_pays_the_port_back() -> None:
    """Facts training-runs 8: 16,000 of port, runs of 6,000; by 7 runs 16,000 / 7 / 6,000 = 38.1 % must be saved."""
    assert deciding_saving(16_000, 7, 6_000) == pytest.approx(0.380952, abs=1e-6)
    assert deciding_saving(None, 7, 6_000) is None
    assert deciding_saving(16_000, None, 6_000) is None
