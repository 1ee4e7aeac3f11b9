"""Registrations of comparisons: which runs they name, and whether they came before what they judge (design 5).

And whether the models that came out are as good as each other: without that no saving is claimed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from statistics import fmean
from typing import Any, Literal

from pipelines.analysis.estimate import not_inferior
from pipelines.analysis.matched import Run, ended_of, jobs_of, result_at
from pipelines.base.groups import grouped


@dataclass(frozen=True)
class Margin:
    """How much worse the final `metric` may be, in its own unit, as registered beforehand."""

    metric: str
    direction: Literal["min", "max"]
    margin: float


@dataclass(frozen=True)
class Quality:
    """`status` is met, missed, missing, or not shown; `reason` the clause that explains it.

    `worst` is how much worse Trainium's mean may be, the upper bound of a one-sided 95 % interval.
    """

    status: Literal["met", "missed", "missing", "not shown"]
    reason: str
    baseline: float | None = None
    candidate: float | None = None
    worst: float | None = None
    metric: str | None = None


def judge_quality(
    baseline: Mapping[str, float | None], candidate: Mapping[str, float | None], margin: Margin
) -> Quality:
    """The final metric of each run by its id, held against the margin; a run without one leaves it missing."""
    missing = sorted(run for side in (baseline, candidate) for run, value in side.items() if value is None)
    if missing:
        more = f" and {len(missing) - 1} more run{'s' * (len(missing) > 2)}" if len(missing) > 1 else ""
        reason = f"the final {margin.metric} of run {missing[0]}{more} is not recorded"
        return Quality("missing", reason, metric=margin.metric)
    x, y = ([value for value in side.values() if value is not None] for side in (baseline, candidate))
    means = fmean(x), fmean(y)
    found = not_inferior(x, y, margin.margin, margin.direction)
    if found is None:
        reason = f"one run a side does not show that {margin.metric} is equally good"
        return Quality("not shown", reason, *means, metric=margin.metric)
    worst, is_within = found
    words = (
        f"final {margin.metric} is {means[0]:.6g} on GPU and {means[1]:.6g} on Trainium, at worst {worst:.3g} worse, "
        f"{'within' if is_within else 'more than'} the registered margin of {margin.margin:g}"
    )
    return Quality("met" if is_within else "missed", words, *means, worst, margin.metric)


def first_result(baseline: Sequence[Run], candidate: Sequence[Run]) -> date:
    """The day of the later side's first result: a run met its target, or ended."""
    return max(min(map(result_at, side)) for side in (baseline, candidate)).date()


@dataclass(frozen=True)
class Registration:
    """The registration in force of a workload: `excluded` runs with day and reason, `pairs` (baseline, candidate).

    `listed` has the closed list of runs of a family; a family without one is its runs that start after the
    registration. `published` has the newest start of runs with published results, by instance type, when a build first
    read the registration, `late` those of when it first read an exclusion. From `failure_rate_from` on, all ended runs
    of a family before the registration show its failure rate.
    """

    name: str
    registered_on: date
    seal: str
    target_value: float | None
    planned_runs: int
    cost_basis: str
    margin: Margin
    split: str | None = None
    failure_rate_from: date | None = None
    excluded: Mapping[str, tuple[date, str]] = field(default_factory=dict)
    pairs: Sequence[tuple[str, str]] = ()
    listed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    published: Mapping[str, date] = field(default_factory=dict)
    late: Mapping[str, Mapping[str, date]] = field(default_factory=dict)

    def judged(self, runs: Sequence[Run]) -> list[Run]:
        """The runs of a side that it is about; what ran before it is not, whether it was seen or not."""
        listed = self.listed.get(runs[0]["accelerator_family"]) if runs else None
        if listed is None:
            return [run for run in runs if run["started_at"].date() > self.registered_on]
        return [run for run in runs if run["run_id"] in listed]

    def in_time(self, baseline: Sequence[Run], candidate: Sequence[Run]) -> Mapping[str, str]:
        """The exclusions, with their reasons, of before the later side's first result and before it was published."""
        sides = self.judged(baseline), self.judged(candidate)
        if not all(sides):
            return {}
        first = first_result(*sides)
        return {
            run_id: reason
            for run_id, (day, reason) in self.excluded.items()
            if day < first and not _are_published(sides, self.late.get(run_id, {}))
        }

    def came_late(self, baseline: Sequence[Run], candidate: Sequence[Run]) -> str | None:
        """When it came, where that was after both sides had results; no side is without a run that it is about."""
        sides = self.judged(baseline), self.judged(candidate)
        if self.registered_on >= first_result(*sides):
            return "came after the first results of both sides"
        if _are_published(sides, self.published):
            return "was registered after its results were published: no build had read it before"
        return None

    def fault(self, runs: Sequence[Run], excluded: Mapping[str, str]) -> str | None:
        """Why it does not cover this side: it lists no closed range of runs, or came after they began."""
        listed = self.listed.get(runs[0]["accelerator_family"])
        side = runs[0]["instance_type"]
        about = self.judged(runs)
        if listed is None:
            if not about:
                return (
                    f"registration {self.name} of {self.registered_on} does not list the runs of that side, and none "
                    f"on {side} started after it"
                )
            if _are_published([about], self.published):
                return (
                    f"registration {self.name} of {self.registered_on} was registered after results on {side} were "
                    "published, does not list the runs of that side, and counts for nothing"
                )
            return None
        starts = [run["started_at"] for run in about]
        if not starts:
            return f"registration {self.name} lists no run on {side} and counts for nothing"
        for run in runs:
            is_left_out = run["run_id"] not in listed and run["run_id"] not in excluded
            is_since = min(starts) <= run["started_at"] or run["started_at"].date() > self.registered_on
            if is_left_out and is_since and run["started_at"] <= max(starts):
                return (
                    f"registration {self.name} of {self.registered_on} lists runs of {min(starts):%Y-%m-%d} to "
                    f"{max(starts):%Y-%m-%d} without run {run['run_id']}, which started before the last and after the "
                    "first or the registration, and counts for nothing"
                )
        return None

    def planned(self, baseline: Sequence[Run], candidate: Sequence[Run]) -> tuple[list[Run], ...]:
        """The runs of each side that are judged: of the first planned jobs, and none after all of those had ended.

        One that has not ended is among them if it started before the last of those did.
        """
        sides = self.judged(baseline), self.judged(candidate)
        first = [
            sorted(filter(None, map(ended_of, jobs_of(runs))), key=lambda own: own[0]["started_at"])[
                : self.planned_runs
            ]
            for runs in sides
        ]
        is_whole = all(len(jobs) == self.planned_runs for jobs in first)
        end = max(job[0]["ended_at"] for jobs in first for job in jobs) if is_whole else datetime.max
        # A run that resumes a planned one before then is to end too.
        for run in sorted((run for jobs in first for job in jobs for run in job), key=lambda run: run["started_at"]):
            end = max(end, run["ended_at"]) if run["started_at"] <= end else end
        return tuple(
            _until(runs, jobs, end) if len(jobs) == self.planned_runs else runs
            for runs, jobs in zip(sides, first, strict=True)
        )


def _until(runs: Sequence[Run], jobs: Sequence[Sequence[Run]], end: datetime) -> list[Run]:
    names, begun = {job[0]["job_id"] for job in jobs}, jobs[-1][0]["started_at"]
    return [
        run
        for run in runs
        if (run["job_id"] in names and run["started_at"] <= end)
        or (run["status"] == "running" and run["started_at"] <= begun)
    ]


def _are_published(sides: Sequence[Sequence[Run]], published: Mapping[str, date]) -> bool:
    """Whether each side has a run that started no later than those with published results; `*` are of any type."""
    lost = published.get("*", date.min)
    return all(
        any(run["started_at"].date() <= max(lost, published.get(run["instance_type"], lost)) for run in side)
        for side in sides
    )


def _named(types: str | None) -> Mapping[str, date]:
    """The newest start by type; records of earlier versions have none: any day."""
    parts = (each.partition("@") for each in (types or "").split())
    return {name: date.fromisoformat(day) if day else date.max for name, _, day in parts}


def registrations_by_workload(rows: Sequence[Mapping[str, Any]]) -> dict[str, Registration]:
    """The Registration in force of each workload, from the rows of stg_proof__registration."""
    found = {}
    for own in grouped((row for row in rows if row["is_in_force"]), lambda row: row["registration"]).values():
        row, named = own[0], [run for run in own if run["run_id"] is not None]
        excluded = [run for run in named if run["excluded_on"]]
        listed: dict[str, set[str]] = {}
        pairs: dict[int, dict[str, str]] = {}
        for run in named:
            if run["is_listed"]:
                listed.setdefault(run["accelerator_family"], set()).add(run["run_id"])
            if run["pair_no"] is not None:
                pairs.setdefault(run["pair_no"], {})[run["accelerator_family"]] = run["run_id"]
        found[row["workload_id"]] = Registration(
            name=row["registration"],
            registered_on=row["registered_on"],
            seal=row["registration_seal"],
            target_value=row["target_value"],
            planned_runs=row["planned_run_count"],
            cost_basis=row["cost_basis"],
            margin=Margin(row["target_metric"], row["target_direction"], row["quality_margin"]),
            split=row["evaluation_split"],
            failure_rate_from=row["failure_rate_from_date"],
            excluded={run["run_id"]: (run["excluded_on"], run["exclusion_reason"]) for run in excluded},
            pairs=[(pair["gpu"], pair["trainium"]) for _, pair in sorted(pairs.items())],
            published=_named(row["published_types"]),
            late={run["run_id"]: _named(run["exclusion_published_types"]) for run in excluded},
            listed={family: frozenset(run_ids) for family, run_ids in listed.items()},
        )
    return found
