"""What was registered of a comparison before its runs: metric, margin, planned runs, basis (the pre-registration)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pipelines.analysis.matched import Run
from pipelines.analysis.quality import Margin


@dataclass(frozen=True)
class Registration:
    """The registration in force of a workload; `excluded` runs by id with the reason, `pairs` (GPU, Trainium)."""

    name: str
    registered_on: date
    seal: str
    target_value: float | None
    planned_runs: int
    cost_basis: str
    margin: Margin
    excluded: Mapping[str, str]
    pairs: Sequence[tuple[str, str]]

    def precedes(self, baseline: Sequence[Run], candidate: Sequence[Run]) -> bool:
        """Whether it dates from the day the later side began, or earlier; a later one could fit the runs seen.

        The runs of the earlier side are often the baseline a port is measured by, and known when it is planned.
        """
        return self.registered_on <= max(
            min(run["started_at"] for run in side).date() for side in (baseline, candidate)
        )


def registrations_by_workload(
    registrations: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The Registration in force of each workload, from the rows of stg_proof__registration and stg_proof__run."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        by_name.setdefault(run["registration"], []).append(run)
    return {
        row["workload_id"]: Registration(
            name=row["registration"],
            registered_on=row["registered_on"],
            seal=row["registration_seal"],
            target_value=row["target_value"],
            planned_runs=row["planned_run_count"],
            cost_basis=row["cost_basis"],
            margin=Margin(row["target_metric"], row["target_direction"], row["quality_margin"]),
            excluded={
                run["run_id"]: run["exclusion_reason"]
                for run in by_name.get(row["registration"], ())
                if run["exclusion_reason"]
            },
            pairs=_pairs([run for run in by_name.get(row["registration"], ()) if run["pair_no"] is not None]),
        )
        for row in registrations
        if row["is_in_force"]
    }


def _pairs(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    sides: dict[int, dict[str, str]] = {}
    for run in runs:
        sides.setdefault(run["pair_no"], {})[run["accelerator_family"]] = run["run_id"]
    return [(pair["gpu"], pair["trainium"]) for _, pair in sorted(sides.items())]
