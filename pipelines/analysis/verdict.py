"""The verdict of a comparison: one of five, its reason in words, and what would change it (design 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pipelines.analysis.estimate import Estimate, Method

Verdict = Literal["proven", "disproven", "inconclusive", "indicative", "not comparable"]
# Two runs may agree by luck; below three a side nothing is proven.
RUN_FLOOR = 3
_METHODS: dict[Method, str] = {
    "welch": "Welch's t on log cost",
    "paired": "paired t on log cost",
    "bootstrap": "BCa bootstrap of log cost",
}


@dataclass(frozen=True)
class Evidence:
    """What one pair has for a verdict, on one basis.

    `faults` make it not comparable, `warnings` leave it indicative, `support` is added to a verdict that stands; each
    one a clause. `floor` is how many runs a side were planned, or the least that can prove anything.
    """

    baseline_runs: int
    candidate_runs: int
    estimate: Estimate | None = None
    faults: Sequence[str] = ()
    warnings: Sequence[str] = ()
    support: Sequence[str] = ()
    floor: int = RUN_FLOOR


def judge(evidence: Evidence) -> tuple[Verdict, str]:
    """The verdict and its reason: a clause or several, without a full stop."""
    found = evidence.estimate
    if evidence.faults or found is None:
        return "not comparable", "; ".join(evidence.faults)
    warnings = [*_too_few(evidence), *evidence.warnings]
    enough = min(evidence.baseline_runs, evidence.candidate_runs) >= RUN_FLOOR
    if enough and found.low is None:
        warnings.append("all runs of a side cost the same, so nothing shows how costs vary")
    if warnings:
        return "indicative", "; ".join([*warnings, "the figures stand side by side and prove nothing"])
    assert found.low is not None and found.high is not None
    clauses = [
        f"the 95% interval of the saving is {found.low:.1%} to {found.high:.1%} ({_METHODS[found.method]}, "
        f"{evidence.baseline_runs} GPU and {evidence.candidate_runs} Trainium runs)",
        *evidence.support,
    ]
    if found.low > 0:
        return "proven", "; ".join(clauses)
    if found.high < 0:
        return "disproven", "; ".join(clauses)
    return "inconclusive", "; ".join([f"{clauses[0]}, which holds zero", *clauses[1:], *_more(found)])


def _too_few(evidence: Evidence) -> list[str]:
    if min(evidence.baseline_runs, evidence.candidate_runs) >= evidence.floor:
        return []
    planned = f"{evidence.floor} a side are " + ("needed" if evidence.floor == RUN_FLOOR else "planned")
    return [f"{_runs(evidence.baseline_runs)} on GPU and {_runs(evidence.candidate_runs)} on Trainium, where {planned}"]


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _more(found: Estimate) -> list[str]:
    baseline, candidate = found.more_runs
    if baseline is None or candidate is None or not baseline + candidate:
        return []
    return [f"about {baseline} more on GPU and {candidate} more on Trainium would make it ±5 points wide"]


def with_residual(found: Estimate, baseline_ratio: float, candidate_ratio: float) -> Estimate:
    """The estimate if what no run explains were the runs' of the side that looks cheaper; ratios to what they cost."""
    return scaled(found, 1 + candidate_ratio if found.saving > 0 else 1 / (1 + baseline_ratio))


def scaled(found: Estimate, factor: float) -> Estimate:
    """The estimate if Trainium cost `factor` times as much compared with the GPU."""

    def moved(saving: float | None) -> float | None:
        return None if saving is None else 1 - (1 - saving) * factor

    return replace(found, saving=1 - (1 - found.saving) * factor, low=moved(found.low), high=moved(found.high))


def price_change_to_flip(found: Estimate, verdict: Verdict) -> float:
    """How much GPU prices must change until the verdict no longer holds, or both sides cost the same where none does.

    A ratio, negative for a fall: GPU costs times 1 + it leave a saving of nothing (facts training-runs S8).
    """
    held = {"proven": found.low, "disproven": found.high}.get(verdict)
    return -(found.saving if held is None else held)
