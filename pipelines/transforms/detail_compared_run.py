"""One row per pair of the comparison, cost basis and run of it: whether it was compared, and at which cost.

What explains a comparison, or rests on it, takes its runs from here.
"""

from collections.abc import Iterator

import polars as pl

from pipelines.analysis.compared_runs import Taken, take
from pipelines.analysis.matched import Run
from pipelines.analysis.registration import registrations_by_workload
from pipelines.base.cost import BASES
from pipelines.transforms import Row, Rows, run_pair
from pipelines.transforms.run_pair import pairs_of, runs_of

INPUTS = (*run_pair.INPUTS, "stg_proof__registration")
QUERIES = run_pair.QUERIES


def build(**table: pl.DataFrame) -> Rows:
    """Every run of every pair, on each basis."""
    registered = registrations_by_workload(table["stg_proof__registration"].to_dicts())
    return [
        key | {"cost_basis": basis} | row
        for key, baseline, candidate in pairs_of(runs_of(table))
        for taken in (take(baseline, candidate, registered.get(key["workload_id"])),)
        for basis in BASES
        for row in _rows(taken, (*baseline, *candidate), basis)
    ]


def _rows(taken: Taken, runs: tuple[Run, ...], basis: str) -> Iterator[Row]:
    parts: dict[str, tuple[str, float | None]] = {}
    for side in taken.sides:
        for job in side.jobs:
            cost = job.cost(basis, side.measure)
            unit_cost = cost / job.units if job.units and cost is not None else None
            parts |= {run["run_id"]: ("compared" if job.units else "failed", unit_cost) for run in job.runs}
        parts |= {run["run_id"]: ("no end", None) for run in side.open}
    parts |= {run["run_id"]: ("earlier", None) for run in taken.earlier}
    parts |= {run["run_id"]: ("later", None) for run in taken.later}
    parts |= {run_id: ("excluded", None) for run_id in taken.excluded}
    for run in runs:
        part, cost = parts.get(run["run_id"], ("no common unit", None))
        yield {
            **{name: run[name] for name in ("run_id", "accelerator_family")},
            "whole_cost_usd": run["costs"][basis][0],
            "unit_measure": taken.sides[0].measure if taken.sides and part in ("compared", "failed") else "none",
            "comparison_part": part,
            "exclusion_reason": taken.excluded.get(run["run_id"]),
            "unit_cost_usd": cost,
        }
