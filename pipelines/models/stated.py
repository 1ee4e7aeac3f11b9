"""What models take of people's decisions: frozen baselines, adjustments, ports and the runs they cost, budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.decisions import Decisions

# Columns with their types.
STATED: Mapping[str, Mapping[str, str]] = {
    "stated_baseline": {
        "baseline_name": "varchar",
        "baseline_version": "bigint",
        "frozen_date": "date",
        "baseline_sha256": "varchar",
        "workload_id": "varchar",
        "gpu_instance_type": "varchar",
        "region_id": "varchar",
        "unit_measure": "varchar",
        "hours_per_unit": "double",
        "hours_low_per_unit": "double",
        "hours_high_per_unit": "double",
        "paid_ratio": "double",
    },
    "stated_adjustment": {
        "baseline_name": "varchar",
        "month_date": "date",
        "adjustment_no": "bigint",
        # The price book that baselines are priced by is in dollars, and so is what people state.
        "billing_currency": "varchar",
        "amount_usd": "decimal(20, 10)",
        "adjustment_reason": "varchar",
        "decided_date": "date",
    },
    "stated_port": {
        "port_name": "varchar",
        "workload_id": "varchar",
        "started_date": "date",
        "engineer_days": "double",
        "day_rate_usd": "decimal(20, 10)",
        "further_cost_usd": "decimal(20, 10)",
        "upkeep_usd_per_month": "decimal(20, 10)",
        "planned_gpu_cost_usd_per_run": "decimal(20, 10)",
        "planned_saving_ratio": "double",
        "runs_per_month": "double",
        "horizon_months": "bigint",
        "discount_ratio": "double",
        "gpu_price_fall_ratio": "double",
        "success_ratio": "double",
    },
    # One row per threshold.
    "stated_budget": {
        "team": "varchar",
        "billing_currency": "varchar",
        "first_month_date": "date",
        "last_month_date": "date",
        "budget_usd": "decimal(20, 10)",
        "threshold_ratio": "decimal(20, 6)",
        "threshold_usd": "decimal(20, 10)",
    },
    "stated_port_run": {"port_name": "varchar", "run_id": "varchar", "port_cost_kind": "varchar"},
}


def stated_select(name: str, decisions: Decisions) -> str:
    """The SELECT that gives one of STATED; also what a table made from it is known by."""
    columns = STATED[name]
    rows = [
        "select "
        + ", ".join(f"cast({_literal(value)} as {kind})" for value, kind in zip(row, columns.values(), strict=True))
        for row in _rows(name, decisions)
    ]
    nothing = "select " + ", ".join(f"cast(null as {kind})" for kind in columns.values()) + " where 1 = 0"
    return f"select * from ({' union all '.join(rows) or nothing}) as told ({', '.join(columns)})"


def _rows(name: str, decisions: Decisions) -> list[tuple[Any, ...]]:
    if name == "stated_baseline":
        return [
            (
                one.name, one.version, one.frozen_on, one.sha256, one.workload_id, one.gpu_instance_type, one.region_id,
                one.unit_measure, one.hours_per_unit, one.hours_low_per_unit, one.hours_high_per_unit, one.paid_ratio,
            )
            for one in decisions.frozen
        ]  # fmt: skip
    if name == "stated_adjustment":
        return [
            (one.baseline, f"{one.month}-01", number, "USD", one.amount_usd, one.reason, one.decided_on)
            for number, one in enumerate(decisions.adjustments, start=1)
        ]
    if name == "stated_port":
        return [
            (
                one.name, one.workload_id, one.started_on, one.engineer_days, one.day_rate_usd, one.further_cost_usd,
                one.upkeep_usd_per_month, one.planned_gpu_cost_usd_per_run, one.planned_saving_ratio,
                one.runs_per_month, one.horizon_months, one.discount_ratio, one.gpu_price_fall_ratio, one.success_ratio,
            )
            for one in decisions.ports
        ]  # fmt: skip
    if name == "stated_budget":
        return [
            (
                one.team, one.currency, f"{one.first_month or '0001-01'}-01", f"{one.last_month or '9999-12'}-01",
                one.amount_usd, threshold, one.amount_usd * threshold,
            )
            for one in decisions.budgets
            for threshold in one.thresholds
        ]  # fmt: skip
    return [
        (port.name, run_id, kind)
        for port in decisions.ports
        for kind, runs in (
            ("spike", port.spike_run_ids),
            ("validation", port.validation_run_ids),
            ("failed_pair", port.failed_pair_run_ids),
        )
        for run_id in runs
    ]


def _literal(value: Any) -> str:
    return "null" if value is None else "'" + str(value).replace("'", "''") + "'"
