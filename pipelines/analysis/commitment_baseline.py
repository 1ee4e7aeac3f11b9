"""The commitment that hourly use supports: the newsvendor quantile, and its lower bound over resampled weeks.

Demand is a matrix of hours by rates: the price of that hour's use under the plan, largest discount first, as AWS
applies a plan (facts aws-billing 3.2). `paid` is plan price over list price of each column, ascending. A dollar
committed for an hour saves 1 / paid - 1 where use meets it, and is lost where none does. The best commitment is where
the next dollar is met just often enough; with one rate that is the quantile at 1 - paid of the hours' demand.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WEEK_HOURS = 168
# Fewer than four weeks do not show whether one week is like the next.
FEWEST_WEEKS = 4
# Two thirds of them are learned from.
FEWEST_TESTED_WEEKS = FEWEST_WEEKS * 3 // 2
_SEED, _DRAWS, _LOWER = 20260721, 400, 0.05


@dataclass(frozen=True)
class Outcome:
    """What a commitment would have done over hours of demand: `covered` is the list price of what it covered,
    `worst_week` its least weekly saving.
    """

    coverage: float
    covered: float
    utilization: float
    savings: float
    worst_week: float


def best_commitment(demand: Floats, paid: Floats) -> float:
    """The commitment an hour, in money, beyond which one more dollar saves nothing."""
    steps = _Steps(demand, paid)
    return float(steps.best(np.ones((1, steps.weeks)), len(demand))[0])


def proven_commitment(demand: Floats, paid: Floats) -> float:
    """The best commitment's lower bound: the best one is at least as much in 19 of 20 histories of resampled weeks.

    Weeks are drawn whole, so that a weekly pattern stays weekly. 0 under FEWEST_WEEKS weeks.
    """
    weeks = len(demand) // WEEK_HOURS
    if weeks < FEWEST_WEEKS:
        return 0.0
    whole = demand[: weeks * WEEK_HOURS]
    draw = np.random.default_rng(_SEED)
    drawn = [np.bincount(draw.integers(0, weeks, weeks), minlength=weeks) for _ in range(_DRAWS)]
    # The last one is the measured history.
    times = np.array([*drawn, np.ones(weeks)], dtype=np.float64)
    found = _Steps(whole, paid).best(times, len(whole))
    # Without interpolation: the bound is the best commitment of one of the histories.
    return min(float(np.quantile(found[:-1], _LOWER, method="lower")), float(found[-1]))


def simulate(commitment: float, demand: Floats, paid: Floats) -> Outcome:
    """What a commitment an hour would have done over the measured demand."""
    part = np.clip(commitment - (np.cumsum(demand, axis=1) - demand), 0, demand)
    # By hour: the used part of the commitment, and the list price of what it covers.
    used, covered = part.sum(axis=1), (part / paid).sum(axis=1)
    saved = covered - commitment
    weeks = len(saved) // WEEK_HOURS
    weekly = saved[: weeks * WEEK_HOURS].reshape(weeks, WEEK_HOURS).sum(axis=1) if weeks else saved.sum(keepdims=True)
    listed, committed = float((demand / paid).sum()), commitment * len(demand)
    return Outcome(
        coverage=float(covered.sum()) / listed if listed else 0.0,
        covered=float(covered.sum()),
        utilization=float(used.sum()) / committed if committed else 0.0,
        savings=float(saved.sum()),
        worst_week=float(weekly.min()) if len(weekly) else 0.0,
    )


def next_dollar(commitment: float, demand: Floats, paid: Floats) -> float:
    """What one more dollar an hour saves in an average hour; negative where it loses."""
    upto = np.cumsum(demand, axis=1)
    # The next dollar covers use of the first column that the commitment does not cover whole.
    is_open = upto > commitment
    saved = np.where(is_open.any(axis=1), 1 / paid[is_open.argmax(axis=1)], 0.0)
    return float(saved.mean()) - 1 if len(saved) else 0.0


def back_test(demand: Floats, paid: Floats) -> tuple[float, Outcome, float] | None:
    """Recommend on the first two thirds of the weeks and score on the rest: commitment, outcome, best possible savings.

    None where the first part is too short to recommend on, or no week remains to score.
    """
    weeks = len(demand) // WEEK_HOURS
    learned = weeks * 2 // 3
    if learned < FEWEST_WEEKS or learned == weeks:
        return None
    before, after = demand[: learned * WEEK_HOURS], demand[learned * WEEK_HOURS : weeks * WEEK_HOURS]
    commitment = proven_commitment(before, paid)
    best = simulate(best_commitment(after, paid), after, paid)
    return commitment, simulate(commitment, after, paid), best.savings


class _Steps:
    """The value of one more dollar as a falling step function of the commitment, by week, for resampling weeks.

    The largest discount comes first, so each dollar is worth at most as much as the one before it, and bisection finds
    the commitment where its value falls to a dollar.
    """

    def __init__(self, demand: Floats, paid: Floats):
        hour, column = np.nonzero(demand)
        value = 1 / paid[column]
        # Where a column of an hour ends, the value falls to that of the next column with demand.
        is_last = np.append(hour[1:] != hour[:-1], True)[: len(hour)]
        fall = value - np.where(is_last, 0.0, np.append(value[1:], 0.0)[: len(hour)])
        self._commitments, step = np.unique(np.cumsum(demand, axis=1)[hour, column], return_inverse=True)
        self.weeks = -(-len(demand) // WEEK_HOURS)
        bounds = np.searchsorted(hour, np.arange(self.weeks + 1) * WEEK_HOURS)
        self._steps, self._worth = [], []
        for first, last in pairwise(bounds):
            order = np.argsort(step[first:last], kind="stable")
            self._steps.append(step[first:last][order])
            # Value of a dollar in the week after so many of its steps.
            self._worth.append(np.append(np.cumsum(fall[first:last][order][::-1])[::-1], 0.0))

    def best(self, times: Floats, hours: int) -> Floats:
        """The best commitment of each history: a row of `times` counts each week; all histories are `hours` long."""
        low, high = np.full(len(times), -1), np.full(len(times), len(self._commitments) - 1)
        # Step -1 is no commitment; the answer is the first step after which a dollar gains nothing.
        while (low < high).any():
            middle = (low + high) // 2
            gains = self._value(times, middle) > hours * (1 + 1e-9)
            low, high = np.where(gains, middle + 1, low), np.where(gains, high, middle)
        return np.where(low < 0, 0.0, self._commitments[low] if len(self._commitments) else 0.0)

    def _value(self, times: Floats, step: NDArray[np.int64]) -> Floats:
        value = np.zeros(len(times))
        for week, (steps, worth) in enumerate(zip(self._steps, self._worth, strict=True)):
            value += times[:, week] * worth[np.searchsorted(steps, step, side="right")]
        return value
