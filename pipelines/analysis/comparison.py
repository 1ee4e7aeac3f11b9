"""A baseline and a candidate machine of a workload: everything a decision needs of them, by column and cost basis."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from math import fsum
from statistics import fmean
from typing import Any

from pipelines.analysis.compared_runs import Context, Taken, take
from pipelines.analysis.comparison_faults import (
    SIDE_NAMES,
    costless,
    faults_of,
    first_of,
    is_training,
    rarely_evaluated,
    shorter,
    support_of,
    warnings_of,
)
from pipelines.analysis.estimate import Estimate, estimate
from pipelines.analysis.matched import Run, Side, Sides, generations, has_result, job_units, unclear
from pipelines.analysis.registration import Quality, Registration, judge_quality
from pipelines.analysis.verdict import DECIDED, Evidence, claimed, judge, shares_of_evidence, spent
from pipelines.base.cost import BASES

SIDES = ("baseline", "candidate")
# From what part on the storage and network of one side is another amount than that of the other.
_STORAGE_SHARE = 0.1
# From what part on the cost of runs after their target is more than that of saving and leaving.
_AFTER_TARGET = 0.1


def compare(
    baseline: Sequence[Run], candidate: Sequence[Run], context: Context, registration: Registration | None
) -> list[dict[str, Any]]:
    """The rows of one pair by column, one per cost basis."""
    runs = [*baseline, *candidate]
    named: dict[str, Any] = {}
    if registration is not None:
        named = {
            "registration": registration.name,
            "registered_on": registration.registered_on,
            "registration_seal": registration.seal,
            "registered_cost_basis": registration.cost_basis,
        }
    taken = take(baseline, candidate, registration)
    left_out = [run["run_id"] for run in runs if run["run_id"] in taken.excluded]
    counted = [run for side in taken.sides for run in side.runs]
    shared = named | {
        "excluded_run_count": len(left_out),
        "price_date": runs[0]["newest_usage_date"],
        "unit_measure": "none",
        "quality_status": "not shown",
        "verdict": "not comparable",
        **shares_of_evidence(counted or runs),
    }
    if not taken.sides:
        completed = [sum(map(has_result, runs)) for runs in taken.kept]
        reason = "no unit of work is measured on every run of both sides"
        for name, kept in zip(SIDE_NAMES, taken.kept, strict=True):
            if runs[0]["target"] and all(run["target_duration_ms"] is None for run in kept):
                reason = f"no run on {name} met the target {runs[0]['target_words']}"
            if run_ids := unclear(kept):
                reason = (
                    f"{first_of(run_ids)} are one job, and whether each counts its work on from before is not clear"
                )
        if not all(completed):
            reason = "all completed runs of a side are excluded; register other runs"
        counts = dict(zip((f"{side}_run_count" for side in SIDES), completed, strict=True))
        shared |= counts | {"verdict_reason": reason}
        return [shared | {"cost_basis": basis} for basis in BASES]
    return _rows(_with_rate(taken, context), context, shared)


def _with_rate(taken: Taken, context: Context) -> Taken:
    """With the failure rate of the larger set of runs that the registration names."""
    registration = taken.registration
    if registration is None or registration.failure_rate_from is None:
        return taken
    # Its other runs of before the registration count, those that were made of the same workload too.
    jobs = {run["job_id"] for side in taken.sides for run in side.runs}
    own = frozenset(run["run_id"] for runs in taken.kept for run in runs if run["job_id"] in jobs)
    family = (side.runs[0]["accelerator_family"] for side in taken.sides)
    rates = [context.rate(name, registration.failure_rate_from, registration.registered_on, own) for name in family]
    sides = tuple(replace(side, rate=rate) for side, rate in zip(taken.sides, rates, strict=True))
    return replace(taken, sides=sides)


def _rows(taken: Taken, context: Context, shared: Mapping[str, Any]) -> list[dict[str, Any]]:
    sides, registration = taken.sides, taken.registration
    today = shared["price_date"]
    judged_on = max(run["ended_at"] for side in sides for run in side.runs).date() if registration else today
    found = {basis: _estimated(sides, basis, registration) for basis in BASES}
    at_list = {day: _estimated(_at_prices(sides, day, context), "repriced", registration) for day in {judged_on, today}}
    bare = _in_one_region(sides, judged_on, context, registration)
    quality = _quality(sides, registration, context.equal_quality)
    for words, changed in _otherwise(sides):
        listed = _estimated(_at_prices(changed, judged_on, context), "repriced", registration)
        bare |= {words: _estimated(changed, "effective", registration), f"{words}, at list prices,": listed}
    known = found["effective"] or found["list"]
    shared_evidence = Evidence(
        baseline_runs=len(sides[0].jobs),
        candidate_runs=len(sides[1].jobs),
        faults=faults_of(sides, registration, quality),
        warnings=[*warnings_of(taken, context, quality), *rarely_evaluated(sides, known), *shorter(sides, known)],
        support=[*support_of(taken, quality), *_unpaired(sides, registration)],
        is_registered=registration is not None,
        ending=" on these machines" if any(side.clusters[1] for side in sides) else "",
    )
    # AWS gives no list price of a Capacity Block; that of the day then stands alone.
    others = {other: found[other] for other in ("effective", "list") if found[other]}
    evidence = {
        basis: replace(
            shared_evidence,
            estimate=found[basis],
            others={f"at list prices of {judged_on}": at_list[judged_on]}
            | bare
            | {f"on the {other} basis": held for other, held in others.items() if other != basis},
            faults=[*shared_evidence.faults, *costless(sides, basis)],
        )
        for basis in BASES
    }
    verdicts = {basis: judge(held) for basis, held in evidence.items()}
    for basis, (verdict, reason) in verdicts.items():
        now, then = at_list[today], found[basis]
        if verdict in DECIDED and then and (now is None or now.conclusion != then.conclusion):
            words = f"{verdict} at list prices of {judged_on}, but not at those of {today}; then {reason}"
            verdicts[basis] = "indicative", words
    cost, whole = spent([run for side in sides for run in side.runs], "effective"), context.spend(sides[0].runs[0])
    rows = []
    for basis, (verdict, reason) in verdicts.items():
        unexplained = [_unexplained(side, context, basis) for side in sides]
        row = dict(shared) | {
            "cost_basis": basis,
            "unit_measure": sides[0].measure,
            "verdict": verdict,
            "verdict_reason": reason,
            "quality_status": quality.status,
            "baseline_final_quality": quality.baseline,
            "candidate_final_quality": quality.candidate,
            "worst_quality_loss": quality.worst,
            "quality_metric": quality.metric,
            "quality_margin": registration.margin.margin if registration else None,
            # The part of all accelerator spend that the compared runs are.
            "accelerator_spend_ratio": cost / whole if cost is not None and whole > 0 else None,
        }
        for name, side, residual in zip(SIDES, sides, unexplained, strict=True):
            row |= _side_columns(name, side, basis, verdict) | {f"{name}_residual_cost_usd": residual}
        if verdict != "not comparable":
            # What is not comparable claims nothing, not even a figure.
            row |= claimed(evidence[basis], verdict, sides, basis, unexplained)
            unlike = [f"{words} on the {other} basis" for other, (words, _) in verdicts.items() if words != verdict]
            row["verdict_sensitivity"] = "; ".join([*unlike, *filter(None, [row["verdict_sensitivity"]])]) or None
        rows.append(row)
    return rows


def _side_columns(name: str, side: Side, basis: str, verdict: str) -> dict[str, Any]:
    sample = side.sample(basis)
    failed = [job.cost(basis, side.measure) for job in side.failed]
    hours = [job.runs[-1]["target_duration_ms"] for job in side.succeeded]
    row: dict[str, Any] = {
        f"{name}_run_count": len(side.succeeded),
        f"{name}_failed_run_count": len(side.failed),
        f"{name}_failed_cost_usd": None if None in failed else fsum(filter(None, failed)),
        f"{name}_run_cost_usd": None if sample is None else spent(side.runs, basis),
        f"{name}_unit_cost_usd": None if sample is None or verdict == "not comparable" else float(sample.unit_cost),
        f"{name}_hours_to_target": None if None in hours else fmean(hours) / 3_600_000,
    }
    if verdict != "not comparable" and (used := side.sample("hours")) is not None:
        row[f"{name}_hours_per_unit"] = float(used.unit_cost)
    rates = [_tokens_and_seconds(job.runs) for job in side.succeeded]
    if all(seen and seconds for seen, seconds in rates):
        row[f"{name}_tokens_per_second"] = fsum(seen or 0 for seen, _ in rates) / fsum(seconds for _, seconds in rates)
    return row


def _tokens_and_seconds(runs: Sequence[Run]) -> tuple[float | None, float]:
    """The tokens of a job and the seconds it ran. What several of its runs record counts once; None if unknown."""
    lasted = [max(run["ended_at"] - run["started_at"] for run in nodes) for nodes in generations(runs)]
    seconds = fsum(time.total_seconds() for time in lasted)
    if len(runs) == 1:
        return runs[0]["million_token_count"] and runs[0]["million_token_count"] * 1e6, seconds
    millions = job_units(runs, "cost_per_million_tokens")
    return millions and millions * 1e6, seconds


def _estimated(sides: Sides, basis: str, registration: Registration | None) -> Estimate | None:
    """None where a cost is unknown or a side cost nothing."""
    samples = [side.sample(basis) for side in sides]
    if samples[0] is None or samples[1] is None or min(sample.costs.sum() for sample in samples if sample) <= 0:
        return None
    return estimate(samples[0], samples[1], _positions(sides, registration))


def _positions(sides: Sides, registration: Registration | None) -> list[tuple[int, int]]:
    """The registered pairs as positions of jobs, where they cover every job of both sides."""
    found = _paired(sides, registration)
    is_whole = all({pair[side] for pair in found} == set(range(len(sides[side].jobs))) for side in (0, 1))
    return found if is_whole and len(found) == len(sides[0].jobs) == len(sides[1].jobs) else []


def _paired(sides: Sides, registration: Registration | None) -> list[tuple[int, int]]:
    at = [{run["run_id"]: number for number, job in enumerate(side.jobs) for run in job.runs} for side in sides]
    pairs = registration.pairs if registration else ()
    return [(at[0][one], at[1][other]) for one, other in pairs if one in at[0] and other in at[1]]


def _unpaired(sides: Sides, registration: Registration | None) -> list[str]:
    """Why the interval does not use the registered pairs: all compared runs count, with a compared partner or not."""
    if registration is None or not registration.pairs or _positions(sides, registration):
        return []
    found = _paired(sides, registration)
    alone = [
        job.runs[0]["run_id"]
        for number, side in enumerate(sides)
        for position, job in enumerate(side.jobs)
        if position not in {pair[number] for pair in found}
    ]
    why = f"{first_of(alone)} {'have' if len(alone) > 1 else 'has'} no compared partner" if alone else "a run is in two"
    return [f"the interval does not use the registered pairs, for {why}"]


def _in_one_region(
    sides: Sides, day: date, context: Context, registration: Registration | None
) -> dict[str, Estimate | None]:
    """If runs were in several regions, an estimate at the list prices of each; one None if none has both machines."""
    regions = sorted({run["region_id"] for side in sides for run in side.runs} - {None})
    if len(regions) < 2:
        return {}
    found = {
        f"at list prices of {region}": _estimated(_at_prices(sides, day, context, region), "repriced", registration)
        for region in regions
    }
    known: dict[str, Estimate | None] = {name: one for name, one in found.items() if one}
    return known or {f"at list prices of one region ({' or '.join(regions)})": None}


def _at_prices(sides: Sides, day: date, context: Context, region: str | None = None) -> Sides:
    """The sides with the cost `repriced`: accelerator hours at the list price of a day, storage and network at list.

    The price is that of the run's own region, or of `region`.
    """

    def priced(run: Run) -> Run:
        usd = context.price({**run, "region_id": region} if region else run, day)
        whole, attached, compiled = (
            run["accelerator_hours"],
            run["attached_costs"]["list"],
            run["compiled_costs"]["list"],
        )
        costs: tuple[float | None, float | None] = None, None
        if usd is not None and whole and attached is not None and compiled is not None and run["accelerator_count"]:
            # What was compiled before it was needed for the target too.
            own, before = float(whole) * usd / run["accelerator_count"] + float(attached), float(compiled)
            part = run["target_accelerator_hours"]
            costs = own + before, None if part is None else own * float(part) / float(whole) + before
        return {**run, "costs": {**run["costs"], "repriced": costs}}

    return _changed(sides, priced)


def _otherwise(sides: Sides) -> Iterator[tuple[str, Sides]]:
    """The sides with other costs that the conclusion must also hold with, and with which, in words."""
    if (which := _more_storage(sides)) is not None:
        yield f"without the storage and network {which}", _without_storage(sides)
    if (borne := _bearing_all(sides)) is not None:
        yield "if these runs alone paid for the compile runs", borne
    if (whole := _to_the_end(sides)) is not None:
        yield "with what runs cost after they met their target", whole


def _to_the_end(sides: Sides) -> Sides | None:
    """The sides with the whole cost of each run, if those of the cheaper side go on after their target.

    Their final metrics, which are as good as those of the other side, are of all they cost.
    """
    samples = [side.sample("effective") for side in sides]
    if sides[0].measure != "cost_to_target" or samples[0] is None or samples[1] is None:
        return None
    cheaper = sides[int(samples[1].unit_cost < samples[0].unit_cost)]
    costs = [run["costs"]["effective"] for job in cheaper.succeeded for run in job.runs]
    if any(own is None for own, _ in costs):
        return None
    whole, used = (
        fsum(map(float, part)) for part in zip(*((own, own if to is None else to) for own, to in costs), strict=True)
    )

    def to_end(run: Run) -> Run:
        own = {basis: (cost, None if target is None else cost) for basis, (cost, target) in run["costs"].items()}
        part = None if run["target_accelerator_hours"] is None else run["accelerator_hours"]
        return {**run, "costs": own, "target_accelerator_hours": part}

    return _changed(sides, to_end) if whole > (1 + _AFTER_TARGET) * used else None


def _more_storage(sides: Sides) -> str | None:
    """The side that has much more attached storage and network on the bill than the other, in words.

    That is ten times as much a unit of work, or more by a tenth of what a unit costs on the cheaper side.
    """
    attached = [fsum(float(run["attached_costs"]["effective"] or 0) for run in side.runs) for side in sides]
    units = [fsum(job.units for job in side.jobs) for side in sides]
    per_unit = [cost / done for cost, done in zip(attached, units, strict=True)]
    less, more = sorted(per_unit)
    samples = [side.sample("effective") for side in sides]
    least = min((float(sample.unit_cost) for sample in samples if sample), default=0.0)
    if more <= 0 or (less > _STORAGE_SHARE * more and more - less <= _STORAGE_SHARE * least):
        return None
    family = SIDE_NAMES[per_unit.index(more)]
    return f"that only {family} runs record" if less == 0 else f"of which {family} runs record more"


def _without_storage(sides: Sides) -> Sides:
    """The sides without the effective and list cost of what was attached, up to a target by its part of the cost."""

    def reduced(run: Run) -> Run:
        costs = dict(run["costs"])
        for basis, attached in run["attached_costs"].items():
            whole, target = costs[basis]
            if attached is None or not whole:
                costs[basis] = None, None
            else:
                ratio = 1 - float(attached) / float(whole)
                costs[basis] = float(whole) * ratio, None if target is None else float(target) * ratio
        none = {basis: None if attached is None else 0 for basis, attached in run["attached_costs"].items()}
        return {**run, "costs": costs, "attached_costs": none}

    return _changed(sides, reduced)


def _bearing_all(sides: Sides) -> Sides | None:
    """The sides with all of what was compiled for their runs; None where no other run loads it.

    Runs of other work may be many and short, and come later: with them each of these bears less.
    """
    loading = Counter(run["compile_run_id"] for side in sides for run in side.runs)

    def more(run: Run) -> float:
        compiler = run["compile_run_id"]
        return run["loading_run_count"] / loading[compiler] - 1 if compiler else 0.0

    def whole(run: Run) -> Run:
        if not more(run):
            return run
        parts = {basis: None if part is None else float(part) for basis, part in run["compiled_costs"].items()}
        costs = {
            basis: tuple(
                None if cost is None or part is None else float(cost) + part * more(run) for cost in run["costs"][basis]
            )
            for basis, part in parts.items()
        }
        parts = {basis: None if part is None else part * (1 + more(run)) for basis, part in parts.items()}
        return {**run, "costs": {**run["costs"], **costs}, "compiled_costs": parts}

    return _changed(sides, whole) if any(more(run) for side in sides for run in side.runs) else None


def _changed(sides: Sides, change: Callable[[Run], Run]) -> Sides:
    """The sides with each ended run changed."""
    return tuple(
        replace(side, jobs=tuple(replace(job, runs=tuple(map(change, job.runs))) for job in side.jobs))
        for side in sides
    )


def _quality(sides: Sides, registration: Registration | None, tolerance: float) -> Quality:
    """Without a registration the final metrics of one split must agree, whatever target was met."""
    runs = [[job.runs[-1] for job in side.succeeded] for side in sides]
    if registration is None:
        return _agreement(runs, tolerance)
    metric, split = registration.margin.metric, _split([*runs[0], *runs[1]], registration)
    values = [{run["run_id"]: run["final"].get((metric, split)) for run in side} for side in runs]
    found, target = judge_quality(values[0], values[1], registration.margin), runs[0][0]["target"]
    if found.status == "met" and (target is None or target[0] != metric) and _is_set((metric, split), runs):
        reason = f"{metric} has one value at all steps of a run, or in all runs, so equal quality is not shown"
        return replace(found, status="not shown", reason=reason)
    return found


def _is_set(of: tuple[str, str], runs: Sequence[Sequence[Run]]) -> bool:
    """What has one value in all evaluations of a run, or in all runs, was set and not learned."""
    own = [run for side in runs for run in side if of in run["final"]]
    return any(of in run["still"] for run in own) or len({run["final"][of] for run in own}) == 1


def _agreement(runs: Sequence[Sequence[Run]], tolerance: float) -> Quality:
    """Whether every metric that both sides recorded on one split agrees, one at the least that can show quality.

    That is the target's, else one that moves.
    """
    every, target = [*runs[0], *runs[1]], runs[0][0]["target"]
    shown: list[Quality] = []
    recorded = [{of for run in side for of in run["final"] if not is_training(*of)} for side in runs]
    for of in sorted(recorded[0] & recorded[1]):
        own = [run for run in every if of in run["final"]]
        unmeasured = [run["run_id"] for run in own if run["final"][of] is None]
        if unmeasured:
            return Quality("not shown", f"the final {of[0]} of run {unmeasured[0]} is not a number", metric=of[0])
        known = [[run["final"][of] for run in side if of in run["final"]] for side in runs]
        means = fmean(known[0]), fmean(known[1])
        words = f"final {of[0]} is {means[0]:.6g} on GPU and {means[1]:.6g} on Trainium"
        if abs(means[1] - means[0]) > tolerance * abs(means[0]):
            return Quality("not shown", f"{words}, more than {100 * tolerance:g}% apart", *means, metric=of[0])
        if len(own) == len(every) and (of[0] == target[0] if target else not _is_set(of, runs)):
            shown.append(Quality("met", f"{words}, within {100 * tolerance:g}%", *means, metric=of[0]))
    reason = "no final metric is recorded on the same split of all runs, so equal quality is not shown"
    return shown[0] if shown else Quality("not shown", reason)


def _split(runs: Sequence[Run], registration: Registration) -> str:
    """The registered split, else the one that most runs record the metric on, first by name."""
    if registration.split is not None:
        return registration.split
    splits = [split for run in runs for metric, split in run["final"] if metric == registration.margin.metric]
    counts = Counter(split for split in splits if not is_training("", split))
    return min(counts, key=lambda split: (-counts[split], split), default="")


def _unexplained(side: Side, context: Context, basis: str) -> float:
    """In the months of the side's runs, each month once."""
    months = {run[f"{end}_billing_month"] for run in side.runs for end in ("first", "last")}
    return fsum(context.residual(side.runs[0], month, basis) for month in months)
