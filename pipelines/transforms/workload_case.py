"""What bill, runs, comparison and people know of each workload: the inputs of the rules by which it leans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from math import inf
from typing import Any

import polars as pl

from pipelines.analysis.break_even import runs_to_break_even
from pipelines.analysis.recommendation import Decision, Finding, Inputs, Measured, Rule, arithmetic, decide, weigh
from pipelines.transforms import port_case
from pipelines.transforms.port_case import (
    CURRENCY,
    MONTH_DAYS,
    PortCase,
    best_pair,
    compared_units,
    port_cases,
    runs_per_month,
    units_of,
)

INPUTS = (
    *port_case.INPUTS,
    "declared_workload",
    "declared_offer",
    "declared_maturity",
    "fct_workload_spend_daily",
)
FAMILIES = ("gpu", "trainium")
# A port's, where none is stated.
_HORIZON_MONTHS = 12
# Money of a month is that of so many days before the newest use, as the cadence is.
WINDOW_DAYS = 90
_TRAINS = ("pretrain", "finetune")


@dataclass(frozen=True)
class WorkloadCase:
    """A workload in one currency; `pair` is its comparison with the most runs on the effective basis."""

    workload_id: str
    currency: str
    inputs: Inputs
    runs: pl.DataFrame
    spend: pl.DataFrame
    stated: dict[str, Any]
    pair: dict[str, Any] | None
    port: PortCase | None
    monthly_cost: float

    @property
    def measured(self) -> Measured | None:
        """What its comparison says."""
        if self.pair is None:
            return None
        pair, case = self.pair, self.port and self.port.case
        more = [pair[f"more_{family}_run_count"] for family in FAMILIES]
        return Measured(
            pair["verdict"],
            pair["verdict_reason"],
            *(_number(pair[name]) for name in ("saving_ratio", "saving_low_ratio", "saving_high_ratio")),
            more_runs=None if None in more else sum(more),
            npv=case.expected if case else None,
        )

    def lean(self, rules: list[Rule]) -> tuple[list[Finding], Decision]:
        """What every rule says in the order they are asked, and the decision."""
        stops = [weigh(rule, self.inputs) for rule in rules if rule.kind == "hard_stop"]
        scenarios = [weigh(rule, self.inputs) for rule in rules if rule.kind == "scenario"]
        findings = [*stops, arithmetic(self.measured, self.inputs), *scenarios]
        return findings, decide(findings, {rule.name: rule.situation for rule in rules})


def workload_cases(
    declared_workload: pl.DataFrame,
    declared_offer: pl.DataFrame,
    declared_maturity: pl.DataFrame,
    fct_workload_spend_daily: pl.DataFrame,
    **of_ports: pl.DataFrame,
) -> Iterator[WorkloadCase]:
    """Every workload with a billed run on GPU or Trainium, by name and currency."""
    runs = of_ports["fct_run"].filter(pl.col("accelerator_family").is_in(FAMILIES), pl.col("is_billed"))
    # A bill that names no currency leaves nothing to sum or to rank.
    runs = runs.drop_nulls("billing_currency")
    ports: dict[str, PortCase] = {}
    for port in sorted(port_cases(**of_ports), key=lambda found: found.port["started_date"]):
        # Of several the newest: what older ones cost is spent.
        ports[port.port["workload_id"]] = port
    units = compared_units(of_ports["detail_compared_run"], of_ports["detail_run_unit_cost"])
    stated = {row["workload_id"]: row for row in declared_workload.iter_rows(named=True)}
    spend = fct_workload_spend_daily.with_columns(pl.col("effective_cost_usd").cast(pl.Float64))
    terms = declared_maturity.row(0, named=True)
    for (workload_id, currency), own in runs.sort("workload_id", "billing_currency", "run_id").group_by(
        ["workload_id", "billing_currency"], maintain_order=True
    ):
        told = stated.get(str(workload_id), dict.fromkeys(declared_workload.columns))
        pair = best_pair(of_ports["mart_silicon_comparison"], str(workload_id), str(currency))
        port = ports.get(str(workload_id)) if currency == CURRENCY else None
        paid = spend.filter(workload_id=str(workload_id), billing_currency=str(currency))
        inputs = {
            **terms,
            **_stated(told, own, spend["usage_date"].max()),
            **_leads(declared_offer, told),
            **_arithmetic(told, own, pair, port, units),
            "monthly_cost_trend_usd": _trend(paid, spend["usage_date"].min(), spend["usage_date"].max()),
        }
        yield WorkloadCase(
            str(workload_id), str(currency), inputs, own, paid, told, pair, port,
            monthly_cost(paid, paid, spend["usage_date"].max()),
        )  # fmt: skip


def _stated(told: dict[str, Any], runs: pl.DataFrame, newest: Any) -> dict[str, Any]:
    """What people say, where the runs themselves do not tell."""
    purposes = set(runs["purpose"].drop_nulls()) & set(_TRAINS)
    # What completed on Trainium needs nothing that Neuron lacks.
    has_run = bool(runs.filter(accelerator_family="trainium", status="completed").height)
    changed = told["architecture_changed_date"]
    return {
        "purpose": purposes.pop() if len(purposes) == 1 else told["purpose"],
        "architecture": told["architecture"],
        "custom_cuda": told["custom_cuda"] or ("some" if has_run else None),
        "neuron_supported": told["neuron_supported"] or ("yes" if has_run else None),
        "months_since_architecture_change": (newest - changed).days / MONTH_DAYS if changed else None,
        "team_is_cuda_native": told["team_is_cuda_native"],
        "need_within_days": inf if told["need_within_days"] is None else told["need_within_days"],
    }


def _leads(offers: pl.DataFrame, told: dict[str, Any]) -> dict[str, float | None]:
    """Days until the soonest offer of either side, in the workload's region where it has one."""
    here = offers.filter(region_id=told["region_id"]) if told["region_id"] else offers
    soonest = {family: here.filter(accelerator_family=family)["lead_days"].min() for family in FAMILIES}
    return {f"{family}_lead_days": _number(days) for family, days in soonest.items()}


def _arithmetic(
    told: dict[str, Any], runs: pl.DataFrame, pair: dict[str, Any] | None, port: PortCase | None, units: pl.DataFrame
) -> dict[str, float | None]:
    months = port.port["horizon_months"] if port else _HORIZON_MONTHS
    cadence = port.runs_per_month if port else runs_per_month(runs)
    saving = cost = needed = None
    if port is not None:
        cost = port.port_cost
        saving = None if port.gpu is None or port.trainium is None else port.gpu - port.trainium
    elif pair is not None and pair["claims"]:
        done = units_of(pair, units)
        saving = done and float(pair["gpu_unit_cost_usd"]) * done * float(pair["saving_ratio"])
    if saving is not None and (cost is not None or saving <= 0):
        # What saves nothing pays nothing back, whatever it cost.
        found = runs_to_break_even(1.0 if cost is None else cost, saving)
        needed = inf if found is None else float(found)
    planned = told["runs_in_horizon"]
    return {
        "saving_per_run_usd": saving,
        "port_cost_usd": cost,
        "break_even_runs": needed,
        "runs_in_horizon": float(planned) if planned is not None else cadence and cadence * months,
        "payback_months": None if needed is None or not cadence else needed / cadence,
        "horizon_months": float(months),
    }


def _trend(spend: pl.DataFrame, first: Any, newest: Any) -> float | None:
    """Cost of the last whole month less that of the month before; None before two months are whole."""
    if first is None or newest is None:
        return None
    end: date = newest + timedelta(days=1)
    last = (end.replace(day=1) - timedelta(days=1)).replace(day=1)
    before = (last - timedelta(days=1)).replace(day=1)
    if first.replace(day=1) > before:
        return None
    costs = [
        float(spend.filter(pl.col("usage_date").dt.truncate("1mo") == month)["effective_cost_usd"].sum())
        for month in (last, before)
    ]
    return costs[0] - costs[1]


def monthly_cost(part: pl.DataFrame, spend: pl.DataFrame, newest: Any) -> float:
    """USD a month of `part` over the last 90 days of the ledger, or since the first of `spend`, a month at least."""
    if not spend.height:
        return 0.0
    recent = part.filter(pl.col("usage_date") > newest - timedelta(days=WINDOW_DAYS))
    first: Any = spend["usage_date"].min()
    days = min(max((newest - first).days + 1, MONTH_DAYS), WINDOW_DAYS)
    ordered = recent.sort("usage_date", "accelerator_family", "instance_type", "market")
    return float(ordered["effective_cost_usd"].sum()) * MONTH_DAYS / days


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
