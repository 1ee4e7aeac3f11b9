"""Cost per success of two sides, the saving between them and its interval (design 5): pure functions of arrays.

Cost per success is a ratio of sums over all ended runs, R = ΣC/ΣS. Its logarithm has the variance of a ratio (delta
method) over clusters of runs that share machines. Each end of the interval takes the failure rate that is unfavorable
to the claim: the upper end of its exact (Clopper and Pearson 1934) bound. Arrays are (..., runs), so that the shipped
simulation runs through this code.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipelines.analysis import quantiles
from pipelines.analysis.quantiles import Floats

Method = Literal["ratio of sums", "registered pairs"]
LEVEL = 0.975
# How often the planned runs shall decide.
POWER = 0.8
FEWEST_CLUSTERS = 3
# Half the width of the interval that more runs are counted for, as points of saving.
WANTED_HALF_WIDTH = 0.05
MOST_RUNS = 100_000
# Below it a variance is only the rounding of costs to ten places.
_NO_VARIANCE = 1e-16


@dataclass(frozen=True)
class Sample:
    """The ended runs of a side: `costs` USD and `units` of work, 0 for a failed run, both (..., runs).

    `clusters` numbers the cluster of each run. `rate_runs` and `rate_failed_runs` count further ended runs that the
    failure rate is taken from. What cannot fail, such as a day of traffic, has no failure rate.
    """

    costs: Floats
    units: Floats
    clusters: Sequence[int]
    rate_runs: int = 0
    rate_failed_runs: int = 0
    can_fail: bool = True

    @property
    def unit_cost(self) -> Floats:
        """Cost per unit of work, failed runs included."""
        return self.costs.sum(-1) / self.units.sum(-1)

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which runs did nothing that is compared."""
        return self.units == 0

    @property
    def residuals(self) -> Floats:
        """C - R·S of each run over the cost of all runs."""
        return (self.costs - self.unit_cost[..., None] * self.units) / self.costs.sum(-1)[..., None]


def sample(costs: Sequence[float], units: Sequence[float] | None = None, clusters: Sequence[int] = ()) -> Sample:
    """A sample of one side; without `units` every run is a success, without `clusters` each is its own."""
    return Sample(
        np.asarray(costs, float),
        np.ones(len(costs)) if units is None else np.asarray(units, float),
        clusters or range(len(costs)),
    )


@dataclass(frozen=True)
class Estimate:
    """A saving as a ratio, with its 95 % interval; `missing` is why there are no bounds."""

    method: Method
    saving: float
    low: float | None = None
    high: float | None = None
    missing: str | None = None

    @property
    def conclusion(self) -> str | None:
        """Whether the candidate is cheaper, more expensive, or that is undecided; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return "cheaper" if self.low > 0 else "more expensive" if self.high < 0 else "undecided"


def interval(
    baseline: Sample, candidate: Sample, pairs: Sequence[tuple[int, int]] = ()
) -> tuple[Floats, Floats, Floats]:
    """ln of candidate ÷ baseline cost per unit and its low and high end, each (...); NaN ends where there is none.

    `pairs` are positions (baseline, candidate) of registered pairs that cover every run.
    """
    with np.errstate(all="ignore"):
        (one, own), (other, others) = (_variance(side.residuals, side.clusters) for side in (baseline, candidate))
        if pairs:
            ours, theirs = (list(positions) for positions in zip(*pairs, strict=True))
            residuals = candidate.residuals[..., theirs] - baseline.residuals[..., ours]
            variance, freedom = _variance(residuals, _pair_clusters(baseline, candidate, pairs))
        else:
            variance = one + other
            freedom = variance**2 / (one**2 / own + other**2 / others)
        # Days of traffic are the same days on both sides, whatever one of them costs.
        if not pairs or baseline.can_fail:
            variance = np.where(np.minimum(one, other) > _NO_VARIANCE, variance, np.nan)
        margin = quantiles.student_t(freedom, LEVEL) * np.sqrt(np.where(variance > _NO_VARIANCE, variance, np.nan))
        ln_b, ln_c = np.log(baseline.unit_cost), np.log(candidate.unit_cost)
        failed = _mean_failed_cost(baseline, candidate)
        low = ln_c - _unfavorable(baseline, failed) - margin
        high = _unfavorable(candidate, failed) - ln_b + margin
        return ln_c - ln_b, low, high


def estimate(baseline: Sample, candidate: Sample, pairs: Sequence[tuple[int, int]] = ()) -> Estimate:
    """The saving of the candidate over the baseline; ValueError where a side cost nothing or did nothing."""
    for side in (baseline, candidate):
        if side.costs.sum() <= 0 or side.units.sum() <= 0:
            raise ValueError("a side without cost or without a success has no cost per success")
    method: Method = "registered pairs" if pairs else "ratio of sums"
    ratio, low, high = (float(value) for value in interval(baseline, candidate, pairs))
    saving = 1 - float(np.exp(ratio))
    clusters = [_pair_clusters(baseline, candidate, pairs)] if pairs else [baseline.clusters, candidate.clusters]
    counted = [len(set(numbers)) for numbers in clusters]
    if min(counted) < FEWEST_CLUSTERS:
        words = " and ".join(map(str, counted))
        what = "pairs" if pairs else "runs a side"
        return Estimate(method, saving, missing=f"{words} independent {what}; an interval needs {FEWEST_CLUSTERS}")
    if np.isnan(low):
        varies = all(_variance(side.residuals, side.clusters)[0] > _NO_VARIANCE for side in (baseline, candidate))
        equal = (
            "the costs of all registered pairs have the same ratio" if varies else "all runs of a side cost the same"
        )
        return Estimate(method, saving, missing=f"{equal}, so nothing shows how costs vary")
    # A wide interval of few runs has no meaningful upper end.
    ends = [1 - float(np.exp(min(end, np.log(1e6)))) for end in (high, low)]
    return Estimate(method, saving, ends[0], ends[1])


def unit_cost(side: Sample) -> tuple[float, float | None, float | None, str | None]:
    """Cost per unit of a side that cost and did something, its 95 % interval, and why there is none."""
    value, clusters = float(side.unit_cost), len(set(side.clusters))
    if clusters < FEWEST_CLUSTERS:
        runs = f"{clusters} independent run{'s' * (clusters != 1)}"
        return value, None, None, f"{runs}; an interval needs {FEWEST_CLUSTERS}"
    variance, freedom = (float(part) for part in _variance(side.residuals, side.clusters))
    if variance <= _NO_VARIANCE:
        return value, None, None, "all runs cost the same, so nothing shows how costs vary"
    margin = float(quantiles.student_t(freedom, LEVEL)) * np.sqrt(variance)
    with np.errstate(all="ignore"):
        high = float(_unfavorable(side, _mean_failed_cost(side, side)))
    return value, float(np.exp(np.log(value) - margin)), float(np.exp(high + margin)), None


def runs_needed(baseline: Sample, candidate: Sample, deciding: float | None = None) -> int | None:
    """Runs a side whose interval is ±5 points wide, or excludes the saving `deciding` in four of five cases.

    Costs and failures go on as in these samples; None where fewer than two successes, or equal costs, show nothing.
    """
    if any((~side.failed).sum() < 2 or side.costs.sum() <= 0 for side in (baseline, candidate)):
        return None

    def enough(runs: int) -> bool:
        low, high = _ends(baseline, candidate, runs, 0.5)
        if high < 50 and (np.exp(high) - np.exp(low)) / 2 <= WANTED_HALF_WIDTH:
            return True
        if deciding is None or deciding >= 1:
            return False
        low, high = _ends(baseline, candidate, runs, POWER)
        return bool(high < np.log1p(-deciding) or low > np.log1p(-deciding))

    # At the size of the larger sample all is known but what never varies.
    if np.isnan(_ends(baseline, candidate, max(baseline.costs.size, candidate.costs.size), 0.5)[0]):
        return None
    return 2 + bisect_left(range(2, MOST_RUNS), True, key=enough)


def _ends(baseline: Sample, candidate: Sample, runs: int, power: float) -> tuple[float, float]:
    """The interval if each side had so many runs like its own.

    A `power` above one half widens it so far that the next one of as many runs excludes what this one excludes with
    that chance.
    """
    with np.errstate(all="ignore"):
        parts = [(side.residuals**2).sum() * side.costs.size / (runs - 1) for side in (baseline, candidate)]
        if min(parts) <= _NO_VARIANCE:
            return np.nan, np.nan
        freedom = sum(parts) ** 2 / sum(part**2 / (runs - 1) for part in parts)
        t = quantiles.student_t(freedom, LEVEL) + (quantiles.student_t(freedom, power) if power > 0.5 else 0.0)
        margin = float(t * np.sqrt(sum(parts)))
        failed = _mean_failed_cost(baseline, candidate)
        more = [
            replace(
                side,
                rate_runs=side.rate_runs + runs - side.costs.size,
                rate_failed_runs=side.rate_failed_runs + side.failed.sum() * (runs / side.costs.size - 1),
            )
            for side in (baseline, candidate)
        ]
        ln_b, ln_c = (float(np.log(side.unit_cost)) for side in (baseline, candidate))
        low = ln_c - float(_unfavorable(more[0], failed)) - margin
        return low, float(_unfavorable(more[1], failed)) - ln_b + margin


def portfolio(by_workload: Mapping[str, float]) -> Estimate:
    """The saving of a portfolio from the saving of each of its workloads, which count alike.

    The workload is the cluster: its runs share a model, a port and mistakes, so only workloads are replicates and a
    one-sample t over their logarithms shows how the saving varies (Cameron and Miller 2015, few clusters).
    """
    logs = np.log1p(-np.asarray(list(by_workload.values()), float))
    saving = 1 - float(np.exp(logs.mean()))
    if len(logs) < 2 or logs.var() <= _NO_VARIANCE:
        return Estimate("ratio of sums", saving, missing="nothing shows how workloads vary")
    half = float(quantiles.student_t(len(logs) - 1, LEVEL)) * logs.std(ddof=1) / np.sqrt(len(logs))
    ends = [1 - float(np.exp(logs.mean() + end)) for end in (half, -half)]
    return Estimate("ratio of sums", saving, ends[0], ends[1])


def not_inferior(
    baseline: Sequence[float], candidate: Sequence[float], margin: float, direction: Literal["min", "max"]
) -> tuple[float, bool] | None:
    """How much worse the candidate's final quality may be (upper 95 % bound), and whether that is within the margin.

    One-sided test of non-inferiority (CONSORT 2012; FDA 2016, the fixed-margin method) by Welch's t, in the metric's
    own unit, positive is worse. None with fewer than two runs a side: one value does not show how it varies.
    """
    if min(len(baseline), len(candidate)) < 2:
        return None
    sign = 1.0 if direction == "min" else -1.0
    x, y = sign * np.asarray(baseline, float), sign * np.asarray(candidate, float)
    parts = [side.var(ddof=1) / len(side) for side in (x, y)]
    worst = float(y.mean() - x.mean())
    if sum(parts) > 0:
        freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (x, y), strict=True))
        worst += float(quantiles.student_t(freedom, 0.95) * np.sqrt(sum(parts)))
    return worst, worst <= margin


def _variance(residuals: Floats, clusters: Sequence[int]) -> tuple[Floats, int]:
    """Variance of ln R and its degrees of freedom; NaN below FEWEST_CLUSTERS clusters.

    A cluster's residuals count over the part of the runs that is not its own (jackknife). Of clusters of one size that
    is G/(G - 1)·Σe²; a machine with most of the runs draws R to itself, and would else look as if it varied little.
    """
    names = sorted(set(clusters))
    member = np.equal.outer(clusters, names).astype(float)
    count = len(names)
    if count < FEWEST_CLUSTERS:
        return np.full(residuals.shape[:-1], np.nan), count - 1
    by_cluster = residuals @ member / (1 - member.mean(0))
    return (count - 1) / count * (by_cluster**2).sum(-1), count - 1


def _pair_clusters(baseline: Sample, candidate: Sample, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The cluster of each pair: pairs of which either run shares a cluster are one."""
    return joined([(("b", baseline.clusters[one]), ("c", candidate.clusters[other])) for one, other in pairs])


def joined(keys: Sequence[Sequence[Any]]) -> list[int]:
    """A number for each element: elements that share a key, directly or through others, have the same."""
    parent = list(range(len(keys)))

    def root(position: int) -> int:
        while parent[position] != position:
            parent[position] = position = parent[parent[position]]
        return position

    seen: dict[Any, int] = {}
    for position, own in enumerate(keys):
        for key in own:
            parent[root(position)] = root(seen.setdefault(key, position))
    return [root(position) for position in range(len(keys))]


def _mean_failed_cost(baseline: Sample, candidate: Sample) -> Floats:
    """Mean cost of a failed run of both sides; NaN where none failed."""
    count = baseline.failed.sum(-1) + candidate.failed.sum(-1)
    return sum((side.costs * side.failed).sum(-1) for side in (baseline, candidate)) / count


def _unfavorable(side: Sample, mean_failed_cost: Floats) -> Floats:
    """ln of the cost per unit at the upper end of the side's failure rate; never below the measured one."""
    if not side.can_fail:
        return np.log(side.unit_cost)
    failed = side.failed.sum(-1)
    successes = side.costs.shape[-1] - failed
    all_failed, all_succeeded = failed + side.rate_failed_runs, successes + side.rate_runs - side.rate_failed_runs
    p = quantiles.beta(all_failed + 1, all_succeeded, LEVEL)
    spent = (side.costs * ~side.failed).sum(-1)
    mean_failed = np.where(np.isnan(mean_failed_cost), 0.5 * spent / successes, mean_failed_cost)
    with_rate = (spent + successes * p / (1 - p) * mean_failed) / side.units.sum(-1)
    return np.maximum(np.log(with_rate), np.log(side.unit_cost))
