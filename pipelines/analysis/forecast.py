"""Forecast of the coming months with its interval: pure functions of monthly amounts, oldest first.

From six whole months on, a line is fitted to the last twelve (ordinary least squares); from three on, the mean; fewer
give a mean without an interval. The interval is the 95 % prediction interval (Student t) of the SUM of the coming
months: it includes the variation of the months and the uncertainty of the fit. Months count as independent and without
a season, so the interval is too narrow for a strongly seasonal company.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from pipelines.analysis.quantiles import student_t

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
    n, mean = len(known), sum(known) / len(known)
    if n < FEWEST_MONTHS:
        return Ahead(months * mean, None, None, f"the mean of {n} month{'' if n == 1 else 's'}")
    if n < LINE_MONTHS:
        variance = sum((value - mean) ** 2 for value in known) / (n - 1)
        half = _quantile(n - 1) * sqrt(variance * (months + months**2 / n))
        return Ahead(months * mean, months * mean - half, months * mean + half, f"the mean of {n} months")
    middle = (n - 1) / 2
    spread = sum((at - middle) ** 2 for at in range(n))
    slope = sum((at - middle) * (value - mean) for at, value in enumerate(known)) / spread
    missed = sum((value - mean - slope * (at - middle)) ** 2 for at, value in enumerate(known))
    # Sum of the distances of the coming months from the middle of the known ones.
    reach = sum(at - middle for at in range(n, n + months))
    total = months * mean + slope * reach
    half = _quantile(n - 2) * sqrt(missed / (n - 2) * (months + months**2 / n + reach**2 / spread))
    return Ahead(total, total - half, total + half, f"a line through {n} months")


def runway(history: Sequence[float], remaining: float) -> Runway:
    """How long `remaining` lasts if months use the mean of `history`.

    Its ends are where a bound of the use, `months` x mean ± t·sqrt(variance·(months + months²/n)), is what remains: the
    roots of one quadratic. The upper bound meets it at the lower root; the lower one at the other, if it ever does.
    """
    known = list(history)[-MOST_MONTHS:]
    if remaining <= 0:
        return Runway(0.0, 0.0, 0.0)
    if not known:
        return Runway(None, None, None)
    n, mean = len(known), sum(known) / len(known)
    lasts = remaining / mean if mean > 0 else None
    if n < FEWEST_MONTHS:
        return Runway(lasts, None, None)
    width = _quantile(n - 1) ** 2 * sum((value - mean) ** 2 for value in known) / (n - 1)
    square, half = mean**2 - width / n, mean * remaining + width / 2
    root_square = half**2 - square * remaining**2
    if root_square < 0:
        # More was returned than used, by so much that no bound of the use ever comes to what remains.
        return Runway(None, None, None)
    root = sqrt(root_square)
    # Each as a quotient that does not cancel.
    low = remaining**2 / (half + root) if half + root > 0 else None
    high = (half + root) / square if square > 0 and mean > 0 else None
    return Runway(lasts, *(end if end is not None and end <= FARTHEST_MONTHS else None for end in (low, high)))


def _quantile(freedom: int) -> float:
    return float(student_t(freedom, (1 + LEVEL) / 2))
