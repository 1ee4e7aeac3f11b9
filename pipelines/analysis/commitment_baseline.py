"""The commitment that hourly use supports: the newsvendor quantile, and its lower bound over resampled weeks.

Use is matrices of hours by rates, largest discount first, as AWS applies a plan (facts aws-billing 3.2). A dollar
committed for an hour saves what the use that meets it costs on demand less itself, and is lost where none does. The
best commitment is where the next dollar is met just often enough; with one rate that is the quantile at 1 - rate of the
hours' demand, the rate being plan price over the price paid on demand.
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
# Use that ended is no random week: a commitment must pay in these newest weeks alone, too.
NEWEST_WEEKS = 2
_SEED, _DRAWS, _LOWER = 20260721, 400, 0.05
# Histories tried together: a year of hours of many rates has many steps.
_AT_ONCE = 50


@dataclass(frozen=True)
class Use:
    """The same use by hour and rate: at plan, at list, and at the on-demand price paid after negotiated discounts."""

    demand: Floats
    listed: Floats
    on_demand: Floats

    def __len__(self) -> int:
        return len(self.demand)

    def hours(self, first: int, last: int) -> "Use":
        return Use(self.demand[first:last], self.listed[first:last], self.on_demand[first:last])


@dataclass(frozen=True)
class Outcome:
    """What a commitment would have done over hours of use: `covered` is the list price of what it covered,
    `worst_week` its least weekly saving.
    """

    coverage: float
    covered: float
    utilization: float
    savings: float
    worst_week: float


def best_commitment(use: Use) -> float:
    """The commitment an hour, in money, that would have saved most."""
    steps = _Steps(use)
    return float(steps.best(np.ones((1, steps.weeks)), len(use))[0])


def proven_commitment(use: Use) -> float:
    """The best commitment's lower bound: the best one is at least as much in 19 of 20 histories of resampled weeks,
    and in the newest weeks alone.

    Weeks are drawn whole, so that a weekly pattern stays weekly. 0 under FEWEST_WEEKS weeks.
    """
    return min(resampled_commitment(use), newest_commitment(use))


def newest_commitment(use: Use) -> float:
    """The best commitment of the newest whole weeks."""
    hours = len(use) // WEEK_HOURS * WEEK_HOURS
    return best_commitment(use.hours(max(hours - NEWEST_WEEKS * WEEK_HOURS, 0), hours))


def resampled_commitment(use: Use) -> float:
    """The best commitment's lower bound over resampled weeks, whichever of them are the newest."""
    weeks = len(use) // WEEK_HOURS
    if weeks < FEWEST_WEEKS:
        return 0.0
    whole = use.hours(0, weeks * WEEK_HOURS)
    draw = np.random.default_rng(_SEED)
    drawn = [np.bincount(draw.integers(0, weeks, weeks), minlength=weeks) for _ in range(_DRAWS)]
    # The last one is the measured history.
    times = np.array([*drawn, np.ones(weeks)], dtype=np.float64)
    found = _Steps(whole).best(times, len(whole))
    # Without interpolation: the bound is the best commitment of one of the histories.
    return min(float(np.quantile(found[:-1], _LOWER, method="lower")), float(found[-1]))


def simulate(commitment: float, use: Use) -> Outcome:
    """What a commitment an hour would have done over the measured use."""
    demand = use.demand
    part = np.clip(commitment - (np.cumsum(demand, axis=1) - demand), 0, demand)
    share = np.divide(part, demand, out=np.zeros_like(part), where=demand > 0)
    used, covered = float(part.sum()), float((share * use.listed).sum())
    saved = (share * use.on_demand).sum(axis=1) - commitment
    weeks = len(saved) // WEEK_HOURS
    weekly = saved[: weeks * WEEK_HOURS].reshape(weeks, WEEK_HOURS).sum(axis=1) if weeks else saved.sum(keepdims=True)
    listed, committed = float(use.listed.sum()), commitment * len(demand)
    return Outcome(
        coverage=covered / listed if listed else 0.0,
        covered=covered,
        utilization=used / committed if committed else 0.0,
        savings=float(saved.sum()),
        worst_week=float(weekly.min()) if len(weekly) else 0.0,
    )


def next_dollar(commitment: float, use: Use) -> float:
    """What one more dollar an hour saves in an average hour; negative where it loses."""
    # The next dollar covers use of the first column that the commitment does not cover whole.
    is_open = np.cumsum(use.demand, axis=1) > commitment
    hour, column = np.arange(len(use)), is_open.argmax(axis=1)
    saved = np.zeros(len(use))
    np.divide(use.on_demand[hour, column], use.demand[hour, column], out=saved, where=is_open.any(axis=1))
    return float(saved.mean()) - 1 if len(saved) else 0.0


def back_test(use: Use) -> tuple[float, Outcome, float] | None:
    """Recommend on the first two thirds of the weeks and score on the rest: commitment, outcome, best possible savings.

    None where the first part is too short to recommend on, or no week remains to score.
    """
    weeks = len(use) // WEEK_HOURS
    learned = weeks * 2 // 3
    if learned < FEWEST_WEEKS or learned == weeks:
        return None
    before, after = use.hours(0, learned * WEEK_HOURS), use.hours(learned * WEEK_HOURS, weeks * WEEK_HOURS)
    commitment = proven_commitment(before)
    return commitment, simulate(commitment, after), simulate(best_commitment(after), after).savings


class _Steps:
    """The value of one more dollar as a step function of the commitment, by week, for resampling weeks.

    The largest discount off list comes first. Where another use has a larger negotiated discount, a dollar may be worth
    more than the one before it: so every step is tried.
    """

    def __init__(self, use: Use):
        demand = use.demand
        hour, column = np.nonzero(demand)
        value = use.on_demand[hour, column] / demand[hour, column]
        # Where a column of an hour ends, the value falls to that of the next column with demand.
        is_last = np.append(hour[1:] != hour[:-1], True)[: len(hour)]
        fall = value - np.where(is_last, 0.0, np.append(value[1:], 0.0)[: len(hour)])
        self._commitments, step = np.unique(np.cumsum(demand, axis=1)[hour, column], return_inverse=True)
        self.weeks = -(-len(demand) // WEEK_HOURS)
        bounds = np.searchsorted(hour, np.arange(self.weeks + 1) * WEEK_HOURS)
        # By week, the value of a dollar beyond none, one, two and more of all steps.
        self._worth = np.zeros((self.weeks, len(self._commitments)))
        for week, (first, last) in enumerate(pairwise(bounds)):
            order = np.argsort(step[first:last], kind="stable")
            worth = np.append(np.cumsum(fall[first:last][order][::-1])[::-1], 0.0)
            passed = np.searchsorted(step[first:last][order], np.arange(len(self._commitments)), side="left")
            self._worth[week] = worth[passed]

    def best(self, times: Floats, hours: int) -> Floats:
        """The best commitment of each history: a row of `times` counts each week; all histories are `hours` long."""
        if not len(self._commitments):
            return np.zeros(len(times))
        widths = np.diff(self._commitments, prepend=0.0)
        found = []
        for some in np.array_split(times, -(-len(times) // _AT_ONCE)):
            # Up to a billionth a dollar gains nothing: the smaller of two equal commitments is the best.
            savings = some @ self._worth
            savings -= hours * (1 + 1e-9)
            savings *= widths
            np.cumsum(savings, axis=1, out=savings)
            best = self._commitments[savings.argmax(axis=1)]
            found.append(np.where(savings.max(axis=1) > 0, best, 0.0))
        return np.concatenate(found)
