"""What a saving rests on, and how little would change its verdict: evidence, spend no run explains, prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum
from typing import Any

from pipelines.analysis.matched import Run, Side
from pipelines.analysis.verdict import Evidence, Verdict, judge, price_change_to_flip, scaled, with_residual

EVIDENCE = ("imds", "api", "nodemap", "tag", "type_match")
ESTIMATED = ("tag", "type_match")


def shares_of_evidence(runs: Sequence[Run]) -> dict[str, Any]:
    """The runs' effective dollars by how they were joined, and the share that is only estimated."""
    held = {name: fsum(float(run[f"{name}_cost_usd"]) for run in runs) for name in EVIDENCE}
    whole = fsum(held.values())
    if whole <= 0:
        return {"estimated_cost_ratio": None, "evidence_shares": None}
    return {
        "estimated_cost_ratio": fsum(held[name] for name in ESTIMATED) / whole,
        "evidence_shares": ", ".join(f"{name} {cost / whole:.1%}" for name, cost in held.items() if cost),
    }


def spent(side: Side) -> float:
    """All that the runs of a side cost, failed ones and what was spent after a target included."""
    return fsum(float(run["whole_cost_usd"]) for run in (*side.runs, *side.failed))


def claimed(
    evidence: Evidence, verdict: Verdict, sides: tuple[Side, Side], unexplained: Sequence[float]
) -> dict[str, Any]:
    """The saving by column, and what would make its verdict another; `unexplained` is spend no run explains, a side."""
    found = evidence.estimate
    assert found is not None
    costs = map(spent, sides)
    ratios = [held / cost if held > 0 and cost > 0 else 0.0 for held, cost in zip(unexplained, costs, strict=True)]
    worst = with_residual(found, *ratios)
    flipped, _ = judge(replace(evidence, estimate=worst))
    change = price_change_to_flip(found, verdict)
    on = sides[1 if found.saving > 0 else 0].runs[0]["instance_type"]
    without = [f"{bare} if failed runs' cost were left out" for bare in _without_failed(evidence, verdict, sides)]
    changes = [f"{flipped} if all {on} time that no run explains were these runs'"] if flipped != verdict else []
    changes = [*without, *changes]
    held = "both cost the same" if verdict not in ("proven", "disproven") else f"no longer {verdict}"
    if round(change, 3):
        changes.append(f"{held} if GPU prices were {abs(change):.1%} {'lower' if change < 0 else 'higher'}")
    return {
        "saving_ratio": found.saving,
        "saving_low_ratio": found.low,
        "saving_high_ratio": found.high,
        "interval_method": found.method if found.low is not None else None,
        "more_baseline_run_count": found.more_runs[0],
        "more_candidate_run_count": found.more_runs[1],
        "worst_case_saving_ratio": worst.saving,
        "baseline_price_change_ratio": change,
        "verdict_sensitivity": "; ".join(changes) or None,
    }


def _without_failed(evidence: Evidence, verdict: Verdict, sides: tuple[Side, Side]) -> list[Verdict]:
    """The verdict if failed runs had cost nothing, where it is another.

    Each run that counts bears the same share of them, so their cost moves the interval and does not widen it: how many
    fail is a chance of its own that the interval does not hold, and this is the other end of it.
    """
    found = evidence.estimate
    if found is None or not any(side.failed for side in sides):
        return []
    factor = sides[0].loading / sides[1].loading
    bare, _ = judge(replace(evidence, estimate=scaled(found, factor)))
    return [bare] if bare != verdict else []
