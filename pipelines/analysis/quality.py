"""Whether the models that came out are as good as each other: without that no saving is claimed (design 5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from pipelines.analysis.estimate import not_inferior


@dataclass(frozen=True)
class Margin:
    """How much worse the final `metric` may be, in its own unit, as registered beforehand."""

    metric: str
    direction: Literal["min", "max"]
    margin: float


@dataclass(frozen=True)
class Quality:
    """`status` is met, missed, missing, or not shown; `reason` the clause that explains it.

    `worst` is how much worse Trainium's mean may be, the upper bound of a one-sided 95 % interval.
    """

    status: Literal["met", "missed", "missing", "not shown"]
    reason: str
    baseline: float | None = None
    candidate: float | None = None
    worst: float | None = None
    metric: str | None = None


def judge_quality(
    baseline: Mapping[str, float | None], candidate: Mapping[str, float | None], margin: Margin
) -> Quality:
    """The final metric of each run by its id, held against the margin; a run without one leaves it missing."""
    missing = sorted(run for side in (baseline, candidate) for run, value in side.items() if value is None)
    if missing:
        more = f" and {len(missing) - 1} more runs" if len(missing) > 1 else ""
        reason = f"the final {margin.metric} of run {missing[0]}{more} is not recorded"
        return Quality("missing", reason, metric=margin.metric)
    x, y = ([value for value in side.values() if value is not None] for side in (baseline, candidate))
    means = fmean(x), fmean(y)
    found = not_inferior(x, y, margin.margin, margin.direction)
    if found is None:
        reason = f"one run a side does not show that {margin.metric} is equally good"
        return Quality("not shown", reason, *means, metric=margin.metric)
    worst, is_within = found
    words = (
        f"final {margin.metric} is {means[0]:.6g} on GPU and {means[1]:.6g} on Trainium, at worst {worst:.3g} worse, "
        f"{'within' if is_within else 'more than'} the registered margin of {margin.margin:g}"
    )
    return Quality("met" if is_within else "missed", words, *means, worst, margin.metric)
