"""Registrations of comparisons: which runs they name, and whether they came before what they judge (design 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pipelines.analysis.matched import Run
from pipelines.analysis.quality import Margin


@dataclass(frozen=True)
class Registration:
    """The registration in force of a workload: `excluded` runs with day and reason, `pairs` (baseline, candidate).

    `listed` has the closed list of runs of a family; a family without one is its runs that start after the
    registration. From `failure_rate_from` on, all ended runs of a family before the registration show its failure rate.
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

    def in_time(self, baseline: Sequence[Run], candidate: Sequence[Run]) -> Mapping[str, str]:
        """The exclusions, with their reasons, of before the later side's first result."""
        first = max(min(run["ended_at"] for run in side).date() for side in (baseline, candidate))
        return {run_id: reason for run_id, (day, reason) in self.excluded.items() if day < first}

    def fault(self, runs: Sequence[Run], excluded: Mapping[str, str]) -> str | None:
        """Why it does not cover this side: it lists no closed range of runs, or came after they began."""
        listed = self.listed.get(runs[0]["accelerator_family"])
        if listed is None:
            early = [run["run_id"] for run in runs if run["started_at"].date() <= self.registered_on]
            if not early:
                return None
            return (
                f"registration {self.name} of {self.registered_on} came after run {early[0]} on "
                f"{runs[0]['instance_type']} began, does not list the runs of that side, and counts for nothing"
            )
        own = [run for run in runs if run["run_id"] in listed]
        if not own:
            return f"registration {self.name} lists no run on {runs[0]['instance_type']} and counts for nothing"
        first, last = min(run["started_at"] for run in own), max(run["started_at"] for run in own)
        left_out = [
            run["run_id"]
            for run in runs
            if run["run_id"] not in listed and first <= run["started_at"] <= last and run["run_id"] not in excluded
        ]
        if left_out:
            return (
                f"registration {self.name} lists runs of {first:%Y-%m-%d} to {last:%Y-%m-%d} without run {left_out[0]} "
                "of those days and counts for nothing"
            )
        return None

    def planned(self, runs: Sequence[Run]) -> list[Run]:
        """The runs of a side that are judged if they are among the first planned."""
        listed = self.listed.get(runs[0]["accelerator_family"]) if runs else None
        return [run for run in runs if listed is None or run["run_id"] in listed]


def registrations_by_workload(rows: Sequence[Mapping[str, Any]]) -> dict[str, Registration]:
    """The Registration in force of each workload, from the rows of stg_proof__registration."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["registration"], []).append(row)
    found = {}
    for own in by_name.values():
        row, named = own[0], [run for run in own if run["run_id"] is not None]
        listed: dict[str, set[str]] = {}
        for run in named:
            if run["is_listed"]:
                listed.setdefault(run["accelerator_family"], set()).add(run["run_id"])
        if row["is_in_force"]:
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
                excluded={
                    run["run_id"]: (run["excluded_on"], run["exclusion_reason"]) for run in named if run["excluded_on"]
                },
                pairs=_pairs([run for run in named if run["pair_no"] is not None]),
                listed={family: frozenset(run_ids) for family, run_ids in listed.items()},
            )
    return found


def _pairs(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    sides: dict[int, dict[str, str]] = {}
    for run in runs:
        sides.setdefault(run["pair_no"], {})[run["accelerator_family"]] = run["run_id"]
    return [(pair["gpu"], pair["trainium"]) for _, pair in sorted(sides.items())]
