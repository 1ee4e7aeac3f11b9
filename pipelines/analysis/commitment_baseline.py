"""The commitment that hourly use proves: the newsvendor's quantile, and its lower bound over resampled weeks.

Demand is a matrix of hours by rates: what the plan would ask for the use of that hour at that rate, largest discount
first, as AWS applies a plan (facts aws-billing 3.2). `paid` is plan price over list price of each column, ascending. A
dollar committed for an hour saves 1 / paid - 1 where use meets it, and is lost where none does. So the best commitment
is where the next dollar is met just often enough; with one rate that is the quantile at 1 - paid of the hours' demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WEEK_HOURS = 168
# Under four weeks nothing says that a week is like the next one.
FEWEST_WEEKS = 4
_SEED, _DRAWS, _LOWER = 20260721, 400, 0.05


@dataclass(frozen=True)
class Outcome:
    """What a commitment would have done over hours of demand; `worst_week` is its least weekly saving."""

    coverage: float
    utilization: float
    savings: float
    worst_week: float


def best_commitment(demand: Floats, paid: Floats) -> float:
    """The commitment an hour, in money, beyond which no further dollar saves any."""
    steps = _Steps(demand, paid)
    return float(steps.best(np.ones((1, steps.weeks)), len(demand))[0])


def proven_commitment(demand: Floats, paid: Floats) -> float:
    """The best commitment's lower bound: 19 of 20 histories made of the same weeks would have taken at least as much.

    Weeks are drawn whole, so that what comes once a week stays once a week. 0 under FEWEST_WEEKS weeks.
    """
    weeks = len(demand) // WEEK_HOURS
    if weeks < FEWEST_WEEKS:
        return 0.0
    whole = demand[: weeks * WEEK_HOURS]
    draw = np.random.default_rng(_SEED)
    drawn = [np.bincount(draw.integers(0, weeks, weeks), minlength=weeks) for _ in range(_DRAWS)]
    # The history as it was is the last of them.
    times = np.array([*drawn, np.ones(weeks)], dtype=np.float64)
    found = _Steps(whole, paid).best(times, len(whole))
    # One of the values found, never one between two: the bound is a commitment that some history had.
    return min(float(np.quantile(found[:-1], _LOWER, method="lower")), float(found[-1]))


def simulate(commitment: float, demand: Floats, paid: Floats) -> Outcome:
    """A commitment an hour against demand as it was."""
    taken, covered = _taken(commitment, demand, paid)
    saved = covered - commitment
    weeks = len(saved) // WEEK_HOURS
    weekly = saved[: weeks * WEEK_HOURS].reshape(weeks, WEEK_HOURS).sum(axis=1) if weeks else saved.sum(keepdims=True)
    listed, committed = float((demand / paid).sum()), commitment * len(demand)
    return Outcome(
        coverage=float(covered.sum()) / listed if listed else 0.0,
        utilization=float(taken.sum()) / committed if committed else 0.0,
        savings=float(saved.sum()),
        worst_week=float(weekly.min()) if len(weekly) else 0.0,
    )


def next_dollar(commitment: float, demand: Floats, paid: Floats) -> float:
    """What one more dollar an hour saves in an average hour; negative where it loses."""
    upto = np.cumsum(demand, axis=1)
    # The first column that has something left above the commitment meets the dollar.
    open_at = upto > commitment
    met = np.where(open_at.any(axis=1), 1 / paid[open_at.argmax(axis=1)], 0.0)
    return float(met.mean()) - 1 if len(met) else 0.0


def back_test(demand: Floats, paid: Floats) -> tuple[float, Outcome, float] | None:
    """Recommend on the first two thirds of the weeks and score on the rest: commitment, outcome, best of hindsight.

    None where the first part is too short to recommend on, or no week is left to score.
    """
    weeks = len(demand) // WEEK_HOURS
    learned = weeks * 2 // 3
    if learned < FEWEST_WEEKS or learned == weeks:
        return None
    before, after = demand[: learned * WEEK_HOURS], demand[learned * WEEK_HOURS : weeks * WEEK_HOURS]
    commitment = proven_commitment(before, paid)
    best = simulate(best_commitment(after, paid), after, paid)
    return commitment, simulate(commitment, after, paid), best.savings


def _taken(commitment: float, demand: Floats, paid: Floats) -> tuple[Floats, Floats]:
    """By hour: what of the commitment is used, and the list price of what it covers."""
    before = np.cumsum(demand, axis=1) - demand
    part = np.clip(commitment - before, 0, demand)
    return part.sum(axis=1), (part / paid).sum(axis=1)


class _Steps:
    """The value of one more dollar as a falling staircase over commitments, by week, so that weeks can be drawn again.

    Columns come with the largest discount first, so no further dollar is worth more than the one before it, and where
    the staircase falls to the price of a dollar is found by halving.
    """

    def __init__(self, demand: Floats, paid: Floats):
        # What asks for nothing makes no step.
        hour, column = np.nonzero(demand)
        value = 1 / paid[column]
        # Where a column of an hour ends, the dollar falls to the value of the next one that asks for more.
        is_last = np.append(hour[1:] != hour[:-1], True)[: len(hour)]
        fall = value - np.where(is_last, 0.0, np.append(value[1:], 0.0)[: len(hour)])
        self._places, step = np.unique(np.cumsum(demand, axis=1)[hour, column], return_inverse=True)
        self.weeks = -(-len(demand) // WEEK_HOURS)
        bounds = np.searchsorted(hour, np.arange(self.weeks + 1) * WEEK_HOURS)
        self._steps, self._worth = [], []
        for first, last in pairwise(bounds):
            order = np.argsort(step[first:last], kind="stable")
            self._steps.append(step[first:last][order])
            # What a dollar is worth in the week once so many of its steps are passed.
            self._worth.append(np.append(np.cumsum(fall[first:last][order][::-1])[::-1], 0.0))

    def best(self, times: Floats, hours: int) -> Floats:
        """The best commitment of each history, a row that says how often it has each week; all are `hours` long."""
        low, high = np.full(len(times), -1), np.full(len(times), len(self._places) - 1)
        # Step -1 is no commitment at all; the answer is the first step after which a dollar gains nothing.
        while (low < high).any():
            middle = (low + high) // 2
            gains = self._value(times, middle) > hours * (1 + 1e-9)
            low, high = np.where(gains, middle + 1, low), np.where(gains, high, middle)
        return np.where(low < 0, 0.0, self._places[low] if len(self._places) else 0.0)

    def _value(self, times: Floats, step: NDArray[np.int64]) -> Floats:
        value = np.zeros(len(times))
        for week, (steps, worth) in enumerate(zip(self._steps, self._worth, strict=True)):
            value += times[:, week] * worth[np.searchsorted(steps, step, side="right")]
        return value
