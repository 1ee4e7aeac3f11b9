"""Marts of commitments written by hand, for tests of their report."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from support.report_marts import Marts, charge, invoice, run

JULY = date(2026, 7, 1)
PAYER = {"payer_account_id": "111122223333", "billing_currency": "USD"}
PLAN = "arn:aws:savingsplans::111122223333:savingsplan/plan-1"


def use(day: int, hour: int, family: str, kind: str, listed: str, paid: str, **other: Any) -> dict[str, Any]:
    """An hour of use that `kind` covered at `paid`, or that ran on demand at it for none."""
    cost, is_open = Decimal(listed), kind == "none"
    return {
        **PAYER,
        "billing_period": "2026-07",
        "usage_date": date(2026, 7, day),
        "hour_started_at": datetime(2026, 7, day, hour),
        "region_id": "us-west-2",
        "accelerator_family": family,
        "commitment_kind": kind,
        "commitment_id": "" if is_open else PLAN,
        "eligible_list_cost_usd": cost,
        "covered_list_cost_usd": Decimal(0) if is_open else cost,
        "used_cost_usd": Decimal(0) if is_open else Decimal(paid),
        "on_demand_cost_usd": Decimal(paid) if is_open else Decimal(0),
        "eligible_hours": Decimal(1),
        "covered_hours": Decimal(0 if is_open else 1),
        "unpriced_line_count": 0,
    } | other


def by_account(family: str, listed: str, *, covered: str, on_demand: str, **other: Any) -> dict[str, Any]:
    """A day's use of an account, as the same hours record it."""
    return {
        **PAYER,
        "usage_date": JULY,
        "account_id": "444455556666",
        "region_id": "us-west-2",
        "accelerator_family": family,
        "is_eligible": True,
        "eligible_list_cost_usd": Decimal(listed),
        "covered_list_cost_usd": Decimal(covered),
        "on_demand_cost_usd": Decimal(on_demand),
        "unpriced_line_count": 0,
    } | other


def held(commitment: str, kind: str, cost: str, used: str, **other: Any) -> dict[str, Any]:
    return {
        **PAYER,
        "billing_month": JULY,
        "commitment_id": commitment,
        "commitment_kind": kind,
        "account_id": "444455556666",
        "commitment_cost_usd": Decimal(cost),
        "used_cost_usd": Decimal(used),
        "unused_cost_usd": Decimal(cost) - Decimal(used),
        "utilization_ratio": round(Decimal(used) / Decimal(cost), 6),
        "net_savings_usd": Decimal(3),
        "break_even_utilization_ratio": Decimal("0.65"),
        "ended_at": datetime(2027, 2, 1),
        "days_to_expiry": 184,
        "is_expired": False,
    } | other


def shares(commitment: str, kind: str, cost: str, used: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            **PAYER,
            "billing_month": JULY,
            "commitment_id": commitment,
            "commitment_kind": kind,
            "accelerator_family": family,
            "commitment_cost_usd": Decimal(cost),
            "used_cost_usd": Decimal(used.get(family, "0")),
        }
        for family in ("gpu", "trainium", "other")
    ]


def advised(kind: str, **other: Any) -> dict[str, Any]:
    return {
        **PAYER,
        "commitment_kind": kind,
        "purchase_term": "1yr",
        "payment_option": "No Upfront",
        "region_id": "",
        "instance_family": "",
        "week_count": 13,
        "commitment_per_hour_usd": 0.0,
        "advice": "commit nothing",
        "advice_reason": "what comes now and then is no baseline",
    } | {name: Decimal(str(value)) if isinstance(value, float) else value for name, value in other.items()}


def example() -> Marts:
    """100 of eligible use: GPU 22 covered and 44 not, Trainium 21.50 not, everything else 12.50 covered."""
    reserved = "arn:aws:ec2:us-east-1:444455556666:reserved-instances/ri-1"
    return {
        "mart_run_cost": [run("gpu-1", "gpu", "p5.48xlarge", "50")],
        "mart_cost_ledger_daily": [
            charge(date(2026, 7, 1), "commitment_unused", "7.60"),
            charge(date(2026, 7, 1), "capacity_unused", "5"),
        ],
        "detail_commitment_use_hourly": [
            use(1, 10, "gpu", "compute_savings_plan", "22", "14"),
            use(1, 10, "gpu", "none", "44", "43"),
            use(1, 11, "trainium", "none", "21.50", "21.50"),
            use(2, 10, "other", "reserved_instance", "12.50", "8"),
        ],
        "detail_commitment_use_daily": [
            by_account("gpu", "22", covered="22", on_demand="0"),
            by_account("gpu", "44", covered="0", on_demand="43"),
            by_account("trainium", "21.50", covered="0", on_demand="21.50"),
            by_account("other", "12.50", covered="12.50", on_demand="0", account_id="777788889999"),
        ],
        "mart_commitment_coverage_daily": [
            {
                **PAYER,
                "usage_date": JULY,
                "commitment_kind": "compute_savings_plan",
                "accelerator_family": "gpu",
                "eligible_list_cost_usd": Decimal(66),
                "covered_list_cost_usd": Decimal(22),
                "other_covered_list_cost_usd": Decimal(34),
                "unpriced_line_count": 0,
            }
        ],
        "mart_commitment_utilization_monthly": [
            held(PLAN, "compute_savings_plan", "20", "14"),
            held(reserved, "reserved_instance", "10", "8", lost_savings_reason="nothing used it"),
        ],
        "detail_provisional_run": [],
        "detail_commitment_family_monthly": [
            *shares(PLAN, "compute_savings_plan", "20", {"gpu": "14"}),
            *shares(reserved, "reserved_instance", "10", {"other": "8"}),
        ],
        "mart_effective_savings_rate_monthly": [
            {
                **PAYER,
                "billing_month": JULY,
                "savings_scope": "classic",
                "scope_label": "EC2, Fargate and Lambda, no Spot, before discounts",
                "list_cost_usd": Decimal(100),
                "usage_cost_usd": Decimal(95),
                "unused_cost_usd": Decimal(8),
                "net_savings_usd": Decimal(-3),
                "effective_savings_rate_ratio": Decimal("-0.03"),
                "lost_savings_reason": "unused commitments cost more than the rates save",
                "unpriced_cost_usd": Decimal("40.80"),
            }
        ],
        "mart_capacity_utilization_daily": [],
        "mart_commitment_recommendation": [advised("compute_savings_plan")],
        "detail_commitment_stranding": [
            {
                **PAYER,
                "commitment_id": PLAN,
                "commitment_kind": "compute_savings_plan",
                "ended_at": datetime(2027, 2, 1),
                "committed_to_expiry_usd": Decimal(900),
                "unused_to_expiry_usd": Decimal(270),
                "stranded_cost_usd": Decimal(630),
                "stranded_after_other_usage_usd": Decimal(400),
            }
        ],
        "detail_commitment_reconciliation": [],
        "mart_invoice_reconciliation_monthly": [invoice(JULY, "1", "90", "90", "reconciled")],
    }
