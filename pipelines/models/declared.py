"""What people state as tables that models read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.config.decisions import Decisions
from pipelines.config.terms import Terms
from pipelines.models.declared_rows import rows_of

# Columns with their types.
STATED: Mapping[str, Mapping[str, str]] = {
    "stated_baseline": {
        "baseline_name": "varchar",
        "baseline_version": "bigint",
        "frozen_date": "date",
        "baseline_sha256": "varchar",
        "workload_id": "varchar",
        "baseline_instance_type": "varchar",
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
        "planned_baseline_cost_per_run_usd": "decimal(20, 10)",
        "planned_saving_ratio": "double",
        "runs_per_month": "double",
        "horizon_months": "bigint",
        "discount_ratio": "double",
        "baseline_price_fall_ratio": "double",
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
        "threshold_usd": "decimal(38, 10)",
    },
    "stated_port_run": {"port_name": "varchar", "run_id": "varchar", "port_cost_kind": "varchar"},
    "stated_agreement": {
        "agreement_name": "varchar",
        "billing_currency": "varchar",
        "cost_basis": "varchar",
        "credit_rule": "varchar",
        "is_marketplace_counted": "boolean",
        "shortfall_rule": "varchar",
    },
    "stated_agreement_period": {
        "agreement_name": "varchar",
        "period_no": "bigint",
        "period_started_date": "date",
        "period_ended_date": "date",
        "committed_cost_usd": "decimal(20, 10)",
    },
    "stated_credit_pool": {
        "pool_no": "bigint",
        "pool_name": "varchar",
        "billing_currency": "varchar",
        "matched_text": "varchar",
        "issued_usd": "decimal(20, 10)",
        "issued_date": "date",
        "expiry_date": "date",
    },
    "stated_commitment_rate": {
        "commitment_kind": "varchar",
        "purchase_term": "varchar",
        "payment_option": "varchar",
        "region_id": "varchar",
        "usage_type_key": "varchar",
        "paid_ratio": "double",
        "source": "varchar",
        "as_of": "date",
    },
    "stated_term_payer": {"term_kind": "varchar", "term_name": "varchar", "payer_account_id": "varchar"},
    "stated_term_service": {
        "term_kind": "varchar",
        "term_name": "varchar",
        "service": "varchar",
        "is_eligible": "boolean",
    },
    "stated_workload": {
        "workload_id": "varchar",
        "purpose": "varchar",
        "architecture": "varchar",
        "custom_cuda": "varchar",
        "neuron_supported": "varchar",
        "architecture_changed_date": "date",
        "team_is_cuda_native": "varchar",
        "runs_in_horizon": "bigint",
        "region_id": "varchar",
        "need_within_days": "bigint",
    },
    "stated_offer": {
        "instance_type": "varchar",
        "accelerator_family": "varchar",
        "region_id": "varchar",
        "purchase_option": "varchar",
        "lead_days": "bigint",
        "told_date": "date",
        "price_per_hour_usd": "decimal(20, 10)",
        "block_hours": "bigint",
    },
    "stated_lean_term": {"settling_months": "bigint", "stable_months": "bigint"},
}


def stated_select(name: str, decisions: Decisions, terms: Terms) -> str:
    """The SELECT that gives one of STATED; also what a table made from it is known by."""
    columns = STATED[name]
    rows = [
        "select "
        + ", ".join(f"cast({_literal(value)} as {kind})" for value, kind in zip(row, columns.values(), strict=True))
        for row in rows_of(name, decisions, terms)
    ]
    nothing = "select " + ", ".join(f"cast(null as {kind})" for kind in columns.values()) + " where 1 = 0"
    return f"select * from ({' union all '.join(rows) or nothing}) as told ({', '.join(columns)})"


def _literal(value: Any) -> str:
    return "null" if value is None else "'" + str(value).replace("'", "''") + "'"
