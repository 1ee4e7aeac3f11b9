"""Why one side's unit of work costs less: the difference of two costs as a sum over their factors (LMDI, additive).

Each cost is a product of factors. With L(a, b) = (a - b) / (ln a - ln b), the logarithmic mean, a factor's part of the
difference is L(GPU's cost, Trainium's cost) x ln(GPU's factor / Trainium's factor): no residual, and the same whichever
side comes first. One factor is not passed but what remains of each cost once the others are divided out.

- A passed factor that a side lacks, or that is not above zero while the costs are, is not measured: its part is None,
  and what it did stands in the remaining factor's.
- A cost of zero has no logarithm; in the limit the whole difference is that of the factor that made it zero: of the
  passed ones that are zero on that side, in equal parts, else of the remaining one. Every part of 0 and 0 is zero.
- Parts are rounded to ten places and the remaining factor takes the rounding, so they sum to the last decimal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite, log

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
    """The parts of `baseline_cost` - `candidate_cost`, in the order of `factors`, then `remaining`.

    ValueError for a cost below zero or not finite, and for a `remaining` that is also passed.
    """
    if not (baseline_cost.is_finite() and candidate_cost.is_finite() and baseline_cost >= 0 and candidate_cost >= 0):
        raise ValueError(f"{baseline_cost} and {candidate_cost} are no costs to decompose; both must be zero or more")
    if remaining in factors:
        raise ValueError(f"{remaining} is what remains, so it cannot be passed")
    difference = baseline_cost - candidate_cost
    if not baseline_cost or not candidate_cost:
        return _of_nothing(difference, factors, remaining)
    costs = float(baseline_cost), float(candidate_cost)
    rest_log = _log_ratio(*costs)
    mean = sum(costs) / 2 if abs(rest_log) < _CLOSE else (costs[0] - costs[1]) / rest_log
    parts, rest = [], list(costs)
    for name, (baseline, candidate) in factors.items():
        if not (_is_measured(baseline) and _is_measured(candidate)):
            parts.append(Part(name, baseline, candidate, None, None))
            continue
        assert baseline is not None and candidate is not None
        ratio = _log_ratio(baseline, candidate)
        rest, rest_log = [rest[0] / baseline, rest[1] / candidate], rest_log - ratio
        parts.append(Part(name, baseline, candidate, ratio, Decimal(repr(mean * ratio)).quantize(PLACES)))
    measured_usd = sum((part.usd for part in parts if part.usd is not None), Decimal(0))
    return [*parts, Part(remaining, rest[0], rest[1], rest_log, difference - measured_usd)]


def _of_nothing(
    difference: Decimal, factors: Mapping[str, tuple[float | None, float | None]], remaining: str
) -> list[Part]:
    """The limit where a cost is zero."""
    side = 1 if difference > 0 else 0
    zero = [name for name, values in factors.items() if values[side] == 0] if difference else []
    share = (difference / len(zero)).quantize(PLACES) if zero else Decimal(0)
    parts = []
    for name, values in factors.items():
        usd = None if None in values else share if name in zero else Decimal(0)
        parts.append(Part(name, *values, None, usd))
    measured_usd = sum((part.usd for part in parts if part.usd is not None), Decimal(0))
    return [*parts, Part(remaining, None, None, None, difference - measured_usd)]


def _is_measured(value: float | None) -> bool:
    return value is not None and isfinite(value) and value > 0


def _log_ratio(one: float, other: float) -> float:
    # Not of the quotient, which may leave the range of doubles.
    return log(one) - log(other)
