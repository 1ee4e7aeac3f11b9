"""Is a cost far from its own history? Median and median absolute deviation of logarithms, so that a few odd points in
the history neither hide nor make an alarm (Iglewicz and Hoaglin 1993: modified z-score).

The deviation of a short history is itself uncertain, so the bar is higher the shorter it is: of calm lognormal costs
fewer than one in a thousand are taken for far off at any length (tests/unit/test_cost_anomaly.py measures it).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from statistics import median

# Of a normal distribution 1.4826 x MAD is the standard deviation.
_MAD_TO_DEVIATION = 1.4826
# Costs that never differed would make any difference infinitely far.
_LEAST_DEVIATION = 0.02
_BAR, _BAR_OF_FEW = 4.0, 15
# Smaller changes raise no alarm, however steady the history; nor do costs seen before.
LEAST_FACTOR = 1.5


@dataclass(frozen=True)
class FarOff:
    """What was to be expected, between what the history lay, and how many deviations off it is."""

    expected: float
    low: float
    high: float
    score: float


def far_off(observed: float, history: Sequence[float], *, below: bool) -> FarOff | None:
    """How far a cost is from its history; None where it is not far, or cheaper and `below` is not set.

    The history is of three costs or more, all above zero. What happened before is no news: the cost must also lie half
    as much again beyond all of its history but one.
    """
    ranked = sorted(history)
    logs = [log(cost) for cost in ranked]
    middle = median(logs)
    deviation = max(_MAD_TO_DEVIATION * median(abs(one - middle) for one in logs), _LEAST_DEVIATION)
    distance = log(observed) - middle
    bar = _BAR * (1 + _BAR_OF_FEW / (len(ranked) - 2)) * deviation
    is_expensive = distance > bar and observed >= LEAST_FACTOR * ranked[-2]
    is_cheap = below and -distance > bar and observed * LEAST_FACTOR <= ranked[1]
    if not is_expensive and not is_cheap:
        return None
    return FarOff(median(ranked), ranked[0], ranked[-1], abs(distance) / deviation)
