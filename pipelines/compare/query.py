"""Which rows of the comparison somebody asks for."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipelines.base.errors import UsageError
from pipelines.engine import Engine

BASES = ("effective", "list", "billed")
_MANY = 8


def rows_of(marts: Engine, workload: str | None, basis: str | None) -> pl.DataFrame:
    """The workload's rows of mart_silicon_comparison, of all workloads for None; UsageError where there is none.

    `workload` is an id, or a part that only one compared workload has; `basis` leaves the rows of one.
    """
    if basis is not None and basis not in BASES:
        raise UsageError(f"--basis {basis} is none; write one of {', '.join(BASES)}.")
    rows = marts.query("select * from mart_silicon_comparison")
    if workload is not None:
        rows = rows.filter(pl.col("workload_id") == _named(marts, rows, workload))
    if not rows.height:
        raise UsageError(
            "No workload has a completed run on both GPU and Trainium; `trainledger report` lists them all."
        )
    if basis is not None:
        rows = rows.filter(pl.col("cost_basis") == basis)
    order = pl.col("cost_basis").replace_strict(BASES, range(len(BASES)), return_dtype=pl.Int64)
    return rows.sort("workload_id", "billing_currency", "baseline_instance_type", "candidate_instance_type", order)


def recommendation_of(
    marts: Engine, workload_id: str, currency: str
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The workload's row of the portfolio, and of the pilot plan where no measurement decides."""
    found = []
    for mart in ("mart_portfolio", "detail_pilot_plan"):
        rows = marts.query(f"select * from {mart}").filter(workload_id=workload_id, billing_currency=currency)
        found.append(rows.row(0, named=True) if rows.height else None)
    return found[0], found[1]


def _named(marts: Engine, rows: pl.DataFrame, asked: str) -> str:
    compared = rows["workload_id"].unique().sort().to_list()
    found = [name for name in compared if name == asked] or [name for name in compared if asked.lower() in name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        more = f" and {len(found) - _MANY} more" if len(found) > _MANY else ""
        raise UsageError(
            f"{asked!r} is part of several workloads: {'; '.join(found[:_MANY])}{more}; write more of one."
        )
    runs = marts.query("select workload_id, accelerator_family, status from mart_run_cost").filter(
        pl.col("workload_id").str.to_lowercase().str.contains(asked.lower(), literal=True)
    )
    if not runs.height:
        raise UsageError(f"No run is of a workload {asked!r}; `trainledger compare` alone lists those compared.")
    workload = runs["workload_id"].min()
    sides = runs.filter(pl.col("workload_id") == workload)
    baseline, candidate = (
        sides.filter((pl.col("accelerator_family") == family) & (pl.col("status") == "completed")).height
        for family in ("gpu", "trainium")
    )
    raise UsageError(
        f"{workload} is not compared. Completed runs: {baseline} on GPU, {candidate} on Trainium; each side needs "
        "one on one kind of machine in one currency; detail_comparison_near_miss lists runs that almost match."
    )
