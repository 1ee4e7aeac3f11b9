"""Why one side's unit of work costs less: the difference of two costs as a sum over their factors (LMDI, additive).

Each cost is a product of factors, all above zero. With L(a, b) = (a - b) / (ln a - ln b), the logarithmic mean, a
factor's part of the difference is L(GPU's cost, Trainium's cost) x ln(GPU's factor / Trainium's factor): no residual,
and the same whichever side comes first. One factor is not passed but what remains of each cost once the others are
divided out.

- A passed factor that a side lacks is not measured: its part is None, and what it did stands in the remaining factor's.
- Parts are rounded to ten places and the remaining factor takes the rounding, so they sum to the last decimal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import log

PLACES = Decimal("1e-10")
# Costs further apart than a double's digits have the mean of a limit.
_CLOSE = 1e-6


@dataclass(frozen=True)
class Part:
    """What one factor did: its value a side, its share of ln(GPU / Trainium), its USD of the difference."""

    factor: str
    baseline: float | None
    candidate: float | None
    log_ratio: float | None
    usd: Decimal | None


def decompose(
    baseline_cost: Decimal,
    candidate_cost: Decimal,
    factors: Mapping[str, tuple[float | None, float | None]],
    remaining: str,
) -> list[Part]:
    """The parts of `baseline_cost` - `candidate_cost`, in the order of `factors`, then `remaining`."""
    costs = float(baseline_cost), float(candidate_cost)
    rest_log = _log_ratio(*costs)
    mean = sum(costs) / 2 if abs(rest_log) < _CLOSE else (costs[0] - costs[1]) / rest_log
    parts, rest = [], costs
    for name, (baseline, candidate) in factors.items():
        if baseline is None or candidate is None:
            parts.append(Part(name, baseline, candidate, None, None))
            continue
        ratio = _log_ratio(baseline, candidate)
        rest, rest_log = (rest[0] / baseline, rest[1] / candidate), rest_log - ratio
        parts.append(Part(name, baseline, candidate, ratio, Decimal(repr(mean * ratio)).quantize(PLACES)))
    measured_usd = sum((part.usd for part in parts if part.usd is not None), Decimal(0))
    return [*parts, Part(remaining, *rest, rest_log, baseline_cost - candidate_cost - measured_usd)]


def _log_ratio(one: float, other: float) -> float:
    # Not of the quotient, which may leave the range of doubles.
    return log(one) - log(other)
