"""One GPU side and one Trainium side of a workload on one basis: everything a decision needs of them, by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import fsum
from typing import Any

from pipelines.analysis.estimate import estimate
from pipelines.analysis.matched import Run, Side, choose
from pipelines.analysis.quality import Quality, judge_quality
from pipelines.analysis.registration import Registration
from pipelines.analysis.sensitivity import claimed, shares_of_evidence, spent
from pipelines.analysis.verdict import RUN_FLOOR, Evidence, judge

# Prices move within months: P5 fell by 44 % in June 2025 (facts training-runs 6).
STALE_AFTER = timedelta(days=183)
SIDES = ("baseline", "candidate")


@dataclass(frozen=True)
class Context:
    """What the comparison needs besides the runs: the target and the final metric of each, and spend no run explains.

    `final` gives the last value of a metric by run; `residual` the cost of an instance type in a month and currency
    on a basis that no run explains; `repriced` the first day after a side's last one, up to the last use, on which the
    reviewed list price of its machine changed.
    """

    target: Callable[[str], tuple[str, str, float] | None]
    final: Callable[[str, Sequence[str]], Mapping[str, float | None]]
    residual: Callable[[Run], float]
    repriced: Callable[[str, date, date], date | None] = lambda instance_type, last, newest: None


@dataclass(frozen=True)
class Taken:
    """Which runs of a pair count, and by which registration: `sides` is None where they share no unit of work."""

    kept: tuple[Sequence[Run], Sequence[Run]]
    excluded: Sequence[Run]
    sides: tuple[Side, Side] | None
    registration: Registration | None
    notes: Sequence[str]


def take(baseline: Sequence[Run], candidate: Sequence[Run], registration: Registration | None) -> Taken:
    """The one choice of runs that the comparison, and all that explains or rests on it, is made of."""
    notes: list[str] = []
    if registration is not None and not registration.precedes(baseline, candidate):
        notes = [
            f"registration {registration.name} of {registration.registered_on} came after runs of both sides "
            "and counts for nothing"
        ]
        registration = None
    left_out = registration.excluded if registration else {}
    kept = tuple([run for run in runs if run["run_id"] not in left_out] for runs in (baseline, candidate))
    excluded = [run for run in (*baseline, *candidate) if run["run_id"] in left_out]
    return Taken((kept[0], kept[1]), excluded, choose(*kept), registration, notes)


def compare(
    baseline: Sequence[Run], candidate: Sequence[Run], context: Context, registration: Registration | None
) -> dict[str, Any]:
    """The row of one pair on one basis, by column; `verdict_sensitivity` does not cover other bases yet."""
    runs = [*baseline, *candidate]
    registered: dict[str, Any] = {}
    if registration is not None:
        registered = {
            "registration": registration.name,
            "registered_on": registration.registered_on,
            "registration_seal": registration.seal,
            "registered_cost_basis": registration.cost_basis,
        }
    taken = take(baseline, candidate, registration)
    registration, sides = taken.registration, taken.sides
    compared = [run for runs in taken.kept for run in runs]
    row = registered | {
        "excluded_run_count": len(taken.excluded),
        "price_date": max(run["ended_at"].date() for run in compared or runs),
        **shares_of_evidence(compared),
    }
    if sides is None:
        counts = [sum(run["status"] == "completed" for run in runs) for runs in taken.kept]
        return row | {
            "baseline_run_count": counts[0],
            "candidate_run_count": counts[1],
            "unit_measure": "none",
            "quality_status": "not shown",
            "verdict": "not comparable",
            "verdict_reason": _nothing_shared(runs) if all(counts) else "all completed runs of a side are excluded",
        }
    quality = _quality(sides, context, registration)
    evidence = _weighed(sides, context, registration, quality, taken.notes, taken.excluded)
    verdict, reason = judge(evidence)
    row |= {
        "unit_measure": sides[0].measure,
        "verdict": verdict,
        "verdict_reason": reason,
        "quality_status": quality.status,
        "baseline_final_quality": quality.baseline,
        "candidate_final_quality": quality.candidate,
        "worst_quality_loss": quality.worst,
        "quality_metric": registration.margin.metric if registration else None,
        "quality_margin": registration.margin.margin if registration else None,
    }
    for name, side in zip(SIDES, sides, strict=True):
        row |= {
            f"{name}_run_count": len(side.runs),
            f"{name}_failed_run_count": len(side.failed),
            f"{name}_failed_cost_usd": side.failed_cost,
            f"{name}_run_cost_usd": spent(side),
            f"{name}_unit_cost_usd": None if evidence.estimate is None else side.mean,
        }
    unexplained = [_unexplained(side, context) for side in sides]
    for name, cost in zip(SIDES, unexplained, strict=True):
        row[f"{name}_residual_cost_usd"] = cost
    # What is not comparable claims nothing, not even a figure.
    return row if verdict == "not comparable" else row | claimed(evidence, verdict, sides, unexplained)


def _weighed(
    sides: tuple[Side, Side],
    context: Context,
    registration: Registration | None,
    quality: Quality,
    notes: Sequence[str],
    excluded: Sequence[Run],
) -> Evidence:
    baseline, candidate = sides
    ended = [run for side in sides for run in (*side.runs, *side.failed)]
    costless = [fault for side in sides for fault in side.faults]
    by_run = [dict(zip((run["run_id"] for run in side.runs), side.costs, strict=True)) for side in sides]
    pairs = registration.pairs if registration else ()
    paired = [(by_run[0][g], by_run[1][t]) for g, t in pairs if g in by_run[0] and t in by_run[1]]
    warnings = [quality.reason] if quality.status == "not shown" else []
    failed = [quality.reason] if quality.status in ("missed", "missing") else []
    return Evidence(
        baseline_runs=len(baseline.runs),
        candidate_runs=len(candidate.runs),
        estimate=None if costless else estimate(baseline.costs, candidate.costs, paired),
        faults=[*costless, *_unlike(sides, context, registration), *_impossible(sides), *failed],
        warnings=[*warnings, *_unsettled(ended), *_stale(sides, context), *notes],
        support=[*([quality.reason] if quality.status == "met" else []), *_support(sides, registration, excluded)],
        floor=max(RUN_FLOOR, registration.planned_runs) if registration else RUN_FLOOR,
    )


def _quality(sides: tuple[Side, Side], context: Context, registration: Registration | None) -> Quality:
    runs = [[run["run_id"] for run in side.runs] for side in sides]
    if registration is not None:
        final = context.final(registration.margin.metric, [*runs[0], *runs[1]])
        baseline, candidate = ({run: final.get(run) for run in side} for side in runs)
        return judge_quality(baseline, candidate, registration.margin)
    target = context.target(runs[0][0])
    if sides[0].measure == "cost_to_target" and target is not None:
        reached, failed = sum(map(len, runs)), sum(len(side.failed) for side in sides)
        others = f" and {failed} that did not count with their cost" if failed else ""
        return Quality("met", f"quality is the target, {_target_words(target)}: {reached} runs reached it{others}")
    return Quality("not shown", "no quality margin is registered and no target was reached on both sides")


def _unlike(sides: tuple[Side, Side], context: Context, registration: Registration | None) -> list[str]:
    """A declared workload_id does not make unlike targets alike."""
    declared = sorted({_target_words(context.target(run["run_id"])) for side in sides for run in side.runs})
    if len(declared) > 1:
        return [f"runs of the workload declare different targets: {' and '.join(declared)}"]
    if registration is not None and registration.target_value is not None:
        margin = registration.margin
        wanted = _target_words((margin.metric, margin.direction, registration.target_value))
        if declared != [wanted]:
            return [f"registration {registration.name} has the target {wanted} and its runs {declared[0]}"]
    return []


def _target_words(target: tuple[str, str, float] | None) -> str:
    return "no target" if target is None else f"{target[0]} {'>=' if target[1] == 'max' else '<='} {target[2]:g}"


def _impossible(sides: tuple[Side, Side]) -> list[str]:
    return [
        f"run {run['run_id']} records more tokens than the peak of its chips allows: "
        "they are counted of a core or device, or twice"
        for side in sides
        for run in side.runs
        if side.measure == "cost_per_million_tokens" and run["is_impossible"]
    ][:1]


def _unsettled(runs: Sequence[Run]) -> list[str]:
    months = sorted({run["open_billing_month"] for run in runs if run["open_billing_month"] is not None})
    if not months:
        return []
    return [f"{' and '.join(f'{month:%B %Y}' for month in months)} is not reconciled: AWS may still change its lines"]


def _stale(sides: tuple[Side, Side], context: Context) -> Iterator[str]:
    newest = sides[0].runs[0]["newest_usage_date"]
    for side in sides:
        name, last = side.runs[0]["instance_type"], _last_date(side)
        changed = context.repriced(name, last, newest)
        if changed is not None:
            yield f"the list price of {name} changed on {changed}, after its last run of {last}"
        elif newest - last > STALE_AFTER:
            yield f"the prices of {name} are of {last}, over {STALE_AFTER.days} days before the last use"


def _last_date(side: Side) -> date:
    return max(run["ended_at"].date() for run in side.runs)


def _support(sides: tuple[Side, Side], registration: Registration | None, excluded: Sequence[Run]) -> list[str]:
    support = []
    if registration is not None:
        support.append(f"registered as {registration.name} on {registration.registered_on}")
        support += [f"run {run['run_id']} is excluded: {registration.excluded[run['run_id']]}" for run in excluded]
    unended = sum(len(side.open) for side in sides)
    return support + ([f"{unended} without a recorded end left out"] if unended else [])


def _nothing_shared(runs: Sequence[Run]) -> str:
    basis = runs[0]["cost_basis"]
    unknown = [run["run_id"] for run in runs if run["whole_cost_usd"] is None]
    if unknown:
        return f"the {basis} cost of run {unknown[0]} is not known"
    return f"no unit of work is measured on every run of both sides on the {basis} basis"


def _unexplained(side: Side, context: Context) -> float:
    """In the months of the side's runs, each month once."""
    months = {run["last_billing_month"]: run for run in side.runs} | {
        run["first_billing_month"]: run for run in side.runs
    }
    return fsum(context.residual(dict(run) | {"billing_month": month}) for month, run in months.items())
