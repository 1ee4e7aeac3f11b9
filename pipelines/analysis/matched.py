"""The runs of one side of a comparison, and the unit of work both sides are compared by (facts training-runs 4).

A run is what transforms/run_pair.py returns, `costs` as (whole, to target) USD or None by basis.
Several run ids of one job are one replicate: their costs add, its success counts once. What is run after that success
is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain, pairwise
from math import fsum
from statistics import median
from typing import Any

from pipelines.analysis.estimate import Sample, joined, sample

Run = Mapping[str, Any]

# From the strongest to the weakest; with the column of the work a run did, but for the target.
MEASURES = {
    "cost_to_target": None,
    "cost_per_epoch": "epoch_completed_count",
    "cost_per_million_tokens": "million_token_count",
}
FAILED = ("failed", "killed", "abandoned", "unknown")
# The first count of tokens from 0 is about a step; of how many steps at most, as the first may be longer.
_FIRST_STEP = 1.5


@dataclass(frozen=True)
class Job:
    """One replicate: its runs in order of start, and the units of work it did by the measure; 0 if it failed."""

    runs: tuple[Run, ...]
    units: float

    def cost(self, basis: str, measure: str) -> float | None:
        """USD up to the target for a run that reached it, else of the whole run; None where that is unknown."""
        to_target = measure == "cost_to_target"
        parts = [run["costs"][basis] for run in self.runs]
        used = [whole if target is None or not to_target else target for whole, target in parts]
        return None if None in used else fsum(map(float, used))


@dataclass(frozen=True)
class Side:
    """The ended jobs of one side by one measure, in order of start; `open` runs have not ended."""

    measure: str
    jobs: tuple[Job, ...]
    open: tuple[Run, ...] = ()
    rate: tuple[int, int] = (0, 0)

    @property
    def runs(self) -> list[Run]:
        """All ended runs."""
        return [run for job in self.jobs for run in job.runs]

    @property
    def succeeded(self) -> list[Job]:
        return [job for job in self.jobs if job.units]

    @property
    def failed(self) -> list[Job]:
        return [job for job in self.jobs if not job.units]

    @cached_property
    def clusters(self) -> tuple[list[int], bool]:
        """A number for each job, the same for those that share a machine; whether all ran on one fleet.

        Where all jobs share machines, a cluster is a day of start.
        """
        machines = [[name for run in job.runs for name in run["machines"]] for job in self.jobs]
        numbers = joined([own or [job.runs[0]["run_id"]] for own, job in zip(machines, self.jobs, strict=True)])
        if len(numbers) < 2 or len(set(numbers)) > 1:
            return numbers, False
        return joined([[job.runs[0]["started_at"].date()] for job in self.jobs]), True

    def sample(self, basis: str) -> Sample | None:
        """Costs on a basis and units of work; None where a cost is unknown."""
        costs = [job.cost(basis, self.measure) for job in self.jobs]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        made = sample(known, [job.units for job in self.jobs], self.clusters[0])
        return replace(made, rate_runs=self.rate[0], rate_failed_runs=self.rate[1])


Sides = tuple[Side, ...]
"""The baseline and the candidate; empty where they share no unit of work."""


def choose(*runs: Sequence[Run]) -> Sides:
    """The sides by the strongest measure by which each of them succeeded; empty where they share none."""
    for measure in _measures(list(chain(*runs))):
        sides = tuple(side for own in runs if (side := one_side(own, measure)))
        if len(sides) == len(runs):
            return sides
    return ()


def unclear(runs: Sequence[Run]) -> list[str]:
    """The runs of the first job that has several, each with recorded work, and of which the sum of work is unknown."""
    for own in map(ended_of, jobs_of(runs)):
        for measure in _measures(own):
            if None not in [_units(run, measure) for run in own] and job_units(own, measure) is None:
                return [run["run_id"] for run in own]
    return []


def one_side(runs: Sequence[Run], measure: str | None = None) -> Side | None:
    """A side by a measure, or by the strongest it has; None where no run did such work, or one that completed did not
    record how much."""
    if measure is None:
        return next((side for name in _measures(runs) if (side := one_side(runs, name))), None)
    every = jobs_of(runs)
    ended = [own for job in every if (own := ended_of(job))]
    jobs = tuple(Job(tuple(own), units) for own in ended if (units := job_units(own, measure)) is not None)
    if len(jobs) < len(ended) or not any(job.units for job in jobs):
        return None
    return Side(measure, jobs, tuple(run for job in every for run in job if run["status"] == "running"))


def jobs_of(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs by job in order of start, without those that started after their job had met its target."""
    by_job: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run["started_at"], run["run_id"])):
        own = by_job.setdefault(run["job_id"], [])
        met = [result_at(other) for other in ended_of(own) if other["target_duration_ms"] is not None]
        if not met or run["started_at"] < min(met):
            own.append(run)
    return list(by_job.values())


def ended_of(runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if run["status"] != "running"]


def has_failed(run: Run) -> bool:
    """Whether a run ended without its target, or without a target as failed."""
    if run["target"]:
        return run["status"] != "running" and run["target_duration_ms"] is None
    return run["status"] in FAILED


def has_result(run: Run) -> bool:
    """Whether a run completed, or met its target however it ended."""
    return run["status"] == "completed" or run["target_duration_ms"] is not None


def result_at(run: Run) -> datetime:
    """When a run met its target, or ended."""
    if run["target_duration_ms"] is None:
        return run["ended_at"]
    return min(run["ended_at"], run["started_at"] + timedelta(milliseconds=run["target_duration_ms"]))


def _measures(runs: Sequence[Run]) -> Iterable[str]:
    """Work towards a target is the target, whatever else was measured (design 5)."""
    return ["cost_to_target"] if any(run["target"] for run in runs) else MEASURES


def job_units(own: Sequence[Run], measure: str) -> float | None:
    """The work of a job up to its last run that succeeded, what several of its runs record once; None if unknown.

    Nodes and repeated runs record the same work. Resumed runs count epochs and tokens on from before, or from 0.
    """
    units = [_units(run, measure) for run in own]
    if None in units:
        return None
    last = max((number for number, done in enumerate(units) if done), default=-1)
    runs, column = own[: last + 1], MEASURES[measure]
    if column is None or len(runs) < 2:
        return max(filter(None, units), default=0.0)
    if measure == "cost_per_epoch" and all(run["epochs"] for run in runs if run[column]):
        return _distinct_epochs(runs)
    total, most = 0.0, 0.0
    for number, resumed in enumerate(generations(runs)):
        done = max(float(run[column] or 0) for run in resumed)
        counts = {_counts_on(run) for run in resumed if run[column]} if number and most else set()
        if len(counts) > 1 or None in counts:
            return None
        total, most = (total + most, done) if counts == {False} else (total, max(most, done))
    return total + most


def _distinct_epochs(runs: Sequence[Run]) -> float | None:
    """Epochs by their index; None if a run begins with no later epoch than the one it continues: new ones or again?"""
    by_id = {run["run_id"]: run for run in runs if run["epochs"]}
    for run in by_id.values():
        before = by_id.get(run.get("resumed_run_id", ""))
        if before and min(run["epochs"]) <= min(before["epochs"]):
            return None
    done: dict[int, float] = {}
    for run in by_id.values():
        for index, fraction in run["epochs"].items():
            done[index] = max(float(fraction), done.get(index, 0.0))
    return fsum(done.values())


def generations(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs by how many runs of the job each continues."""
    parents = {run["run_id"]: run.get("resumed_run_id") for run in runs}
    found: dict[int, list[Run]] = {}
    for run in runs:
        seen, at = {run["run_id"]}, parents[run["run_id"]]
        while at in parents and at not in seen:
            seen.add(at)
            at = parents[at]
        found.setdefault(len(seen), []).append(run)
    return [found[depth] for depth in sorted(found)]


def _counts_on(run: Run) -> bool | None:
    """Whether the tokens that a resumed run records count on from before: its first count is then more than a step."""
    seen = run["token_counts"]
    if len(seen) < 2:
        return None
    return seen[0] > _FIRST_STEP * median(after - before for before, after in pairwise(seen))


def _units(run: Run, measure: str) -> float | None:
    column = MEASURES[measure]
    if column is None:
        # Reached is reached, however the run ended afterwards; one that completed without is as good as failed.
        return float(run["target_duration_ms"] is not None)
    if run["status"] in FAILED:
        return 0.0
    return None if run[column] is None else float(run[column])


def at_once(runs: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
    """Each run that began before one with nearly the same evaluations had ended: that one and it, in order of start."""
    last: dict[tuple[int, ...], Run] = {}
    for run in sorted(runs, key=lambda run: (run["started_at"], run["run_id"])):
        if of := run["near_evaluations"]:
            before = last.setdefault(of, run)
            if before is not run and run["started_at"] < before["ended_at"]:
                yield before, run
            last[of] = max(before, run, key=lambda run: run["ended_at"])
