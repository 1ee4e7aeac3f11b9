"""What the bill and the comparison say of each stated port: its costs so far, what a run saves, how often it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from pipelines.proof.break_even import Case

# Ports are stated in it, so only bills in it are held against them.
CURRENCY = "USD"
INPUTS = ("stated_port", "stated_port_run", "mart_silicon_comparison", "fct_run", "fct_run_unit")
KINDS = ("spike", "validation", "failed_pair")
MONTH_DAYS = 365.25 / 12
# How far back runs are counted for the cadence, and the least time they are counted over.
_WINDOW, _LEAST = timedelta(days=90), timedelta(days=MONTH_DAYS)


@dataclass
class PortCase:
    """A port as stated, and what is measured of it; no `case` where a saving or how often it runs is not known."""

    port: dict[str, Any]
    costs: dict[str, float]
    pair: dict[str, Any] | None = None
    gpu: float | None = None
    trainium: float | None = None
    low: float | None = None
    high: float | None = None
    saving_evidence: str | None = None
    runs_per_month: float | None = None
    cadence_evidence: str | None = None
    missing: list[str] = field(default_factory=list)

    @property
    def port_cost(self) -> float:
        """USD of the port in all."""
        return sum(self.costs.values())

    @property
    def case(self) -> Case | None:
        """The port as proof/break_even.py takes it."""
        if self.gpu is None or self.trainium is None or self.runs_per_month is None:
            return None
        port = self.port
        return Case(
            port=self.port_cost,
            gpu=self.gpu,
            trainium=self.trainium,
            runs_per_month=self.runs_per_month,
            months=port["horizon_months"],
            upkeep=float(port["upkeep_usd_per_month"]),
            discount=port["discount_ratio"],
            gpu_fall=port["gpu_price_fall_ratio"],
            success=port["success_ratio"],
        )


def port_cases(
    stated_port: pl.DataFrame,
    stated_port_run: pl.DataFrame,
    mart_silicon_comparison: pl.DataFrame,
    fct_run: pl.DataFrame,
    fct_run_unit: pl.DataFrame,
) -> Iterator[PortCase]:
    """Every port, by name."""
    for port in stated_port.sort("port_name").iter_rows(named=True):
        own = stated_port_run.filter(port_name=port["port_name"])
        found = PortCase(port, _costs(port))
        _add_runs(found, own, fct_run)
        _add_saving(found, mart_silicon_comparison, fct_run_unit)
        _add_cadence(found, fct_run.filter(pl.col("run_id").is_in(own["run_id"].to_list()).not_()))
        yield found


def _costs(port: dict[str, Any]) -> dict[str, float]:
    return {
        "engineering": port["engineer_days"] * float(port["day_rate_usd"]),
        **dict.fromkeys(KINDS, 0.0),
        "further": float(port["further_cost_usd"]),
    }


def _add_runs(found: PortCase, own: pl.DataFrame, fct_run: pl.DataFrame) -> None:
    """What the port's own runs cost, from the bill."""
    billed = own.unique().join(fct_run, on="run_id", how="left").sort("port_cost_kind", "run_id")
    for run in billed.iter_rows(named=True):
        if run["effective_cost_usd"] is None or run["billing_currency"] != CURRENCY:
            found.missing.append(
                f"no bill in {CURRENCY} has the {run['port_cost_kind'].replace('_', ' ')} run {run['run_id']}"
            )
        else:
            found.costs[run["port_cost_kind"]] += float(run["effective_cost_usd"])


def _add_saving(found: PortCase, comparison: pl.DataFrame, fct_run_unit: pl.DataFrame) -> None:
    """What a run costs on either side: as compared on the bill, else as planned."""
    port = found.port
    pairs = (
        comparison.filter(workload_id=port["workload_id"], cost_basis="effective", billing_currency=CURRENCY)
        .with_columns(least=pl.min_horizontal("gpu_run_count", "trainium_run_count"))
        .sort("least", "gpu_instance_type", "trainium_instance_type", descending=[True, False, False])
    )
    told = pairs.filter(pl.col("saving_ratio").is_not_null(), pl.col("verdict") != "not comparable")
    units = _units(told.row(0, named=True), fct_run_unit) if told.height else None
    if units:
        found.pair = pair = told.row(0, named=True)
        found.gpu = float(pair["gpu_unit_cost_usd"]) * units
        found.trainium = found.gpu * (1 - float(pair["saving_ratio"]))
        found.saving_evidence = "measured"
        if pair["saving_low_ratio"] is not None and pair["saving_high_ratio"] is not None:
            found.low, found.high = (found.gpu * float(pair[f"saving_{end}_ratio"]) for end in ("low", "high"))
    elif port["planned_gpu_cost_usd_per_run"] is not None and port["planned_saving_ratio"] is not None:
        found.gpu = float(port["planned_gpu_cost_usd_per_run"])
        found.trainium = found.gpu * (1 - port["planned_saving_ratio"])
        found.saving_evidence = "planned"
        found.missing.append("what a run saves is planned, not measured: run a spike")
    else:
        found.missing.append("nothing compares the two sides of the workload, and nothing is planned: run a spike")


def _units(pair: dict[str, Any], fct_run_unit: pl.DataFrame) -> float | None:
    """Units of work a completed run of the pair does, on average."""
    done = fct_run_unit.filter(
        pl.col("instance_type").is_in([pair["gpu_instance_type"], pair["trainium_instance_type"]]),
        workload_id=pair["workload_id"],
        unit_measure=pair["unit_measure"],
        status="completed",
        billing_currency=CURRENCY,
    ).sort("run_id")
    counts = [float(count) for count in done["unit_count"]]
    return sum(counts) / len(counts) if counts else None


def _add_cadence(found: PortCase, runs: pl.DataFrame) -> None:
    """Completed runs a month over the last 90 days, or since the first one; else as stated."""
    done = runs.filter(workload_id=found.port["workload_id"], status="completed").drop_nulls(["started_at", "ended_at"])
    if done.height:
        newest: datetime = max(done["ended_at"])
        oldest: datetime = min(done["started_at"])
        recent = done.filter(pl.col("ended_at") > newest - _WINDOW).height
        found.runs_per_month = recent / (min(max(newest - oldest, _LEAST), _WINDOW) / _LEAST)
        found.cadence_evidence = "measured"
    elif found.port["runs_per_month"] is not None:
        found.runs_per_month, found.cadence_evidence = found.port["runs_per_month"], "planned"
    else:
        found.missing.append("no completed run tells how often it runs, and nothing is planned")
