"""What makes the runs of two machines unlike, and what leaves their comparison open to objections."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from math import fsum
from statistics import median
from typing import Any

from pipelines.analysis.compared_runs import Context, Taken, starts_of
from pipelines.analysis.estimate import Estimate
from pipelines.analysis.matched import Job, Run, Sides, at_once, generations, has_failed
from pipelines.analysis.registration import Quality, Registration
from pipelines.analysis.verdict import RUN_FLOOR, minus
from pipelines.base.dates import month_spans

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
# By what epochs are compared, the first that both sides record, and how far one may be from the dataset or another, and
# a model from another.
EPOCH_KINDS = ("tokens", "samples")
_SIZE_TOLERANCE = 0.05
# How many times as often one side may be evaluated up to its target as the other, in all and by the hour.
_EVALUATION_FACTOR = 2
# How many times as much work a run of one side may do as one of the other.
_LENGTH_FACTOR = 2


def is_training(metric: str, split: str) -> bool:
    """Whether an evaluation is of the data that was trained on, by its split or the name of its metric."""
    return any(name.strip().casefold().startswith("train") for name in (metric, split))


def faults_of(sides: Sides, registration: Registration | None, quality: Quality) -> list[str]:
    """What makes the runs unlike; a declared workload id does not make them alike."""
    runs = [run for side in sides for run in side.runs]
    faults = work_faults([side.runs for side in sides])
    if sides[0].measure == "cost_to_target" and any(
        run["target"] and run["target_split"] is not None and is_training(run["target"][0], run["target_split"])
        for run in runs
    ):
        faults.append("the target was met on the training split, which shows no quality")
    impossible = [run["run_id"] for run in runs if run["is_impossible"]]
    if sides[0].measure == "cost_per_million_tokens" and impossible:
        faults.append(
            f"run {impossible[0]} records more tokens than the peak of its chips allows: "
            "they are counted of a core or device, or twice"
        )
    if registration is not None:
        margin = registration.margin
        if is_training(margin.metric, registration.split or ""):
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


def work_faults(sides: Sequence[Sequence[Run]]) -> list[str]:
    """What shows that runs did different work, or that an epoch is not one pass over the same dataset."""
    faults, runs = [], [run for side in sides for run in side]
    for name, words in MATCHED.items():
        # A value that only some runs record is unknown of the others, not another value; no checkpoint is a start too.
        known = {run[name] for run in runs if run[name] is not None or name == "origin_checkpoint_id"}
        if len(known) > 1:
            shown = sorted(str(value) if value not in (None, "") else "none" for value in known)
            faults.append(f"runs of the workload have different {words}: {' and '.join(shown)}")
    sized = sorted((run for run in runs if run["params_active"]), key=lambda run: run["params_active"])
    if sized and sized[-1]["params_active"] > sized[0]["params_active"] * (1 + _SIZE_TOLERANCE):
        words = [
            f"{run['params_active']:,.0f} active parameters in run {run['run_id']}" for run in (sized[0], sized[-1])
        ]
        faults.append(f"the model has {words[0]} and {words[1]}")
    odd = [run for run in runs if run["tokens_per_dataset"] and abs(run["tokens_per_dataset"] - 1) > _SIZE_TOLERANCE]
    if odd:
        faults.append(
            f"an epoch of run {odd[0]['run_id']} has {odd[0]['tokens_per_dataset']:.1%} of the dataset's tokens: "
            "it is no pass over it"
        )
    for kind in EPOCH_KINDS:
        known = [[run for run in side if kind in run["epoch_sizes"]] for side in sides]
        if all(known):
            ordered = sorted((run for side in known for run in side), key=lambda run: run["epoch_sizes"][kind])
            least, most = (run["epoch_sizes"][kind] for run in (ordered[0], ordered[-1]))
            if most > least * (1 + _SIZE_TOLERANCE):
                words = f"an epoch has {least:,.0f} {kind} in run {ordered[0]['run_id']} and {most:,.0f} in run"
                faults.append(f"{words} {ordered[-1]['run_id']}, more than {_SIZE_TOLERANCE:.0%} apart")
            break
    return faults


def epoch_sizes(about: Mapping[str, Any], epochs: Sequence[Sequence[Any]], is_resumed: bool) -> dict[str, float]:
    """Tokens and samples of an epoch that is a pass over the dataset, as far as recorded of the whole job.

    `epochs` has their numbers, their fractions and the tokens seen at each; it is empty where there are none.

    Where a run records no epoch, its tokens are counted in datasets. A run that is resumed may count on from before:
    the tokens between its epochs show their size.
    """
    count = about["epoch_completed_count"]
    if about["epoch_unit"] != "dataset_pass" or about["tokens_unit"] != "job" or not count:
        return {}
    if not epochs:
        return {"tokens": float(about["dataset_tokens"])} if about["dataset_tokens"] else {}
    if is_resumed:
        seen_at = sorted((index, fraction, tokens) for index, fraction, tokens in zip(*epochs, strict=True) if tokens)
        done = fsum(float(fraction) for _, fraction, _ in seen_at[1:])
        return {"tokens": float(seen_at[-1][2] - seen_at[0][2]) / done} if done else {}
    seen = {kind: about[f"epoch_{kind}_seen_count"] for kind in EPOCH_KINDS}
    return {kind: float(total) / float(count) for kind, total in seen.items() if total}


def target_words(target: tuple[str, str, float] | None) -> str:
    return "no target" if target is None else f"{target[0]} {'>=' if target[1] == 'max' else '<='} {target[2]:g}"


def costless(sides: Sides, basis: str) -> list[str]:
    """Runs whose cost is unknown, in whole or in part, or not above zero."""
    jobs = [(job, job.cost(basis, side.measure)) for side in sides for job in side.jobs]
    costs = [(job.runs[0]["run_id"], cost, bool(job.units)) for job, cost in jobs]
    partial = [why for job, cost in jobs if cost is None for run in job.runs for why in run["partial"]]
    unknown = [f"the {basis} cost of run {run_id} is not known" for run_id, cost, _ in costs if cost is None][:1]
    return (partial or unknown) or [
        f"run {run_id} has a {sides[0].measure.replace('_', ' ')} of {minus(f'{cost:.2f}')} on the {basis} basis, "
        "and only costs above zero can be compared"
        for run_id, cost, has_done in costs
        if cost is not None and (cost < 0 or (has_done and cost == 0))
    ]


def warnings_of(taken: Taken, context: Context, quality: Quality) -> list[str]:
    """What leaves the comparison indicative, whatever its interval."""
    sides, registration = taken.sides, taken.registration
    runs = [run for side in sides for run in side.runs]
    floor = max(RUN_FLOOR, registration.planned_runs) if registration else RUN_FLOOR
    counts = [len(side.jobs) for side in sides]
    warnings = []
    if min(counts) < floor:
        planned = "needed" if floor == RUN_FLOOR else "planned"
        words = [f"{count} run{'s' * (count != 1)}" for count in counts]
        warnings.append(f"{words[0]} on GPU and {words[1]} on Trainium, where {floor} a side are {planned}")
    warnings += [quality.reason] if quality.status == "not shown" else []
    warnings += dict.fromkeys(warning for run in runs for warning in run["warnings"])
    months = {f"{run['open_billing_month']:%Y-%m}" for run in runs if run["open_billing_month"] is not None}
    if months:
        shown = month_spans(months, lambda month: f"{date.fromisoformat(f'{month}-01'):%B %Y}").replace(", ", " and ")
        warnings.append(f"{shown} is not reconciled: AWS may still change its lines")
    return [
        *warnings,
        *_hidden(taken, context),
        *_unrecorded(sides),
        *_unsized(sides),
        *_begun(sides),
        *_one_job(sides),
        *_left_out(taken, context),
        *_unread(taken, context),
        *_unrated(taken, context),
        *taken.notes,
    ]


def rarely_evaluated(sides: Sides, found: Estimate | None) -> Iterator[str]:
    """That the side that costs more was evaluated so rarely that it may have met its target much earlier.

    Fewer evaluations of the cheaper side only make it look more expensive than it is.
    """
    if sides[0].measure != "cost_to_target" or found is None or found.conclusion in (None, "undecided"):
        return
    evaluated = [[_evaluated(job) for job in side.succeeded] for side in sides]
    counts = [median(count for count, _ in jobs) for jobs in evaluated]
    hours = [median(whole / max(1, count) for count, whole in jobs) for jobs in evaluated]
    rare = 0 if found.saving > 0 else 1
    # A slower machine takes longer from step to step, and a longer run has more hours to be evaluated in.
    is_rare = counts[rare] and counts[1 - rare] > _EVALUATION_FACTOR * counts[rare]
    gaps = [
        [job.runs[-1]["evaluation_gap"] for job in side.succeeded if job.runs[-1].get("evaluation_gap")]
        for side in sides
    ]
    if is_rare and hours[rare] > _EVALUATION_FACTOR * hours[1 - rare]:
        every = [f"every {between:,.1f} hours" for between in hours]
        yield (
            f"{SIDE_NAMES[rare]} runs were evaluated {every[rare]} up to the target and {SIDE_NAMES[1 - rare]} runs "
            f"{every[1 - rare]}, so the former may have met it much earlier"
        )
    elif all(gaps) and median(gaps[rare]) > _EVALUATION_FACTOR * median(gaps[1 - rare]) > 0:
        after = [f"{median(steps):,.0f} steps" for steps in gaps]
        yield (
            f"{SIDE_NAMES[rare]} runs met the target {after[rare]} after the evaluation before or the start, and "
            f"{SIDE_NAMES[1 - rare]} runs {after[1 - rare]}, so the former may have met it much earlier"
        )


def shorter(sides: Sides, found: Estimate | None) -> Iterator[str]:
    """That the side that costs more did much less in each run: what a run costs to start is a larger part of it."""
    if sides[0].measure == "cost_to_target" or found is None or found.conclusion in (None, "undecided"):
        return
    done = [median(job.units for job in side.succeeded) for side in sides]
    less = 0 if found.saving > 0 else 1
    if done[1 - less] > _LENGTH_FACTOR * done[less]:
        unit = "epoch" if sides[0].measure == "cost_per_epoch" else "million token"
        yield (
            f"a run has {done[0]:,.6g} {unit}{'s' * (done[0] != 1)} on GPU and {done[1]:,.6g} on Trainium, so what it "
            f"costs to start is a larger part on {SIDE_NAMES[less]}"
        )


def _evaluated(job: Job) -> tuple[int, float]:
    """How often a job was evaluated up to its target, in how many hours; its nodes recorded the same evaluations."""
    runs = [max(nodes, key=lambda run: run["evaluation_count"]) for nodes in generations(job.runs)]
    times = [run["target_duration_ms"] for run in runs]
    lasted = [(run["ended_at"] - run["started_at"]).total_seconds() * 1000 for run in runs]
    used = fsum(whole if time is None else float(time) for time, whole in zip(times, lasted, strict=True))
    return sum(run["evaluation_count"] for run in runs), used / 3_600_000


def _hidden(taken: Taken, context: Context) -> Iterator[str]:
    """Runs of other workloads that record the same work, or lack a field that would show whether they do.

    Of those that started after the last planned run, or before the registration and the side, none could have been one;
    what they compiled may be loaded.
    """
    newest, registration = max(starts_of(taken.sides)), taken.registration
    for side in taken.sides:
        run = side.succeeded[0].runs[0]
        alike = context.alike(run)
        if registration:
            since = min(side.jobs[0].runs[0]["started_at"].date(), registration.registered_on)
            alike = [one for one in alike if one["started_at"] <= newest]
            alike = [one for one in alike if one["purpose"] == "compile_only" or one["started_at"].date() >= since]
        found = [(other, [name for name in _WORK if other[name] is None]) for other in alike]
        same = [other for other, missing in found if not missing]
        if same:
            has, are = ("have", "are") if len(same) > 1 else ("has", "is")
            yield (
                f"{first_of([other['run_id'] for other in same])} of the same work on {run['instance_type']} {has} the "
                f"workload id {same[0]['workload_id']} and {are} not compared"
            )
        lacking = {name for _, missing in found for name in missing}
        if lacking:
            words = " or ".join(_WORK[name] for name in _WORK if name in lacking)
            run_ids = [other["run_id"] for other, missing in found if missing]
            are = ("are", "record") if len(run_ids) > 1 else ("is", "records")
            yield (
                f"{first_of(run_ids)} on {run['instance_type']} may be of the same work, {are[1]} no {words} and "
                f"{are[0]} not compared"
            )


def _unrecorded(sides: Sides) -> Iterator[str]:
    """Runs without a model, a dataset or what another run records: unknown is not equal. To compile is no work."""
    runs = [run for side in sides for run in side.runs if run["purpose"] != "compile_only"]
    for field, words in FIELDS.items():
        lacking = [run["run_id"] for run in runs if not run[field]]
        if lacking and (field in _ALWAYS or len(lacking) < len(runs)):
            yield f"{first_of(lacking)} record{'s' * (len(lacking) == 1)} no {words}"


def _begun(sides: Sides) -> Iterator[str]:
    """Runs that continue one of their model and dataset that is no part of their job; what all continue is shared."""
    runs = [run for side in sides for run in side.runs]
    begun = {run["run_id"]: run["begun_run_id"] for run in runs if run.get("begun_run_id")}
    if len(begun) < len(runs) or len({*begun.values()}) > 1:
        for run_id, before in begun.items():
            yield f"run {run_id} continues run {before} of another workload or machine, which is not compared"


def _unsized(sides: Sides) -> Iterator[str]:
    """That the sides record the size of their epochs, but not in one unit: unknown is not equal."""
    sizes = [{kind for run in side.runs for kind in run["epoch_sizes"]} for side in sides]
    if sides[0].measure == "cost_per_epoch" and any(sizes) and not sizes[0] & sizes[1]:
        words = [" and ".join(sorted(kinds)) or "neither tokens nor samples" for kinds in sizes]
        yield f"epochs are recorded in {words[0]} on GPU and in {words[1]} on Trainium, so equal epochs are not shown"


def first_of(run_ids: Sequence[str]) -> str:
    shown, more = " and ".join(run_ids[:3]), len(run_ids) - 3
    return f"runs {shown}" + (f" and {more} more" if more > 0 else "") if len(run_ids) > 1 else f"run {shown}"


def _one_job(sides: Sides) -> Iterator[str]:
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
            f"{first_of(sorted(run_ids))} that ended since {since} {verb} no cost on the bill that can be compared, "
            f"and the failure rate does not count {them}"
        )


def _left_out(taken: Taken, context: Context) -> Iterator[str]:
    """Ended runs of the workload on either machine that are not compared; of a registration those it is about."""
    sides, registration = taken.sides, taken.registration
    first, types = sides[0].runs[0], {side.runs[0]["instance_type"] for side in sides}
    counted = {run["run_id"] for runs in taken.kept for run in runs} | {*taken.excluded}
    starts = starts_of(sides)
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
    first, types = sides[0].runs[0], {side.runs[0]["instance_type"] for side in sides}
    starts = starts_of(sides)
    since = registration.failure_rate_from if registration else None
    found: set[str | None] = set()
    for run in context.unread:
        started, ended = run["started_at"], run["last_seen_at"]
        target = run["target_metric"], run["target_direction"], run["target_value"]
        is_alike = run["declared_workload_id"] == first["workload_id"] or (
            run["declared_workload_id"] is None
            and all(run[name] in (None, first[name]) for name in FIELDS)
            and target in ((None, None, None), first["target"])
        )
        is_in_time = registration is None or (
            (started is None or started <= max(starts))
            and (ended is None or ended.date() >= min(min(starts).date(), registration.registered_on))
        )
        is_of_pair = is_alike and is_in_time and run["instance_type"] in {None, *types}
        if is_of_pair or (since and (ended is None or ended.date() >= since)):
            found.add(run["run_id"])
    names = [first_of(sorted(filter(None, found)))] if found - {None} else []
    for name in [*names, *(["an unknown run"] if None in found else [])]:
        yield (
            f"a record of {name} cannot be read or is gone, so runs of this workload may be missing; correct it, or "
            "put it back under its id"
        )


def support_of(taken: Taken, quality: Quality) -> list[str]:
    support = [quality.reason] if quality.status == "met" else []
    if taken.registration is not None:
        support.append(f"registered as {taken.registration.name} on {taken.registration.registered_on}")
        support += [f"run {run_id} is excluded: {reason}" for run_id, reason in sorted(taken.excluded.items())]
    merged = [job for side in taken.sides for job in side.jobs if len(job.runs) > 1]
    support += [f"runs {' and '.join(run['run_id'] for run in job.runs)} are one run" for job in merged]
    unended = sum(len(side.open) for side in taken.sides)
    support += [f"{unended} that have not ended, or not on the bill, are left out"] if unended else []
    for words, runs in (("earlier", taken.earlier), ("later", taken.later)):
        failed = sum(map(has_failed, runs))
        more = f", {failed} of them failed" if failed else ""
        support += [f"{words} runs are not judged: {len(runs)}{more}"] if runs else []
    return support
