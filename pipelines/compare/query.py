"""The requested rows of the comparison."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipelines.base.errors import UsageError
from pipelines.engine import Engine

BASES = ("effective", "list", "billed")
_MANY = 8
Row = dict[str, Any]


def rows_of(marts: Engine, workload: str | None, basis: str | None) -> pl.DataFrame:
    """The workload's rows of mart_silicon_comparison, of all workloads for None; UsageError where there are none.

    `workload` is an id, or a part that only one compared workload has; `basis` leaves the rows of one.
    """
    if basis is not None and basis not in BASES:
        raise UsageError(f"--basis {basis} is not a basis; choose one of {', '.join(BASES)}.")
    rows = marts.query("select * from mart_silicon_comparison")
    if workload is not None:
        rows = rows.filter(pl.col("workload_id") == _named(marts, rows, workload))
    if not rows.height:
        raise UsageError(
            "No workload has a completed run on both GPU and Trainium; `trainledger report` lists all workloads."
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


def _named(marts: Engine, rows: pl.DataFrame, name: str) -> str:
    compared = rows["workload_id"].unique().sort().to_list()
    found = [known for known in compared if known == name]
    found = found or [known for known in compared if name.lower() in known.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        more = f" and {len(found) - _MANY} more" if len(found) > _MANY else ""
        raise UsageError(
            f"{name!r} is part of several workloads: {'; '.join(found[:_MANY])}{more}; write more of the name."
        )
    runs = marts.query("select workload_id, accelerator_family, status from mart_run_cost").filter(
        pl.col("workload_id").str.to_lowercase().str.contains(name.lower(), literal=True)
    )
    if not runs.height:
        raise UsageError(f"Workload {name!r} not found; `trainledger compare` lists the compared workloads.")
    workload = runs["workload_id"].min()
    runs_of_workload = runs.filter(pl.col("workload_id") == workload)
    gpu, trainium = (
        runs_of_workload.filter((pl.col("accelerator_family") == family) & (pl.col("status") == "completed")).height
        for family in ("gpu", "trainium")
    )
    raise UsageError(
        f"{workload} is not compared: it has {gpu} completed runs on GPU and {trainium} on Trainium, and needs one "
        "on each, on one instance type and in one currency; detail_comparison_near_miss lists runs that almost match."
    )
