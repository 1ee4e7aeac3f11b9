"""The verdict of a comparison, one of seven: its reason in words, what it rests on, what would change it (design 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any, Literal

from pipelines.analysis.estimate import Estimate, estimate, runs_needed
from pipelines.analysis.matched import Run, Sides

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
# How a run is joined to its dollars, and of these what only estimates it.
EVIDENCE = ("imds", "api", "nodemap", "tag", "type_match")
ESTIMATED = ("tag", "type_match")


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


def shares_of_evidence(runs: Sequence[Run]) -> dict[str, Any]:
    """The runs' known effective dollars by how they were joined, and the share that is only estimated."""
    held = {name: fsum(float(run[f"{name}_cost_usd"] or 0) for run in runs) for name in EVIDENCE}
    whole = fsum(held.values())
    if whole <= 0:
        return {"estimated_cost_ratio": None, "evidence_shares": None}
    return {
        "estimated_cost_ratio": fsum(held[name] for name in ESTIMATED) / whole,
        "evidence_shares": ", ".join(f"{name} {cost / whole:.1%}" for name, cost in held.items() if cost),
    }


def spent(runs: Sequence[Run], basis: str) -> float | None:
    """All that runs cost, what was spent after a target included; None where that of one is unknown."""
    costs = [run["costs"][basis][0] for run in runs]
    return None if None in costs else fsum(map(float, costs))


def claimed(
    evidence: Evidence, verdict: Verdict, sides: Sides, basis: str, unexplained: Sequence[float]
) -> dict[str, Any]:
    """The saving by column, and what would make its verdict another; `unexplained` is spend no run explains, a side."""
    found = evidence.estimate
    samples = [side.sample(basis) for side in sides]
    assert found is not None and samples[0] is not None and samples[1] is not None
    ratios = [
        held / cost if cost and held > 0 and cost > 0 else 0.0
        for held, cost in zip(unexplained, (spent(side.runs, basis) for side in sides), strict=True)
    ]
    # What no run explains may be the runs' of the side that looks cheaper.
    worst = scaled(evidence, 1 + ratios[1] if found.saving > 0 else 1 / (1 + ratios[0]))
    flipped, _ = judge(worst)
    change = price_change_to_flip(found, verdict)
    on = sides[1 if found.saving > 0 else 0].jobs[0].runs[0]["instance_type"]
    changes = [f"{flipped} if all {on} time without a run belonged to these runs"] if flipped != verdict else []
    if any(side.failed for side in sides):
        bare = [replace(side, jobs=tuple(side.succeeded), rate=(0, 0)).sample(basis) for side in sides]
        assert bare[0] is not None and bare[1] is not None
        without, _ = judge(replace(evidence, estimate=estimate(bare[0], bare[1]), others={}))
        changes = [*([f"{without} if failed runs were left out"] if without != verdict else []), *changes]
    held = f"no longer {verdict}" if verdict in DECIDED else "both cost the same"
    if round(change, 3):
        changes.append(f"{held} if GPU prices were {abs(change):,.1%} {'lower' if change < 0 else 'higher'}")
    wanted = runs_needed(samples[0], samples[1])
    assert worst.estimate is not None
    return {
        "saving_ratio": found.saving,
        "saving_low_ratio": found.low,
        "saving_high_ratio": found.high,
        "interval_method": found.method if found.low is not None else None,
        **{
            f"more_{name}_run_count": None if wanted is None else max(0, wanted - len(side.jobs))
            for name, side in zip(("baseline", "candidate"), sides, strict=True)
        },
        "worst_case_saving_ratio": worst.estimate.saving,
        "baseline_price_change_ratio": change,
        "verdict_sensitivity": "; ".join(changes) or None,
    }
