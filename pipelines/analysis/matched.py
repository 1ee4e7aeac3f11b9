"""The runs of one side of a comparison, and the unit of work both sides are compared by (facts training-runs 4 and 6).

A run that ended without what is compared keeps its cost: it is counted onto those that reached it, in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, fsum, log
from typing import Any

Run = Mapping[str, Any]

# From the strongest to the weakest, with the column of a run's cost by it.
MEASURES = {
    "cost_to_target": "unit_cost_to_target_usd",
    "cost_per_epoch": "unit_cost_per_epoch_usd",
    "cost_per_million_tokens": "unit_cost_per_million_tokens_usd",
}
FAILED = ("failed", "killed", "abandoned")
UNENDED = ("running", "unknown")


@dataclass(frozen=True)
class Side:
    """One side by one measure: `runs` are compared, `failed` ended without a unit, `open` have no recorded end."""

    measure: str
    runs: tuple[Run, ...]
    failed: tuple[Run, ...]
    open: tuple[Run, ...]

    @property
    def failed_cost(self) -> float:
        """What the failed runs cost, on the basis of the side."""
        return fsum(_cost(run, "whole_cost_usd") for run in self.failed)

    @cached_property
    def loading(self) -> float:
        """What each compared run bears, itself included: all cost over that of the compared runs."""
        borne = fsum(_cost(run, self._spent) for run in self.runs)
        return (borne + self.failed_cost) / borne if borne else 1.0

    @cached_property
    def costs(self) -> list[float]:
        """Cost by the measure of each compared run, failed ones counted in."""
        return [_cost(run, MEASURES[self.measure]) * self.loading for run in self.runs]

    @property
    def mean(self) -> float:
        """The geometric mean of `costs`."""
        return exp(fsum(map(log, self.costs)) / len(self.runs))

    @property
    def faults(self) -> list[str]:
        """Runs whose cost has no logarithm."""
        faults = [
            f"run {run['run_id']} has a {self.measure.replace('_', ' ')} of {_cost(run, MEASURES[self.measure]):.2f} "
            f"on the {run['cost_basis']} basis, and only costs above zero can be compared"
            for run in self.runs
            if _cost(run, MEASURES[self.measure]) <= 0
        ]
        if not faults and self.loading <= 0:
            faults = [
                f"the failed runs on {self.runs[0]['instance_type']} cost {self.failed_cost:.2f}, less than nothing"
            ]
        return faults

    @property
    def _spent(self) -> str:
        # What a run spent after its target is no cost of reaching it.
        return MEASURES[self.measure] if self.measure == "cost_to_target" else "whole_cost_usd"


def choose(baseline: Sequence[Run], candidate: Sequence[Run]) -> tuple[Side, Side] | None:
    """Both sides by the strongest measure that each of them has; None where they share none."""
    for measure in MEASURES:
        sides = _side(baseline, measure), _side(candidate, measure)
        if sides[0] and sides[1]:
            return sides[0], sides[1]
    return None


def one_side(runs: Sequence[Run]) -> Side | None:
    """A side for itself, by the strongest measure it has."""
    return next((side for measure in MEASURES if (side := _side(runs, measure))), None)


def _side(runs: Sequence[Run], measure: str) -> Side | None:
    column = MEASURES[measure]
    ended = [run for run in runs if run["status"] not in UNENDED]
    if measure == "cost_to_target":
        # Reached is reached, however the run ended afterwards; one that completed without is as good as failed.
        failed = [run for run in ended if run[column] is None]
        compared = [run for run in ended if run[column] is not None]
    else:
        failed = [run for run in ended if run["status"] in FAILED]
        compared = [run for run in ended if run["status"] not in FAILED]
        if any(run[column] is None for run in compared):
            return None
    if not compared or any(run["whole_cost_usd"] is None for run in ended):
        return None
    return Side(measure, tuple(compared), tuple(failed), tuple(run for run in runs if run["status"] in UNENDED))


def _cost(run: Run, column: str) -> float:
    return float(run[column])
