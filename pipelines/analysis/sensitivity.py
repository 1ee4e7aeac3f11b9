"""What a saving rests on, and how little would change its verdict: evidence, spend no run explains, prices."""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum
from typing import Any

from pipelines.analysis.estimate import estimate, runs_needed
from pipelines.analysis.matched import Run, Side
from pipelines.analysis.verdict import DECIDED, Evidence, Verdict, judge, price_change_to_flip, scaled

EVIDENCE = ("imds", "api", "nodemap", "tag", "type_match")
ESTIMATED = ("tag", "type_match")


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
    evidence: Evidence, verdict: Verdict, sides: tuple[Side, Side], basis: str, unexplained: Sequence[float]
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
