"""The requested rows of the comparison, and as text: `dashboards/compare.txt.j2`."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import polars as pl

from pipelines.base.console import Console
from pipelines.base.cost import BASES
from pipelines.base.errors import UsageError, counted
from pipelines.engine import Engine
from pipelines.present.text import show_text

TEMPLATE = "compare.txt.j2"
_PAIR = ("workload_id", "billing_currency", "baseline_instance_type", "candidate_instance_type")
_MANY = 8


def show(
    rows: pl.DataFrame,
    basis: str | None,
    recommendations: Mapping[tuple[str, str], dict[str, Any] | None],
    console: Console,
) -> None:
    """One block per pair: both families, the verdict on `basis` (else the registered, else effective), other bases, and
    the recommendation, with the plan of a pilot where no measurement decides."""
    pairs = []
    for _, group in groupby(rows.to_dicts(), key=lambda row: [row[name] for name in _PAIR]):
        bases = list(group)
        wanted = basis or bases[0]["registered_cost_basis"] or "effective"
        chosen = next(row for row in bases if row["cost_basis"] == wanted)
        portfolio = recommendations[chosen["workload_id"], chosen["billing_currency"]]
        pairs.append({"chosen": chosen, "bases": bases, "portfolio": portfolio})
    show_text(TEMPLATE, {"pairs": pairs, "ways": []}, console)


def rows_of(marts: Engine, workload: str | None, basis: str | None) -> pl.DataFrame:
    """The workload's rows of mart_silicon_comparison, of all workloads for None; UsageError where there are none.

    `workload` is an id, or a part that only one compared workload has; `basis` leaves the rows of one.
    """
    rows = marts.query("select * from mart_silicon_comparison")
    if workload is not None:
        workload_id, why_not = workload_named(marts, workload)
        if why_not:
            raise UsageError(why_not)
        rows = rows.filter(workload_id=workload_id)
    if not rows.height:
        raise UsageError(
            "No workload has a completed run on both GPU and Trainium; `trainledger report` lists all workloads."
        )
    if basis is not None:
        rows = rows.filter(cost_basis=basis)
    order = pl.col("cost_basis").replace_strict(BASES, range(len(BASES)), return_dtype=pl.Int64)
    return rows.sort(*_PAIR, order)


def recommendation_of(marts: Engine, workload_id: str, currency: str) -> dict[str, Any] | None:
    """The workload's row of the portfolio."""
    key = {"activity": "training", "workload_id": workload_id, "billing_currency": currency}
    rows = marts.query("select * from mart_portfolio").filter(**key)
    return rows.row(0, named=True) if rows.height else None


def workload_named(marts: Engine, name: str) -> tuple[str, str]:
    """The workload of this id, or of a part that only one compared workload has, and why it is not compared, if so.

    UsageError where several have the part, or none.
    """
    compared = marts.query("select distinct workload_id from mart_silicon_comparison order by 1")[
        "workload_id"
    ].to_list()
    found = [name] if name in compared else [known for known in compared if name.lower() in known.lower()]
    if len(found) == 1:
        return found[0], ""
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
    workload = str(runs["workload_id"].min())
    completed = runs.filter(workload_id=workload, status="completed")
    gpu, trainium = (completed.filter(accelerator_family=family).height for family in ("gpu", "trainium"))
    return workload, (
        f"{workload} is not compared: it has {counted(gpu, 'completed run')} on GPU and {trainium} on Trainium, "
        "and needs one on each, on one instance type and in one currency; detail_comparison_near_miss lists runs that "
        "almost match."
    )


def ways_of(marts: Engine, model: str | None) -> pl.DataFrame:
    """The rows of mart_serving_comparison, of all models for None; UsageError where there are none.

    `model` is a name, or a part of one or several.
    """
    rows = marts.query(
        "select * from mart_serving_comparison order by billing_currency, baseline_cost_per_month_usd desc nulls last, "
        "model, baseline_platform, baseline_tier nulls first, candidate_platform nulls last, "
        "candidate_cost_per_month_usd"
    )
    if model is not None:
        rows = rows.filter(pl.col("model").str.to_lowercase().str.contains(model.lower(), literal=True))
    if rows.is_empty():
        if model is not None:
            raise UsageError(
                f"Model {model!r} is not served on this bill; `trainledger compare --serving` lists models."
            )
        raise UsageError(
            "No model is served on this bill; a [[serving]] source adds your own servers (docs/serving.md)."
        )
    return rows
