"""Whether a port to Trainium pays, and when (facts training-runs 8). Amounts are USD, ratios 0 to 1, times months.

A run saves what it costs on the GPU less what it costs on Trainium. GPU prices fall while the port is used, so what
month m saves is the GPU's cost after m/12 years of that fall, less Trainium's, which is taken to stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, erfc, exp, floor, fsum, inf, isfinite, lgamma, log, sqrt

# The 97.5 % quantile of the normal distribution: an interval of 95 % is twice that many deviations wide.
_QUANTILE = 1.959963984540054
# Below this a saving would take more runs than anybody counts.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Case:
    """A port: what it costs once, what a run costs on the GPU and saves, how often it runs, and what is assumed.

    The saving is below zero where Trainium is more expensive.
    """

    port_cost: float
    baseline: float
    saving_per_run: float
    runs_per_month: float
    months: int
    upkeep: float = 0.0
    discount: float = 0.0
    baseline_price_fall_ratio: float = 0.0
    success_ratio: float = 1.0

    @property
    def benefit(self) -> float:
        """What the months bring after upkeep, discounted, if the port succeeds."""
        brought = 0.0
        for month in range(1, self.months + 1):
            left = (1 - self.baseline_price_fall_ratio) ** (month / 12)
            saving = self.saving_per_run - self.baseline * (1 - left)
            brought += (self.runs_per_month * saving - self.upkeep) * (1 + self.discount) ** (-month / 12)
        return brought

    @property
    def npv(self) -> float:
        """Net present value if the port succeeds."""
        return self.benefit - self.port_cost

    @property
    def expected(self) -> float:
        """Net present value by the probability of success: a failed port costs what it costs and brings nothing."""
        return self.success_ratio * self.benefit - self.port_cost


def runs_to_break_even(port: float, saving: float) -> int | None:
    """Runs until a port is paid back; None for never, also of a free port whose runs save nothing."""
    if saving <= _NOTHING * max(port, 0.0):
        return None
    if port <= 0:
        return 0
    # A quotient that is whole but for a double's last digit takes no run more.
    return ceil(port / saving * (1 - 1e-12))


def payback_probability(case: Case, saving_low: float | None, saving_high: float | None) -> float | None:
    """Probability that the port succeeds and is paid back within its months, prices as today.

    Runs come independently at the measured cadence (Poisson); the saving is normal about its estimate with the supplied
    interval of 95 %; None without one, unless nothing hangs on it.
    """
    if case.port_cost <= 0 < case.saving_per_run:
        return case.success_ratio
    expected = case.runs_per_month * case.months
    if expected <= 0:
        return 0.0
    if saving_low is None or saving_high is None:
        return None
    deviation = max(0.0, saving_high - saving_low) / (2 * _QUANTILE)
    needed = runs_to_break_even(case.port_cost, case.saving_per_run) or inf

    def pays_back(runs: int) -> float:
        if not deviation:
            return float(runs >= needed)
        return erfc((case.port_cost / runs - case.saving_per_run) / deviation / sqrt(2)) / 2

    # Numbers of runs further from the expected one have a probability below 1e-15.
    around = 12 * sqrt(expected)
    counts = range(max(1, floor(expected - around)), ceil(expected + around) + 40)
    probability = fsum(exp(runs * log(expected) - expected - lgamma(runs + 1)) * pays_back(runs) for runs in counts)
    return case.success_ratio * min(1.0, round(probability, 9))


# Fields of a case that the tornado varies.
INPUTS = ("port_cost", "saving_per_run", "runs_per_month", "success_ratio", "baseline_price_fall_ratio")


@dataclass(frozen=True)
class Bar:
    """One bar of the tornado: an input's ends, the expected result at each and its swing, and where it is nothing."""

    sensitivity_input: str
    low_value: float
    base_value: float
    high_value: float
    low_npv_usd: float
    high_npv_usd: float
    break_even_value: float | None
    swing_usd: float


def tornado(case: Case, saving_low: float | None = None, saving_high: float | None = None) -> list[Bar]:
    """The bars, the widest first. The saving goes over its interval, a share over a tenth and to its bounds, the
    fall of prices from none to twice, what else over a quarter."""
    base = {name: getattr(case, name) for name in INPUTS}
    ends = {name: (value - abs(value) / 4, value + abs(value) / 4) for name, value in base.items()}
    if saving_low is not None and saving_high is not None:
        ends["saving_per_run"] = saving_low, saving_high
    ends["success_ratio"] = max(0.0, case.success_ratio - 0.1), min(1.0, case.success_ratio + 0.1)
    ends["baseline_price_fall_ratio"] = 0.0, min(1.0, 2 * case.baseline_price_fall_ratio)
    bars = []
    for name, (low, high) in ends.items():
        at_low, at_high = (replace(case, **{name: end}).expected for end in (low, high))
        zero, swing = break_even_value(case, name), abs(at_high - at_low)
        bars.append(Bar(name, low, base[name], high, at_low, at_high, zero, swing))
    return sorted(bars, key=lambda bar: (-bar.swing_usd, bar.sensitivity_input))


def break_even_value(case: Case, name: str) -> float | None:
    """The value of an input at which the port is expected to bring exactly what it costs, all else equal.

    None where no value that the input can have does: a share or a fall between 0 and 1, runs and a cost from 0 up.
    """
    if name == "baseline_price_fall_ratio":
        return _fall(case)
    # Every other input enters linearly, so two points define the line.
    at_zero, at_one = (replace(case, **{name: value}).expected for value in (0.0, 1.0))
    if at_zero == at_one:
        return None
    # Zero has no sign.
    value = at_zero / (at_zero - at_one) + 0.0
    lowest, highest = {"saving_per_run": (-inf, inf), "success_ratio": (0.0, 1.0)}.get(name, (0.0, inf))
    return value if isfinite(value) and lowest <= value <= highest else None


def _fall(case: Case) -> float | None:
    """Savings only shrink as prices fall faster, so there is one such fall or none."""

    # In what a month leaves of a price the curve has no steep end.
    def brings(left: float) -> float:
        return replace(case, baseline_price_fall_ratio=1 - left**12).expected

    # No price falls by more than 99.9 % a year; nearer to all of it a double no longer resolves the remainder.
    least = 0.001 ** (1 / 12)
    if brings(1.0) < 0 or brings(least) > 0 or brings(least) == brings(1.0):
        return None
    most = 1.0
    while most - least > 1e-14:
        middle = (least + most) / 2
        least, most = (least, middle) if brings(middle) >= 0 else (middle, most)
    return 1 - most**12
