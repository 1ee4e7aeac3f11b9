"""What a comparison says: one of five verdicts, its reason in words, and what would make it another (design 5)."""

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

    `faults` make it not comparable, `doubts` leave it indicative, `support` is said beside a verdict that stands; each
    one a clause. `floor` is how many runs a side were planned, or the least that can prove anything.
    """

    gpu_runs: int
    trainium_runs: int
    estimate: Estimate | None = None
    faults: Sequence[str] = ()
    doubts: Sequence[str] = ()
    support: Sequence[str] = ()
    floor: int = RUN_FLOOR


def judge(evidence: Evidence) -> tuple[Verdict, str]:
    """The verdict and its reason: a clause or several, without a full stop."""
    found = evidence.estimate
    if evidence.faults or found is None:
        return "not comparable", "; ".join(evidence.faults)
    doubts = [*_too_few(evidence), *evidence.doubts]
    enough = min(evidence.gpu_runs, evidence.trainium_runs) >= RUN_FLOOR
    if enough and found.low is None:
        doubts.append("all runs of a side cost the same, so nothing tells how costs vary")
    if doubts:
        return "indicative", "; ".join([*doubts, "the figures stand side by side and prove nothing"])
    assert found.low is not None and found.high is not None
    said = [
        f"the 95% interval of the saving is {found.low:.1%} to {found.high:.1%} ({_METHODS[found.method]}, "
        f"{evidence.gpu_runs} GPU and {evidence.trainium_runs} Trainium runs)",
        *evidence.support,
    ]
    if found.low > 0:
        return "proven", "; ".join(said)
    if found.high < 0:
        return "disproven", "; ".join(said)
    return "inconclusive", "; ".join([f"{said[0]}, which holds zero", *said[1:], *_more(found)])


def _too_few(evidence: Evidence) -> list[str]:
    if min(evidence.gpu_runs, evidence.trainium_runs) >= evidence.floor:
        return []
    planned = f"{evidence.floor} a side are " + ("needed" if evidence.floor == RUN_FLOOR else "planned")
    return [f"{_runs(evidence.gpu_runs)} on GPU and {_runs(evidence.trainium_runs)} on Trainium, where {planned}"]


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _more(found: Estimate) -> list[str]:
    gpu, trainium = found.more_runs
    if gpu is None or trainium is None or not gpu + trainium:
        return []
    return [f"about {gpu} more on GPU and {trainium} more on Trainium would make it ±5 points wide"]


def with_residual(found: Estimate, gpu_ratio: float, trainium_ratio: float) -> Estimate:
    """The estimate if what no run explains were the runs' of the side that looks cheaper; ratios to what they cost."""
    return scaled(found, 1 + trainium_ratio if found.saving > 0 else 1 / (1 + gpu_ratio))


def scaled(found: Estimate, factor: float) -> Estimate:
    """The estimate if Trainium cost `factor` times as much beside the GPU."""

    def moved(saving: float | None) -> float | None:
        return None if saving is None else 1 - (1 - saving) * factor

    return replace(found, saving=1 - (1 - found.saving) * factor, low=moved(found.low), high=moved(found.high))


def price_change_to_flip(found: Estimate, verdict: Verdict) -> float:
    """How much GPU prices must change until the verdict no longer holds, or both sides cost the same where none does.

    A ratio, negative for a fall: GPU costs times 1 + it leave a saving of nothing (facts training-runs S8).
    """
    held = {"proven": found.low, "disproven": found.high}.get(verdict)
    return -(found.saving if held is None else held)
