"""The commitment that hourly use proves: the newsvendor's quantile, and its lower bound over resampled weeks.

Demand is a matrix of hours by rates: what the plan would ask for the use of that hour at that rate, largest discount
first, as AWS applies a plan (facts aws-billing 3.2). `paid` is plan price over list price of each column, ascending. A
dollar committed for an hour saves 1 / paid - 1 where use meets it, and is lost where none does. So the best commitment
is where the next dollar is met just often enough; with one rate that is the quantile at 1 - paid of the hours' demand.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def best_commitment(demand: Floats, paid: Floats, weights: Floats | None = None) -> float:
    """The commitment an hour, in money, beyond which no further dollar saves any; hours count by their `weights`."""
    return _Steps(demand, paid).best(np.ones(len(demand)) if weights is None else weights)


def proven_commitment(demand: Floats, paid: Floats) -> float:
    """The best commitment's lower bound: 19 of 20 histories made of the same weeks would have taken at least as much.

    Weeks are drawn whole, so that what comes once a week stays once a week. 0 under FEWEST_WEEKS weeks.
    """
    weeks = len(demand) // WEEK_HOURS
    if weeks < FEWEST_WEEKS:
        return 0.0
    whole = demand[: weeks * WEEK_HOURS]
    steps, draw = _Steps(whole, paid), np.random.default_rng(_SEED)
    found = []
    for _ in range(_DRAWS):
        times = np.bincount(draw.integers(0, weeks, weeks), minlength=weeks).astype(np.float64)
        found.append(steps.best(np.repeat(times, WEEK_HOURS)))
    # One of the values found, never one between two: the bound is a commitment that some history had.
    bound = float(np.quantile(found, _LOWER, method="lower"))
    return min(bound, steps.best(np.ones(len(whole))))


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
    """The value of one more dollar as a falling staircase over commitments, weighable by hour."""

    def __init__(self, demand: Floats, paid: Floats):
        upto = np.cumsum(demand, axis=1)
        hours = np.broadcast_to(np.arange(len(demand))[:, None], demand.shape)
        value = np.broadcast_to(1 / paid, demand.shape)
        place = np.concatenate([(upto - demand).ravel(), upto.ravel()])
        order = np.argsort(place, kind="stable")
        self._place = place[order]
        self._hour = np.concatenate([hours.ravel(), hours.ravel()])[order]
        self._change = np.concatenate([value.ravel(), -value.ravel()])[order]

    def best(self, weights: Floats) -> float:
        worth = np.cumsum(self._change * weights[self._hour])
        # Steps at one place are one step: what counts is the value after the last of them.
        last = np.append(self._place[1:] > self._place[:-1], True)
        gains = last & (worth > weights.sum() * (1 + 1e-12))
        if not gains.any():
            return 0.0
        # The value holds until the next place.
        final = int(np.flatnonzero(gains)[-1])
        return float(self._place[final + 1]) if final + 1 < len(self._place) else float(self._place[-1])
