"""The verdict of a comparison: one of seven, its reason in words, and what would change it (design 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pipelines.analysis.estimate import Estimate

Verdict = Literal["proven", "disproven", "supported", "contradicted", "inconclusive", "indicative", "not comparable"]
# Registered or not, and the candidate is cheaper or more expensive.
_DECIDED: dict[tuple[bool, str], Verdict] = {
    (True, "cheaper"): "proven",
    (True, "more expensive"): "disproven",
    (False, "cheaper"): "supported",
    (False, "more expensive"): "contradicted",
}
DECIDED = tuple(_DECIDED.values())
CHEAPER, MORE_EXPENSIVE = ("proven", "supported"), ("disproven", "contradicted")
# Two runs may agree by luck; below three a side nothing is proven.
RUN_FLOOR = 3


@dataclass(frozen=True)
class Evidence:
    """What one pair has for a verdict, on one basis.

    `faults` make it not comparable, `warnings` leave it indicative, `support` is added to a verdict that stands; each
    one a clause. `others` are the estimates that must conclude the same, by what they are of; None where unknown.
    """

    baseline_runs: int
    candidate_runs: int
    estimate: Estimate | None = None
    others: Mapping[str, Estimate | None] = field(default_factory=dict)
    faults: Sequence[str] = ()
    warnings: Sequence[str] = ()
    support: Sequence[str] = ()
    is_registered: bool = False
    ending: str = ""


def minus(figure: str) -> str:
    """A figure of a sentence, with a minus sign in place of its hyphen."""
    return figure.replace("-", "\u2212")


def percent(ratio: float) -> str:
    """A ratio in a sentence: a percentage with one decimal."""
    return minus(f"{ratio:,.1%}")


def judge(evidence: Evidence) -> tuple[Verdict, str]:
    """The verdict and its reason: a clause or several, without a full stop."""
    found = evidence.estimate
    if evidence.faults or found is None:
        return "not comparable", "; ".join(evidence.faults)
    warnings = [*evidence.warnings, *([found.missing] if found.missing else [])]
    if found.conclusion not in (None, "undecided"):
        for name, other in evidence.others.items():
            if other is None or other.conclusion != found.conclusion:
                warnings.append(_differs(name, other))
    if warnings:
        return "indicative", "; ".join([*dict.fromkeys(warnings), "the figures stand side by side and prove nothing"])
    assert found.low is not None and found.high is not None and found.conclusion is not None
    clauses = [
        f"the 95% interval of the saving is {percent(found.low)} to {percent(found.high)} ({found.method}, "
        f"{evidence.baseline_runs} GPU and {evidence.candidate_runs} Trainium runs){evidence.ending}",
        *evidence.support,
    ]
    if found.conclusion == "undecided":
        return "inconclusive", "; ".join([f"{clauses[0]}, which includes zero", *clauses[1:]])
    return _DECIDED[evidence.is_registered, found.conclusion], "; ".join(clauses)


def _differs(name: str, found: Estimate | None) -> str:
    if found is None:
        return f"the cost {name} of a run is not known"
    if found.low is None or found.high is None:
        return f"{name}, {found.missing}"
    is_so = {"cheaper": "Trainium is cheaper", "more expensive": "Trainium is more expensive"}
    words = is_so.get(str(found.conclusion), "neither is shown to be cheaper")
    return f"{name} {words} ({percent(found.low)} to {percent(found.high)})"


def scaled(evidence: Evidence, factor: float) -> Evidence:
    """The evidence if Trainium cost `factor` times as much compared with the GPU, at every price."""

    def moved(found: Estimate | None) -> Estimate | None:
        if found is None:
            return None
        ends = [None if end is None else 1 - (1 - end) * factor for end in (found.saving, found.low, found.high)]
        return replace(found, saving=ends[0], low=ends[1], high=ends[2])

    return replace(
        evidence,
        estimate=moved(evidence.estimate),
        others={name: moved(found) for name, found in evidence.others.items()},
    )


def price_change_to_flip(found: Estimate, verdict: Verdict) -> float:
    """How much GPU prices must change until the verdict no longer holds, or both sides cost the same where none does.

    A ratio, negative for a fall: GPU costs times 1 + it leave a saving of nothing (facts training-runs S8).
    """
    held = found.low if verdict in CHEAPER else found.high if verdict in MORE_EXPENSIVE else None
    return -(found.saving if held is None else held)
