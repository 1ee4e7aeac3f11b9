"""One row per pair of the comparison, cost basis and run of it: whether it was compared, and at which cost.

What explains a comparison, or rests on it, takes its runs from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipelines.analysis.comparison import Taken, take
from pipelines.analysis.matched import MEASURES, Run
from pipelines.analysis.registration import registrations_by_workload
from pipelines.transforms.run_pair import PAIR_KEY, pairs_of

INPUTS = ("fct_run_unit_cost", "stg_proof__registration", "stg_proof__run")
_KEY = (*PAIR_KEY[:-1], "cost_basis", PAIR_KEY[-1])
_SCHEMA = {
    **dict.fromkeys((*_KEY, "run_id", "accelerator_family", "unit_measure", "comparison_part"), pl.String),
    "exclusion_reason": pl.String,
    "whole_cost_usd": pl.Decimal(38, 10),
    **dict.fromkeys(("unit_cost_usd", "compared_unit_cost_usd"), pl.Float64),
}


def build(
    fct_run_unit_cost: pl.DataFrame, stg_proof__registration: pl.DataFrame, stg_proof__run: pl.DataFrame
) -> pl.DataFrame:
    """Every run of every pair, on each basis."""
    registered = registrations_by_workload(stg_proof__registration.to_dicts(), stg_proof__run.to_dicts())
    rows = [
        key | {"cost_basis": basis} | row
        for key, sides in pairs_of(fct_run_unit_cost)
        for basis, runs in sides.items()
        for row in _rows(take(*runs, registered.get(key["workload_id"])))
    ]
    # More places than six would only differ from machine to machine.
    return pl.DataFrame(rows, schema=_SCHEMA).with_columns(pl.col(pl.Float64).round(6))


def _rows(taken: Taken) -> Iterator[dict[str, Any]]:
    for run in taken.excluded:
        assert taken.registration is not None
        yield _row(run, "excluded") | {"exclusion_reason": taken.registration.excluded[run["run_id"]]}
    if taken.sides is None:
        yield from (_row(run, "no common unit") for runs in taken.kept for run in runs)
        return
    for side in taken.sides:
        parts: list[tuple[Run, str, float | None]] = [
            (run, "compared", cost) for run, cost in zip(side.runs, side.costs, strict=True)
        ]
        parts += [(run, "failed", None) for run in side.failed] + [(run, "no end", None) for run in side.open]
        for run, part, cost in parts:
            own = run[MEASURES[side.measure]]
            yield _row(run, part) | {
                "unit_measure": side.measure,
                "unit_cost_usd": None if own is None else float(own),
                "compared_unit_cost_usd": cost,
            }


def _row(run: Run, part: str) -> dict[str, Any]:
    return {
        **{name: run[name] for name in ("run_id", "accelerator_family", "whole_cost_usd")},
        "unit_measure": "none",
        "comparison_part": part,
    }
