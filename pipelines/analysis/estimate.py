"""How much cheaper one side's runs are, with its interval: pure functions of positive costs (design 5).

Costs of training multiply (price × time × work), so they are compared as logarithms: d is the mean difference of
ln(Trainium) and ln(GPU), the saving 1 - exp(d), and its interval that of d carried through the same function.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp, log, sinh, sqrt
from typing import Any, Literal

import numpy as np

Method = Literal["welch", "paired", "bootstrap"]
LEVEL = 0.95
# How often the planned runs shall decide.
POWER = 0.8
# Below it a bootstrap interval is too narrow: its tail is made of too few different samples.
BOOTSTRAP_FLOOR = 20
# Above it means are normal whatever the costs are, and the work would grow with the square of the runs.
BOOTSTRAP_CEILING = 200
RESAMPLES = 4_000
# The same interval for the same costs, on every machine and day.
SEED = 20_260_701
# Half the width of the interval that more runs are counted for, as points of saving.
WANTED_HALF_WIDTH = 0.05
MOST_RUNS = 100_000


@dataclass(frozen=True)
class Estimate:
    """A saving as a ratio, with its 95 % interval; no bounds where nothing shows how the costs vary.

    `more_runs` are those each side lacks (GPU, Trainium) for an interval of ±5 points; None where that is unknown.
    """

    method: Method
    saving: float
    low: float | None
    high: float | None
    more_runs: tuple[int | None, int | None] = (None, None)


def estimate(
    baseline: Sequence[float], candidate: Sequence[float], pairs: Sequence[tuple[float, float]] = ()
) -> Estimate:
    """The saving of Trainium over GPU from one cost a run; `pairs` (GPU, Trainium) where runs were paired beforehand.

    Paired Student t when every run is in a pair, else Welch's t with the degrees of freedom of Welch and
    Satterthwaite (Welch 1947); BCa bootstrap (Efron 1987) from 20 to 200 runs a side. ValueError for a cost of nothing.
    """
    if not baseline or not candidate or min(*baseline, *candidate) <= 0:
        raise ValueError("a cost that is not above zero has no logarithm")
    x, y = np.log(np.asarray(baseline, float)), np.log(np.asarray(candidate, float))
    if pairs and len(pairs) == len(baseline) == len(candidate):
        difference = np.log(np.asarray([pair[1] / pair[0] for pair in pairs], float))
        d, bounds = float(difference.mean()), _paired(difference)
        more = None
        if bounds is not None:
            more = max(0, _runs_wanted(d, [float(difference.var(ddof=1))]) - len(pairs))
        return _as_saving("paired", d, bounds, (more, more))
    d = float(y.mean() - x.mean())
    if min(len(x), len(y)) >= BOOTSTRAP_FLOOR and max(len(x), len(y)) <= BOOTSTRAP_CEILING:
        return _as_saving("bootstrap", d, _bootstrap(x, y), _more(d, x, y))
    return _as_saving("welch", d, _welch(x, y), _more(d, x, y))


def runs_wanted(costs: Sequence[float]) -> int | None:
    """Runs a side for an interval of ±5 points about a saving of nothing, if both sides vary as these costs do.

    None where they do not show how costs vary. Where Trainium is cheaper fewer suffice.
    """
    if len(costs) < 2 or min(costs) <= 0:
        return None
    logs = np.log(np.asarray(costs, float))
    return _runs_wanted(0.0, [float(logs.var(ddof=1))] * 2) if _varies(logs) else None


def runs_to_decide(baseline: Sequence[float], candidate: Sequence[float], saving: float) -> int | None:
    """Runs a side that show whether more or less than `saving` is saved, or how much to ±5 points, whichever are fewer.

    If the costs go on as they did, their interval then leaves `saving` out in four of five cases; None where they do
    not show how costs vary.
    """
    if min(len(baseline), len(candidate)) < 2 or min(*baseline, *candidate) <= 0:
        return None
    x, y = np.log(np.asarray(baseline, float)), np.log(np.asarray(candidate, float))
    d = float(y.mean() - x.mean())
    variances = [float(x.var(ddof=1)), float(y.var(ddof=1))]
    return _runs_wanted(d, variances, abs(log(1 - saving) - d)) if _varies(x, y) else None


def clustered(by_workload: Mapping[str, float]) -> Estimate:
    """The saving of a portfolio from the saving of each of its workloads, which count alike.

    The workload is the cluster: its runs share a model, a port and mistakes, so only workloads are replicates and a
    one-sample t over their logarithms shows how the saving varies (Cameron and Miller 2015, few clusters).
    """
    logs = np.log1p(-np.asarray(list(by_workload.values()), float))
    return _as_saving("paired", float(logs.mean()), _paired(logs), (None, None))


def _more(d: float, x: Any, y: Any) -> tuple[int | None, int | None]:
    if min(len(x), len(y)) < 2:
        return None, None
    if not _varies(x, y):
        return None, None
    variances = [float(x.var(ddof=1)), float(y.var(ddof=1))]
    wanted = _runs_wanted(d, variances)
    return max(0, wanted - len(x)), max(0, wanted - len(y))


def _runs_wanted(d: float, variances: Sequence[float], apart: float = 0.0) -> int:
    """The least runs a side whose t interval of d would be ±5 points wide, if the costs go on varying as they did; or
    with that power leave out what lies so far `apart` from d."""

    from scipy import special

    def is_enough(runs: int) -> bool:
        parts = [variance / runs for variance in variances]
        freedom = sum(parts) ** 2 / sum(part**2 / (runs - 1) for part in parts)
        half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * sqrt(sum(parts))
        if half + float(special.stdtrit(freedom, POWER)) * sqrt(sum(parts)) <= apart:
            return True
        # Half of exp(d + half) - exp(d - half); what overflows is too wide anyway.
        return half < 50 and exp(d) * sinh(half) <= WANTED_HALF_WIDTH

    # More runs never make it wider.
    return 2 + bisect_left(range(2, MOST_RUNS), True, key=is_enough)


@contextmanager
def _statistics() -> Iterator[Any]:
    """scipy.stats, which takes a second to import; that a side may not vary is known without its warning."""
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield stats


def _varies(*samples: Any) -> bool:
    """Whether values differ by more than what a cost is rounded by."""
    return any(float(np.ptp(sample)) > 1e-6 * max(1.0, float(np.abs(sample).max())) for sample in samples)


def _welch(x: Any, y: Any) -> tuple[float, float] | None:
    if min(len(x), len(y)) < 2 or not _varies(x, y):
        return None
    with _statistics() as stats:
        found = stats.ttest_ind(y, x, equal_var=False).confidence_interval(LEVEL)
    return float(found.low), float(found.high)


def _paired(difference: Any) -> tuple[float, float] | None:
    if len(difference) < 2 or not _varies(difference):
        return None
    with _statistics() as stats:
        found = stats.ttest_1samp(difference, 0).confidence_interval(LEVEL)
    return float(found.low), float(found.high)


def _bootstrap(x: Any, y: Any) -> tuple[float, float] | None:
    if not _varies(x, y):
        return None

    def difference(baseline: Any, candidate: Any, axis: int = -1) -> Any:
        return candidate.mean(axis=axis) - baseline.mean(axis=axis)

    with _statistics() as stats:
        found = stats.bootstrap(
            (x, y), difference, n_resamples=RESAMPLES, method="BCa", vectorized=True, rng=np.random.default_rng(SEED)
        ).confidence_interval
    return float(found.low), float(found.high)


def _as_saving(
    method: Method, d: float, bounds: tuple[float, float] | None, more: tuple[int | None, int | None]
) -> Estimate:
    if bounds is None:
        return Estimate(method, 1 - exp(d), None, None, more)
    # A wide interval of few runs has no meaningful upper end.
    low, high = (1 - exp(min(bound, log(1e6))) for bound in (bounds[1], bounds[0]))
    return Estimate(method, 1 - exp(d), low, high, more)


def not_inferior(
    baseline: Sequence[float], candidate: Sequence[float], margin: float, direction: Literal["min", "max"]
) -> tuple[float, bool] | None:
    """How much worse Trainium's final quality may be (the upper 95 % bound), and whether that is within the margin.

    One-sided test of non-inferiority (CONSORT 2012; FDA 2016, the fixed-margin method) by Welch's t, in the metric's
    own unit, positive is worse. None with fewer than two runs a side: one value does not show how it varies.
    """
    if min(len(baseline), len(candidate)) < 2:
        return None
    sign = 1.0 if direction == "min" else -1.0
    x, y = sign * np.asarray(baseline, float), sign * np.asarray(candidate, float)
    if _varies(x, y):
        with _statistics() as stats:
            found = stats.ttest_ind(y, x, equal_var=False, alternative="less").confidence_interval(LEVEL)
        worst = float(found.high)
    else:
        worst = float(y.mean() - x.mean())
    return worst, worst <= margin
