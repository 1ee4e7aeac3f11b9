"""What each run that may be compared cost, whole and to its target, and the work it did."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines.analysis.comparison import BASES
from pipelines.transforms import Row

INPUTS = ("fct_run_cost", "fct_interval_cost", "dim_run")
# The first evaluation that met the target.
QUERIES = {
    "fct_interval_cost": """
        select run_id, duration_ms, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
        from fct_interval_cost
        where interval_kind = 'target' and interval_key = '1'"""
}
_SAME = (
    "run_id", "billing_currency", "accelerator_family", "region_id", "accelerator_hours", "imds_cost_usd",
    "api_cost_usd", "nodemap_cost_usd", "tag_cost_usd", "type_match_cost_usd", "first_billing_month",
    "last_billing_month", "open_billing_month", "newest_usage_date",
)  # fmt: skip
_ABOUT = ("workload_id", "instance_type", "purpose", "started_at", "ended_at", "accelerator_count")
_DESCRIBED = (*_ABOUT, "status", "compile_run_id", "tokens_seen_count", "epoch_completed_count", "epoch_unit")


def run_units(fct_run_cost: pl.DataFrame, fct_interval_cost: pl.DataFrame, dim_run: pl.DataFrame) -> dict[str, Row]:
    """Every billed run on one kind of GPU or Trainium machine by its id, with `costs`: (whole, to target) by basis.

    A run bears its equal part of what was compiled for it (mart_run_cost has both views). What was compiled for no run,
    or by a run that also trained, is a run of its own that succeeded at nothing. The cost `hours` is of instance-hours.
    """
    described = {row["run_id"]: row for row in dim_run.select("run_id", *_DESCRIBED).iter_rows(named=True)}
    targets = {row["run_id"]: row for row in fct_interval_cost.iter_rows(named=True)}
    linked = {row["compile_run_id"] for row in described.values() if row["purpose"] != "compile_only"}
    billed = fct_run_cost.filter("is_billed", pl.col("accelerator_family").is_in(["gpu", "trainium"]))
    return {
        cost["run_id"]: _unit(cost, described[cost["run_id"]], targets.get(cost["run_id"]))
        for cost in billed.iter_rows(named=True)
        if _is_compared(described[cost["run_id"]], linked)
    }


def _is_compared(run: Mapping[str, Any], linked: set[str]) -> bool:
    if run["instance_type"] == "mixed":
        return False
    has_trained = (run["tokens_seen_count"] or 0) > 0 or run["epoch_completed_count"] > 0
    return run["purpose"] != "compile_only" or run["run_id"] not in linked or has_trained


def _unit(cost: Mapping[str, Any], run: Mapping[str, Any], target: Mapping[str, Any] | None) -> Row:
    is_compiler = run["purpose"] == "compile_only"
    reached: Mapping[str, Any] = {} if target is None or is_compiler else target
    hours, count = (cost["accelerator_hours"], reached.get("accelerator_hours")), run["accelerator_count"]
    tokens, epochs = run["tokens_seen_count"] or 0, run["epoch_completed_count"]
    return {
        **{name: cost[name] for name in _SAME},
        **{name: run[name] for name in _ABOUT},
        "status": "failed" if is_compiler and run["status"] == "completed" else run["status"],
        "target_accelerator_hours": hours[1],
        "target_duration_ms": reached.get("duration_ms"),
        "attached_list_cost_usd": _sum(cost["attached_list_cost_usd"], cost["list_compile_part_usd"]),
        "epoch_completed_count": epochs if run["epoch_unit"] == "dataset_pass" and epochs > 0 else None,
        "tokens_seen_count": tokens if tokens > 0 else None,
        "million_token_count": float(tokens) / 1e6 if tokens > 0 else None,
        "costs": {
            basis: tuple(
                _sum(of_run.get(f"{basis}_cost_usd"), cost[f"{basis}_compile_part_usd"]) for of_run in (cost, reached)
            )
            for basis in BASES
        }
        | {"hours": tuple(float(part) / count if part and count else None for part in hours)},
    }


def _sum(cost: Decimal | None, compiled: Decimal | None) -> Decimal | None:
    return None if cost is None or compiled is None else cost + compiled
