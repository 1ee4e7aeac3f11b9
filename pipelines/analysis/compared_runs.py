"""Which runs of two machines a comparison counts, and what it knows of all others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from pipelines.analysis.matched import Run, Sides, choose, result_at
from pipelines.analysis.registration import Registration


@dataclass(frozen=True)
class Context:
    """What the comparison needs besides the runs.

    `residual` gives the cost of a run's instance type, month and currency on a basis that no run explains; `price` the
    on-demand list price of its machine on a day, USD an hour; `rate` the ended and the failed runs of a family between
    two days, but for some; `alike` runs that record the same work on the same machine, or part of it and nothing else,
    under another workload id; `spend` the effective cost of all accelerators in a run's currency; `left_out` recorded
    runs that a pair may not count: those that no pair counts with the reason `why`, else every run, with `is_alone`
    where none completed on its machine. `unread` are runs of which a record cannot be read, `unrated` ended runs that
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
    """Which runs of a pair count, and by which registration.

    `later` runs came after the planned ones or their job's success, `earlier` ones before the first planned one of
    their machine, which a registration may leave off its list; `notes` keep a verdict from standing.
    """

    kept: tuple[Sequence[Run], ...]
    sides: Sides
    registration: Registration | None
    excluded: Mapping[str, str]
    earlier: Sequence[Run]
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
    sides = choose(*(registration.planned(*kept) if registration else kept))
    if registration is not None:
        for side in sides:
            begun, names = side.jobs[-1].runs[0]["started_at"], {job.runs[0]["job_id"] for job in side.jobs}
            notes += [
                f"planned run {run['run_id']} has not ended, or not on the bill"
                for run in side.open
                if run["started_at"] <= begun or run["job_id"] in names
            ]
        if not all(side.succeeded for side in sides):
            sides = ()
    counted = {run["run_id"] for side in sides for run in (*side.runs, *side.open)}
    unjudged = [
        (run, min(job.runs[0]["started_at"] for job in side.jobs))
        for side, runs in zip(sides, kept, strict=False)
        for run in runs
        if run["run_id"] not in counted
    ]
    earlier = [run for run, first in unjudged if run["started_at"] < first]
    later = [run for run, first in unjudged if run["started_at"] >= first]
    if sides:
        left_out = [run for run in (*baseline, *candidate) if run["run_id"] in excluded]
        notes += _in_part(sides, [*left_out, *earlier, *later])
        notes += _compiled_before(earlier)
        notes += _missed_again(sides, later, registration)
    return Taken(kept, sides, registration, excluded, earlier, later, notes)


def _in_part(sides: Sides, unjudged: Sequence[Run]) -> Iterator[str]:
    """Runs of a judged job that are not judged, and began before its target or all ends: it took what they cost too."""
    end = max(run["ended_at"] for side in sides for run in side.runs)
    judged = {job.runs[0]["job_id"]: job.runs for side in sides for job in side.jobs}
    for run in unjudged:
        own = judged.get(run["job_id"], ())
        met = [result_at(part) for part in own if part["target_duration_ms"] is not None]
        if own and run["started_at"] < min(met, default=end):
            yield f"runs {run['run_id']} and {own[0]['run_id']} are one job, of which the former is not compared"


def _compiled_before(earlier: Sequence[Run]) -> Iterator[str]:
    """Runs that compiled for no billed run, so maybe for judged ones that do not record it."""
    for run in earlier:
        if run["purpose"] == "compile_only":
            yield f"run {run['run_id']} compiled before the compared runs, which may load it, and is not compared"


def _missed_again(sides: Sides, later: Sequence[Run], registration: Registration | None) -> Iterator[str]:
    """Runs recorded as continuing one that met its target, and that ended without it: maybe failures of their own.

    With a registration those of the time of its planned runs.
    """
    first = {job.runs[0]["job_id"]: job.runs[0]["run_id"] for side in sides for job in side.succeeded}
    newest = max(starts_of(sides))
    for run in later:
        is_in_time = registration is None or run["started_at"] <= newest
        has_missed = run["status"] != "running" and run["target"] and run["target_duration_ms"] is None
        if run["job_id"] in first and is_in_time and has_missed:
            yield (
                f"run {run['run_id']} continues run {first[run['job_id']]} after its target, does not meet it and is "
                "not compared"
            )


def starts_of(sides: Sides) -> list[datetime]:
    return [job.runs[0]["started_at"] for side in sides for job in side.jobs]
