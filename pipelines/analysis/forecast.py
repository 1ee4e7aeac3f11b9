"""Forecast of the coming months with its interval: pure functions of monthly amounts, oldest first.

From six whole months on, a line is fitted to the last twelve (ordinary least squares); from three on, the mean; fewer
give a mean without an interval. The interval is the 95 % prediction interval (Student t) of the SUM of the coming
months: it includes the variation of the months and the uncertainty of the fit. Months count as independent and without
a season, so the interval is too narrow for a strongly seasonal company.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

LEVEL = 0.95
FEWEST_MONTHS, LINE_MONTHS, MOST_MONTHS = 3, 6, 12
# A century: no longer runway is reported.
FARTHEST_MONTHS = 1200.0


@dataclass(frozen=True)
class Ahead:
    """The sum of the coming months; no bounds with fewer than FEWEST_MONTHS months."""

    total: float
    low: float | None
    high: float | None
    method: str


@dataclass(frozen=True)
class Runway:
    """After how many months an amount is used up; None where it never is, or is unknown."""

    months: float | None
    low: float | None
    high: float | None


def months_ahead(history: Sequence[float], months: int) -> Ahead | None:
    """The sum of the next `months`, from the months before; None without history."""
    known = list(history)[-MOST_MONTHS:]
    if not known:
        return None
    if len(known) < LINE_MONTHS:
        return _mean_ahead(known, months)
    n = len(known)
    middle, mean = (n - 1) / 2, sum(known) / n
    spread = sum((at - middle) ** 2 for at in range(n))
    slope = sum((at - middle) * (value - mean) for at, value in enumerate(known)) / spread
    missed = sum((value - mean - slope * (at - middle)) ** 2 for at, value in enumerate(known))
    # Sum of the distances of the coming months from the middle of the known ones.
    reach = sum(at - middle for at in range(n, n + months))
    total = months * mean + slope * reach
    half = _quantile(n - 2) * sqrt(missed / (n - 2) * (months + months**2 / n + reach**2 / spread))
    return Ahead(total, total - half, total + half, f"a line through {n} months")


def runway(history: Sequence[float], remaining: float) -> Runway:
    """How long `remaining` lasts if months use the mean of `history`."""
    known = list(history)[-MOST_MONTHS:]
    if remaining <= 0:
        return Runway(0.0, 0.0, 0.0)
    if not known:
        return Runway(None, None, None)
    mean = sum(known) / len(known)
    lasts = remaining / mean if mean > 0 else None
    if len(known) < FEWEST_MONTHS:
        return Runway(lasts, None, None)

    def bound(sign: int) -> Callable[[float], float]:
        return lambda months: months * mean + sign * _half_width(known, months) - remaining

    return Runway(lasts, _root(bound(1)), _root(bound(-1)))


def _mean_ahead(known: list[float], months: int) -> Ahead:
    total = months * sum(known) / len(known)
    method = f"the mean of {len(known)} month{'' if len(known) == 1 else 's'}"
    if len(known) < FEWEST_MONTHS:
        return Ahead(total, None, None, method)
    half = _half_width(known, months)
    return Ahead(total, total - half, total + half, method)


def _half_width(known: list[float], months: float) -> float:
    """Half the prediction interval of the sum of `months` months around the mean of the known ones."""
    n, mean = len(known), sum(known) / len(known)
    variance = sum((value - mean) ** 2 for value in known) / (n - 1)
    return _quantile(n - 1) * sqrt(variance * (months + months**2 / n))


def _quantile(freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, freedom))


def _root(of: Callable[[float], float]) -> float | None:
    """Where the function, below zero at 0, first reaches zero; None where it does not within a century."""
    from scipy.optimize import brentq

    upper = 1.0
    while of(upper) < 0:
        upper *= 2
        if upper > FARTHEST_MONTHS:
            return None
    found: Any = brentq(of, 0.0, upper, xtol=1e-9)
    return float(found)
