"""A baseline and a candidate machine of a workload: everything a decision needs of them, by column and cost basis."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from math import fsum
from statistics import fmean, median
from typing import Any

from pipelines.analysis.estimate import Estimate, estimate
from pipelines.analysis.matched import Job, Run, Side, at_once, choose
from pipelines.analysis.registration import Quality, Registration, judge_quality
from pipelines.analysis.verdict import (
    DECIDED,
    RUN_FLOOR,
    Evidence,
    claimed,
    judge,
    minus,
    shares_of_evidence,
    spent,
)
from pipelines.base.cost import BASES
from pipelines.base.dates import month_spans

SIDES = ("baseline", "candidate")
SIDE_NAMES = ("GPU", "Trainium")
# What must be equal before two runs may be compared, as people call it (design 5).
MATCHED = {
    "model": "models", "dataset": "datasets", "seq_len": "sequence lengths", "global_batch_samples": "global batches",
    "precision": "precisions", "target_words": "targets", "origin_checkpoint_id": "base checkpoints",
    "target_split": "splits of the evaluation that met the target",
}  # fmt: skip
# Those that a run records of itself, one of each.
FIELDS = {
    "model": "model", "dataset": "dataset", "seq_len": "sequence length", "global_batch_samples": "global batch",
    "precision": "precision",
}  # fmt: skip
_WORK = FIELDS | {"target": "target"}
# What no work is without; some have no sequence, and no source records every batch and precision.
_ALWAYS = ("model", "dataset")
TRAIN_SPLITS = ("train", "training")
# By what epochs are compared, the first that both sides record, and how far one may be from the dataset or another.
EPOCH_KINDS = ("tokens", "samples")
_DATASET_TOLERANCE = 0.05
# How many times as often one side may be evaluated up to its target as the other.
_EVALUATION_FACTOR = 2


@dataclass(frozen=True)
class Context:
    """What the comparison needs besides the runs.

    `residual` gives the cost of a run's instance type, month and currency on a basis that no run explains; `price` the
    on-demand list price of its machine on a day, USD an hour; `rate` the ended and the failed runs of a family between
    two days, but for some; `alike` runs that record the same work on the same machine, or part of it and nothing else,
    under another workload id; `spend` the effective cost of all accelerators in a run's currency; `left_out` recorded
    runs that a pair may not count: those that no pair counts with the reason `why`, else every run, with `is_alone`
    where none completed on its machine. `unread` are runs of which an event cannot be read, `unrated` ended runs that
    `rate` cannot count. Final metrics that differ by a ratio of `equal_quality` or less agree.
    """

    residual: Callable[[Run, date, str], float]
    price: Callable[[Run, date], float | None]
    rate: Callable[[str, date, date, frozenset[str]], tuple[int, int]]
    alike: Callable[[Run], Sequence[Run]]
    spend: Callable[[Run], float] = lambda run: 0.0
    equal_quality: float = 0.01
    left_out: Sequence[Run] = ()
    unread: Sequence[Run] = ()
    unrated: Sequence[Run] = ()


@dataclass(frozen=True)
class Taken:
    """Which runs of a pair count, and by which registration: `sides` is None where they share no unit of work.

    `later` runs came after the planned ones; `notes` keep a verdict from standing.
    """

    kept: tuple[Sequence[Run], Sequence[Run]]
    sides: tuple[Side, Side] | None
    registration: Registration | None
    excluded: Mapping[str, str]
    later: Sequence[Run]
    notes: Sequence[str]


def take(baseline: Sequence[Run], candidate: Sequence[Run], registration: Registration | None) -> Taken:
    """The one choice of runs that the comparison, and all that explains or rests on it, is made of."""
    notes: list[str] = []
    excluded: Mapping[str, str] = {}
    if registration is not None:
        excluded = registration.in_time(baseline, candidate)
        notes = list(filter(None, (registration.fault(runs, excluded) for runs in (baseline, candidate))))
        if not notes and (when := registration.came_late(baseline, candidate)):
            notes.append(
                f"registration {registration.name} of {registration.registered_on} {when}; it counts for nothing"
            )
        if notes:
            registration, excluded = None, {}
    if registration is not None:
        ids = {run["run_id"] for run in (*baseline, *candidate)}
        notes = [
            f"the exclusion of run {run_id} of {day} came after the first result of the later side, or a build first "
            "read it after results of both sides were published, and does not count"
            for run_id, (day, _) in sorted(registration.excluded.items())
            if run_id in ids and run_id not in excluded
        ]
    kept = tuple([run for run in runs if run["run_id"] not in excluded] for runs in (baseline, candidate))
    sides = choose(*(registration.planned(kept[0], kept[1]) if registration else kept))
    if sides is not None and registration is not None:
        for side in sides:
            begun, names = side.jobs[-1].runs[0]["started_at"], {job.runs[0]["job_id"] for job in side.jobs}
            notes += [
                f"planned run {run['run_id']} has not ended"
                for run in side.open
                if run["started_at"] <= begun or run["job_id"] in names
            ]
        if not all(side.succeeded for side in sides):
            sides = None
    counted = {run["run_id"] for side in sides or () for run in (*side.runs, *side.open)}
    later = [run for runs in kept for run in runs if sides and run["run_id"] not in counted]
    if sides is not None:
        notes += _missed_again(sides, later, registration)
    return Taken((kept[0], kept[1]), sides, registration, excluded, later, notes)


def _missed_again(sides: tuple[Side, Side], later: Sequence[Run], registration: Registration | None) -> Iterator[str]:
    """Runs recorded as continuing one that met its target, and that ended without it: maybe failures of their own.

    With a registration those of the time of its planned runs.
    """
    first = {job.runs[0]["job_id"]: job.runs[0]["run_id"] for side in sides for job in side.succeeded}
    newest = max(_starts(sides))
    for run in later:
        is_in_time = registration is None or run["started_at"] <= newest
        has_missed = run["status"] != "running" and run["target"] and run["target_duration_ms"] is None
        if run["job_id"] in first and is_in_time and has_missed:
            yield (
                f"run {run['run_id']} continues run {first[run['job_id']]} after its target, does not meet it and is "
                "not compared"
            )


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
    counted = [run for side in taken.sides or () for run in side.runs]
    shared = named | {
        "excluded_run_count": len(left_out),
        "price_date": runs[0]["newest_usage_date"],
        "unit_measure": "none",
        "quality_status": "not shown",
        "verdict": "not comparable",
        **shares_of_evidence(counted or runs),
    }
    if taken.sides is None:
        completed = [sum(run["status"] == "completed" for run in runs) for runs in taken.kept]
        reason = "no unit of work is measured on every run of both sides"
        for name, kept in zip(SIDE_NAMES, taken.kept, strict=True):
            if runs[0]["target"] and all(run["target_duration_ms"] is None for run in kept):
                reason = f"no run on {name} met the target {runs[0]['target_words']}"
        if not all(completed):
            reason = "all completed runs of a side are excluded; register other runs"
        counts = dict(zip((f"{side}_run_count" for side in SIDES), completed, strict=True))
        shared |= counts | {"verdict_reason": reason}
        return [shared | {"cost_basis": basis} for basis in BASES]
    return _rows(_with_rate(taken, context), context, shared)


def _with_rate(taken: Taken, context: Context) -> Taken:
    """With the failure rate of the larger set of runs that the registration names."""
    registration = taken.registration
    if registration is None or registration.failure_rate_from is None or taken.sides is None:
        return taken
    own = frozenset(run["run_id"] for runs in taken.kept for run in runs)
    family = (side.runs[0]["accelerator_family"] for side in taken.sides)
    rates = [context.rate(name, registration.failure_rate_from, registration.registered_on, own) for name in family]
    sides = tuple(replace(side, rate=rate) for side, rate in zip(taken.sides, rates, strict=True))
    return replace(taken, sides=(sides[0], sides[1]))


def _rows(taken: Taken, context: Context, shared: Mapping[str, Any]) -> list[dict[str, Any]]:
    sides, registration = taken.sides, taken.registration
    assert sides is not None
    today = shared["price_date"]
    judged_on = max(run["ended_at"] for side in sides for run in side.runs).date() if registration else today
    found = {basis: _estimated(sides, basis, registration) for basis in BASES}
    at_list = {day: _estimated(_at_prices(sides, day, context), "repriced", registration) for day in {judged_on, today}}
    bare = {}
    if (family := _alone_with_storage(sides)) is not None:
        without, words = _without_storage(sides), f"without the storage and network that only {family} runs record"
        listed = _estimated(_at_prices(without, judged_on, context), "repriced", registration)
        bare = {words: _estimated(without, "effective", registration), f"{words}, at list prices,": listed}
    quality = _quality(sides, registration, context.equal_quality)
    shared_evidence = Evidence(
        baseline_runs=len(sides[0].jobs),
        candidate_runs=len(sides[1].jobs),
        faults=_faults(sides, registration, quality),
        warnings=[*_warnings(taken, context, quality), *_rarely_evaluated(sides, found["effective"] or found["list"])],
        support=_support(taken, quality),
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
            faults=[*shared_evidence.faults, *_costless(sides, basis)],
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
    tokens = [(run["tokens_seen_count"], run["accelerator_hours"]) for job in side.succeeded for run in job.runs]
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
    if all(seen is not None for seen, _ in tokens):
        lasted = [run["ended_at"] - run["started_at"] for job in side.succeeded for run in job.runs]
        seconds = fsum(time.total_seconds() for time in lasted)
        row[f"{name}_tokens_per_second"] = fsum(float(seen) for seen, _ in tokens) / seconds if seconds else None
    return row


def _estimated(sides: tuple[Side, Side], basis: str, registration: Registration | None) -> Estimate | None:
    """None where a cost is unknown or a side cost nothing."""
    samples = [side.sample(basis) for side in sides]
    if samples[0] is None or samples[1] is None or min(sample.costs.sum() for sample in samples if sample) <= 0:
        return None
    return estimate(samples[0], samples[1], _positions(sides, registration))


def _positions(sides: tuple[Side, Side], registration: Registration | None) -> list[tuple[int, int]]:
    """The registered pairs as positions of jobs, where they cover every job of both sides."""
    at = [{run["run_id"]: number for number, job in enumerate(side.jobs) for run in job.runs} for side in sides]
    found = [
        (at[0][one], at[1][other])
        for one, other in (registration.pairs if registration else ())
        if one in at[0] and other in at[1]
    ]
    is_whole = all({pair[side] for pair in found} == set(range(len(sides[side].jobs))) for side in (0, 1))
    return found if is_whole and len(found) == len(sides[0].jobs) == len(sides[1].jobs) else []


def _at_prices(sides: tuple[Side, Side], day: date, context: Context) -> tuple[Side, Side]:
    """The sides with the cost `repriced`: accelerator hours at the list price of a day, storage and network at list."""

    def priced(run: Run) -> Run:
        usd, whole, attached = context.price(run, day), run["accelerator_hours"], run["attached_list_cost_usd"]
        costs: tuple[float | None, float | None] = None, None
        if usd is not None and whole and attached is not None and run["accelerator_count"]:
            cost = float(whole) * usd / run["accelerator_count"] + float(attached)
            part = run["target_accelerator_hours"]
            costs = cost, None if part is None else cost * float(part) / float(whole)
        return {**run, "costs": {**run["costs"], "repriced": costs}}

    one, other = (
        replace(side, jobs=tuple(replace(job, runs=tuple(map(priced, job.runs))) for job in side.jobs))
        for side in sides
    )
    return one, other


def _rarely_evaluated(sides: tuple[Side, Side], found: Estimate | None) -> Iterator[str]:
    """That the side that costs more was evaluated so rarely that it may have met its target much earlier.

    Fewer evaluations of the cheaper side only make it look more expensive than it is.
    """
    if sides[0].measure != "cost_to_target" or found is None or found.conclusion in (None, "undecided"):
        return
    counts = [median(sum(run["evaluation_count"] for run in job.runs) for job in side.succeeded) for side in sides]
    rare = 0 if found.saving > 0 else 1
    if counts[rare] and counts[1 - rare] > _EVALUATION_FACTOR * counts[rare]:
        hours = [f"{median(map(_hours_per_evaluation, side.succeeded)):,.1f}" for side in sides]
        yield (
            f"{SIDE_NAMES[rare]} runs were evaluated every {hours[rare]} hours up to the target and "
            f"{SIDE_NAMES[1 - rare]} runs every {hours[1 - rare]} hours, so the former may have met it much earlier"
        )


def _hours_per_evaluation(job: Job) -> float:
    times = [run["target_duration_ms"] for run in job.runs]
    lasted = [(run["ended_at"] - run["started_at"]).total_seconds() * 1000 for run in job.runs]
    used = fsum(whole if time is None else float(time) for time, whole in zip(times, lasted, strict=True))
    return used / 3_600_000 / max(1, sum(run["evaluation_count"] for run in job.runs))


def _alone_with_storage(sides: tuple[Side, Side]) -> str | None:
    """The side that has attached storage or network on the bill where the other has none."""
    costs = [fsum(float(run["attached_costs"]["effective"] or 0) for run in side.runs) for side in sides]
    return next((name for name, cost in zip(SIDE_NAMES, costs, strict=True) if cost and cost == sum(costs)), None)


def _without_storage(sides: tuple[Side, Side]) -> tuple[Side, Side]:
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
        attached, listed = run["attached_list_cost_usd"], run["attached_costs"]["list"]
        rest = None if attached is None or listed is None else attached - listed
        return {**run, "costs": costs, "attached_list_cost_usd": rest}

    one, other = (
        replace(side, jobs=tuple(replace(job, runs=tuple(map(reduced, job.runs))) for job in side.jobs))
        for side in sides
    )
    return one, other


def _quality(sides: tuple[Side, Side], registration: Registration | None, tolerance: float) -> Quality:
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
    recorded = [{of for run in side for of in run["final"] if of[1] not in TRAIN_SPLITS} for side in runs]
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
    counts = Counter(split for split in splits if split not in TRAIN_SPLITS)
    return min(counts, key=lambda split: (-counts[split], split), default="")


def _faults(sides: tuple[Side, Side], registration: Registration | None, quality: Quality) -> list[str]:
    """What makes the runs unlike; a declared workload id does not make them alike."""
    runs = [run for side in sides for run in side.runs]
    faults = []
    for name, words in MATCHED.items():
        values = [{run[name] for run in side.runs if name != "target_split" or run[name] is not None} for side in sides]
        # A value that only some runs record is unknown of the others, not another value; no checkpoint is a start too.
        known = set().union(*values) - ({None} if name != "origin_checkpoint_id" else set())
        if len(known) > 1:
            shown = sorted(str(value) if value not in (None, "") else "none" for value in known)
            faults.append(f"runs of the workload have different {words}: {' and '.join(shown)}")
    if sides[0].measure == "cost_to_target" and any(run["target_split"] in TRAIN_SPLITS for run in runs):
        faults.append("the target was met on the training split, which shows no quality")
    odd = [run for run in runs if run["tokens_per_dataset"] and abs(run["tokens_per_dataset"] - 1) > _DATASET_TOLERANCE]
    if odd:
        faults.append(
            f"an epoch of run {odd[0]['run_id']} has {odd[0]['tokens_per_dataset']:.1%} of the dataset's tokens: "
            "it is no pass over it"
        )
    faults += _unequal_epochs(sides)
    impossible = [run["run_id"] for run in runs if run["is_impossible"]]
    if sides[0].measure == "cost_per_million_tokens" and impossible:
        faults.append(
            f"run {impossible[0]} records more tokens than the peak of its chips allows: "
            "they are counted of a core or device, or twice"
        )
    if registration is not None:
        margin = registration.margin
        if registration.split in TRAIN_SPLITS:
            faults.append(f"registration {registration.name} is of the training split, which shows no quality")
        declared = sorted({run["target_words"] for run in runs})
        other = next((run for run in runs if run["target"] and run["target"][0] == margin.metric), None)
        if other and other["target"][1] != margin.direction:
            faults.append(
                f"registration {registration.name} has the direction {margin.direction} for {margin.metric} and its "
                f"runs {other['target'][1]}"
            )
        wanted = f"{margin.metric} {'>=' if margin.direction == 'max' else '<='} {registration.target_value or 0:g}"
        if registration.target_value is not None and declared != [wanted]:
            faults.append(f"registration {registration.name} has the target {wanted} and its runs {declared[0]}")
        faults += [quality.reason] if quality.status in ("missed", "missing") else []
    return faults


def _unequal_epochs(sides: tuple[Side, Side]) -> list[str]:
    """That an epoch of some job is no pass over what that of another is; a resumed run may count on from before."""
    for kind in EPOCH_KINDS:
        known = [
            [run for job in side.jobs for run in [run for run in job.runs if kind in run["epoch_sizes"]][:1]]
            for side in sides
        ]
        if all(known):
            ordered = sorted([*known[0], *known[1]], key=lambda run: run["epoch_sizes"][kind])
            least, most = (run["epoch_sizes"][kind] for run in (ordered[0], ordered[-1]))
            if most <= least * (1 + _DATASET_TOLERANCE):
                return []
            words = f"an epoch has {least:,.0f} {kind} in run {ordered[0]['run_id']} and {most:,.0f} in run"
            return [f"{words} {ordered[-1]['run_id']}, more than {_DATASET_TOLERANCE:.0%} apart"]
    return []


def _costless(sides: tuple[Side, Side], basis: str) -> list[str]:
    """Runs whose cost is unknown, or no cost at all."""
    jobs = [(job, job.cost(basis, side.measure)) for side in sides for job in side.jobs]
    costs = [(job.runs[0]["run_id"], cost, bool(job.units)) for job, cost in jobs]
    unknown = [f"the {basis} cost of run {run_id} is not known" for run_id, cost, _ in costs if cost is None][:1]
    return unknown or [
        f"run {run_id} has a {sides[0].measure.replace('_', ' ')} of {minus(f'{cost:.2f}')} on the {basis} basis, "
        "and only costs above zero can be compared"
        for run_id, cost, has_done in costs
        if cost is not None and (cost < 0 or (has_done and cost == 0))
    ]


def _warnings(taken: Taken, context: Context, quality: Quality) -> list[str]:
    """What leaves the comparison indicative, whatever its interval."""
    sides, registration = taken.sides, taken.registration
    assert sides is not None
    runs = [run for side in sides for run in side.runs]
    floor = max(RUN_FLOOR, registration.planned_runs) if registration else RUN_FLOOR
    counts = [len(side.jobs) for side in sides]
    warnings = []
    if min(counts) < floor:
        planned = "needed" if floor == RUN_FLOOR else "planned"
        words = [f"{count} run{'s' * (count != 1)}" for count in counts]
        warnings.append(f"{words[0]} on GPU and {words[1]} on Trainium, where {floor} a side are {planned}")
    warnings += [quality.reason] if quality.status == "not shown" else []
    warnings += [warning for run in runs for warning in run["warnings"]]
    months = {f"{run['open_billing_month']:%Y-%m}" for run in runs if run["open_billing_month"] is not None}
    if months:
        shown = month_spans(months, lambda month: f"{date.fromisoformat(f'{month}-01'):%B %Y}").replace(", ", " and ")
        warnings.append(f"{shown} is not reconciled: AWS may still change its lines")
    return [
        *warnings,
        *_hidden(taken, context),
        *_unrecorded(sides),
        *_one_job(sides),
        *_left_out(taken, context),
        *_unread(taken, context),
        *_unrated(taken, context),
        *taken.notes,
    ]


def _hidden(taken: Taken, context: Context) -> Iterator[str]:
    """Runs of other workloads that record the same work, or lack a field that would show whether they do.

    Of those that started after the last planned run, none could have been one.
    """
    assert taken.sides is not None
    newest = max(_starts(taken.sides))
    for side in taken.sides:
        run = side.succeeded[0].runs[0]
        alike = [other for other in context.alike(run) if not taken.registration or other["started_at"] <= newest]
        found = [(other, [name for name in _WORK if other[name] is None]) for other in alike]
        same = [other for other, missing in found if not missing]
        if same:
            yield (
                f"{len(same)} run{'s' * (len(same) != 1)} of the same work on {run['instance_type']} declare "
                f"the workload {same[0]['workload_id']} and are not compared"
            )
        lacking = {name for _, missing in found for name in missing}
        if lacking:
            words = " or ".join(_WORK[name] for name in _WORK if name in lacking)
            run_ids = [other["run_id"] for other, missing in found if missing]
            are = ("are", "record") if len(run_ids) > 1 else ("is", "records")
            yield (
                f"{_first_of(run_ids)} on {run['instance_type']} may be of the same work, {are[1]} no {words} and "
                f"{are[0]} not compared"
            )


def _starts(sides: tuple[Side, Side]) -> list[datetime]:
    return [job.runs[0]["started_at"] for side in sides for job in side.jobs]


def _unrecorded(sides: tuple[Side, Side]) -> Iterator[str]:
    """Runs without a model, a dataset or what another run records: unknown is not equal. To compile is no work."""
    runs = [run for side in sides for run in side.runs if run["purpose"] != "compile_only"]
    for field, words in FIELDS.items():
        lacking = [run["run_id"] for run in runs if not run[field]]
        if lacking and (field in _ALWAYS or len(lacking) < len(runs)):
            yield f"{_first_of(lacking)} record{'s' * (len(lacking) == 1)} no {words}"


def _first_of(run_ids: Sequence[str]) -> str:
    shown, more = " and ".join(run_ids[:3]), len(run_ids) - 3
    return f"runs {shown}" + (f" and {more} more" if more > 0 else "") if len(run_ids) > 1 else f"run {shown}"


def _one_job(sides: tuple[Side, Side]) -> Iterator[str]:
    """Runs that at the same time, on other machines, evaluated to nearly the same values."""
    for side in sides:
        for before, run in at_once(job.runs[0] for job in side.jobs):
            names = f"{before['run_id']} and {run['run_id']}"
            yield f"runs {names} have the same evaluations at the same time and may be one job"


def _unrated(taken: Taken, context: Context) -> Iterator[str]:
    """Runs of the larger set that the registration takes the failure rate from, but that are not on the bill."""
    registration = taken.registration
    if registration is None or registration.failure_rate_from is None:
        return
    since, until = registration.failure_rate_from, registration.registered_on
    run_ids = [
        run["run_id"]
        for run in context.unrated
        if run["started_at"].date() >= since and run["ended_at"].date() <= until
    ]
    if run_ids:
        verb, them = ("have", "them") if len(run_ids) > 1 else ("has", "it")
        yield (
            f"{_first_of(sorted(run_ids))} that ended since {since} {verb} no cost on the bill that can be compared, "
            f"and the failure rate does not count {them}"
        )


def _left_out(taken: Taken, context: Context) -> Iterator[str]:
    """Ended runs of the workload on either machine that are not compared; of a registration those it is about."""
    sides, registration = taken.sides, taken.registration
    assert sides is not None
    first, types = sides[0].runs[0], {side.runs[0]["instance_type"] for side in sides}
    counted = {run["run_id"] for runs in taken.kept for run in runs} | {*taken.excluded}
    starts = _starts(sides)
    listed = {run_id for run_ids in (registration.listed.values() if registration else ()) for run_id in run_ids}
    for run in context.left_out:
        if run["run_id"] in counted:
            continue
        is_of_workload, is_listed = run["workload_id"] == first["workload_id"], run["run_id"] in listed
        is_of_currency = run["billing_currency"] == first["billing_currency"]
        is_alone = (
            is_of_currency and run["is_alone"] and (registration is not None or run["instance_type"] == "unknown")
        )
        is_of_side = run["instance_type"] in {*types, "unknown", "mixed"} and not is_of_currency
        since = min(min(starts).date(), registration.registered_on) if registration else run["started_at"].date()
        is_in_time = since <= run["started_at"].date() and (registration is None or run["started_at"] <= max(starts))
        if is_listed and (not is_of_workload or not is_of_currency or is_alone):
            why = run.get("why") or _why_alone(run, first)
            yield f"run {run['run_id']} that the registration lists {why} and is not compared"
        elif is_of_workload and is_in_time and (is_of_side or is_alone):
            yield f"run {run['run_id']} of the workload {run.get('why') or _why_alone(run, first)} and is not compared"
    for run_id in sorted(listed - {run["run_id"] for run in context.left_out}):
        yield f"run {run_id} that the registration lists is not recorded"


def _why_alone(run: Run, first: Run) -> str:
    if run["billing_currency"] != first["billing_currency"]:
        return f"is billed in {run['billing_currency'] or 'two currencies'}"
    if run["workload_id"] != first["workload_id"]:
        return f"is of the workload {run['workload_id']}"
    return f"ran on {run['instance_type']} machines, where none completed"


def _unread(taken: Taken, context: Context) -> Iterator[str]:
    """Runs that may be of this pair, or of the set its failure rate is from, and how they ended is not certain."""
    sides, registration = taken.sides, taken.registration
    assert sides is not None
    first, types = sides[0].runs[0], {side.runs[0]["instance_type"] for side in sides}
    newest = max(_starts(sides))
    since = registration.failure_rate_from if registration else None
    for run in context.unread:
        started, ended = run["started_at"], run["last_seen_at"]
        target = run["target_metric"], run["target_direction"], run["target_value"]
        is_alike = run["declared_workload_id"] == first["workload_id"] or (
            run["declared_workload_id"] is None
            and all(run[name] in (None, first[name]) for name in FIELDS)
            and target in ((None, None, None), first["target"])
        )
        is_in_time = registration is None or started is None or started <= newest
        is_of_pair = is_alike and is_in_time and run["instance_type"] in {None, *types}
        if is_of_pair or (since and (ended is None or ended.date() >= since)):
            name = f"run {run['run_id']}" if run["run_id"] else "a run that is not known"
            yield f"an event of {name} cannot be read, so that the runs of this workload may not be all"


def _support(taken: Taken, quality: Quality) -> list[str]:
    support = [quality.reason] if quality.status == "met" else []
    if taken.registration is not None:
        support.append(f"registered as {taken.registration.name} on {taken.registration.registered_on}")
        support += [f"run {run_id} is excluded: {reason}" for run_id, reason in sorted(taken.excluded.items())]
    assert taken.sides is not None
    merged = [job for side in taken.sides for job in side.jobs if len(job.runs) > 1]
    support += [f"runs {' and '.join(run['run_id'] for run in job.runs)} are one run" for job in merged]
    unended = sum(len(side.open) for side in taken.sides)
    support += [f"{unended} without a recorded end left out"] if unended else []
    return support + ([f"later runs are not judged: {len(taken.later)}"] if taken.later else [])


def _unexplained(side: Side, context: Context, basis: str) -> float:
    """In the months of the side's runs, each month once."""
    months = {run[f"{end}_billing_month"] for run in side.runs for end in ("first", "last")}
    return fsum(context.residual(side.runs[0], month, basis) for month in months)
