"""Whether a port to Trainium pays, and when (facts training-runs 8). Amounts are USD, ratios 0 to 1, times months.

A run saves what it costs on the GPU less what it costs on Trainium. GPU prices fall while the port is used, so what
month m saves is the GPU's cost after m/12 years of that fall, less Trainium's, which is taken to stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite

import numpy as np

# The 97.5 % quantile of the normal distribution: an interval of 95 % is twice that many deviations wide.
_QUANTILE = 1.959963984540054
# Below this a saving would take more runs than anybody counts.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Case:
    """A port: what it costs once, what a run costs on either side, how often it runs, and what is assumed."""

    port: float
    baseline: float
    candidate: float
    runs_per_month: float
    months: int
    upkeep: float = 0.0
    discount: float = 0.0
    baseline_fall: float = 0.0
    success: float = 1.0

    @property
    def saving(self) -> float:
        """USD a run saves today; below zero where Trainium is more expensive."""
        return self.baseline - self.candidate

    @property
    def benefit(self) -> float:
        """What the months bring after upkeep, discounted, if the port succeeds."""
        brought = 0.0
        for month in range(1, self.months + 1):
            saving = self.baseline * (1 - self.baseline_fall) ** (month / 12) - self.candidate
            brought += (self.runs_per_month * saving - self.upkeep) * (1 + self.discount) ** (-month / 12)
        return brought

    @property
    def npv(self) -> float:
        """Net present value if the port succeeds."""
        return self.benefit - self.port

    @property
    def expected(self) -> float:
        """Net present value by the probability of success: a failed port costs what it costs and brings nothing."""
        return self.success * self.benefit - self.port

    def with_saving(self, saving: float) -> Case:
        """The same with another saving a run, the GPU's cost held."""
        return replace(self, candidate=self.baseline - saving)


def runs_to_break_even(port: float, saving: float) -> int | None:
    """Runs until a port is paid back; None for never."""
    if port <= 0:
        return 0
    if saving <= _NOTHING * port:
        return None
    # A quotient that is whole but for a double's last digit takes no run more.
    return ceil(port / saving * (1 - 1e-12))


def payback_probability(case: Case, saving_low: float | None, saving_high: float | None) -> float:
    """Probability that the port succeeds and is paid back within its months, prices as today.

    Runs come independently at the measured cadence (Poisson); the saving is normal about its estimate with the supplied
    interval of 95 %, or exact without one.
    """
    from scipy.stats import norm, poisson

    if case.port <= 0:
        return case.success
    expected = case.runs_per_month * case.months
    if saving_low is None or saving_high is None or saving_high <= saving_low:
        needed = runs_to_break_even(case.port, case.saving)
        return 0.0 if needed is None else case.success * float(poisson.sf(needed - 1, expected))
    deviation = (saving_high - saving_low) / (2 * _QUANTILE)
    most = int(poisson.ppf(1 - 1e-12, expected)) + 1
    runs = np.arange(1, most + 1)
    paid = poisson.pmf(runs, expected) * norm.sf(case.port / runs, case.saving, deviation)
    return case.success * min(1.0, float(paid.sum()))


# How each input of the tornado is set.
_SET: Mapping[str, Callable[[Case, float], Case]] = {
    "port_cost": lambda case, value: replace(case, port=value),
    "saving_per_run": lambda case, value: case.with_saving(value),
    "runs_per_month": lambda case, value: replace(case, runs_per_month=value),
    "success_ratio": lambda case, value: replace(case, success=value),
    "baseline_price_fall_ratio": lambda case, value: replace(case, baseline_fall=value),
}
INPUTS = tuple(_SET)


@dataclass(frozen=True)
class Bar:
    """One bar of the tornado: an input's ends, what the port is expected to bring at each, where it is nothing."""

    input: str
    low: float
    base: float
    high: float
    at_low: float
    at_high: float
    break_even: float | None

    @property
    def swing(self) -> float:
        """How far the input moves what is expected."""
        return abs(self.at_high - self.at_low)


def tornado(case: Case, saving_low: float | None = None, saving_high: float | None = None) -> list[Bar]:
    """The bars, the widest first. The saving goes over its interval, a share over a tenth and to its bounds, the
    fall of prices from none to twice, what else over a quarter."""
    base = {
        "port_cost": case.port,
        "saving_per_run": case.saving,
        "runs_per_month": case.runs_per_month,
        "success_ratio": case.success,
        "baseline_price_fall_ratio": case.baseline_fall,
    }
    ends = {name: (value - abs(value) / 4, value + abs(value) / 4) for name, value in base.items()}
    if saving_low is not None and saving_high is not None:
        ends["saving_per_run"] = saving_low, saving_high
    ends["success_ratio"] = max(0.0, case.success - 0.1), min(1.0, case.success + 0.1)
    ends["baseline_price_fall_ratio"] = 0.0, min(1.0, 2 * case.baseline_fall)
    bars = []
    for name, (low, high) in ends.items():
        at_low, at_high = (_SET[name](case, end).expected for end in (low, high))
        bars.append(Bar(name, low, base[name], high, at_low, at_high, break_even_value(case, name)))
    return sorted(bars, key=lambda bar: (-bar.swing, bar.input))


def break_even_value(case: Case, name: str) -> float | None:
    """The value of an input at which the port is expected to bring exactly what it costs, all else equal.

    None where no value that the input can have does: a share or a fall between 0 and 1, runs and a cost from 0 up.
    """
    if name == "baseline_price_fall_ratio":
        return _fall(case)
    # Every other input enters linearly, so two points define the line.
    at_zero, at_one = _SET[name](case, 0.0).expected, _SET[name](case, 1.0).expected
    if at_zero == at_one:
        return None
    value = at_zero / (at_zero - at_one)
    lowest, highest = {"saving_per_run": (-inf, inf), "success_ratio": (0.0, 1.0)}.get(name, (0.0, inf))
    return value if isfinite(value) and lowest <= value <= highest else None


def _fall(case: Case) -> float | None:
    """Savings only shrink as prices fall faster, so there is one such fall or none."""
    from scipy.optimize import brentq

    # In what a month leaves of a price the curve has no steep end.
    def brings(left: float) -> float:
        return replace(case, baseline_fall=1 - left**12).expected

    # No price falls by more than 99.9 % a year; nearer to all of it a double no longer resolves the remainder.
    least = 0.001 ** (1 / 12)
    if brings(1.0) < 0 or brings(least) > 0 or brings(least) == brings(1.0):
        return None
    left = float(brentq(brings, least, 1.0, xtol=1e-14))  # type: ignore[arg-type]
    return 1 - left**12
