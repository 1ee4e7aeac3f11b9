"""The `[decisions]` and `[terms]` of the configuration as tables that models read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.base.sql import quoted
from pipelines.config.decisions import Decisions
from pipelines.config.terms import Term, Terms


@dataclass(frozen=True)
class _Table:
    """A declared table: its columns with their types, and its rows in the order of the columns."""

    columns: Mapping[str, str]
    rows: Callable[[Decisions, Terms], Iterable[tuple[Any, ...]]]


def _table(columns: str, rows: Callable[[Decisions, Terms], Iterable[tuple[Any, ...]]]) -> _Table:
    pairs = (column.split() for column in columns.split(", "))
    return _Table({name: "decimal(20, 10)" if kind == "usd" else kind for name, kind in pairs}, rows)


def _port_runs(decisions: Decisions) -> Iterator[tuple[Any, ...]]:
    for port in decisions.ports:
        for kind in ("pilot", "validation", "failed_pair"):
            yield from ((port.name, run_id, kind) for run_id in getattr(port, f"{kind}_run_ids"))


def _yes_or_no(answer: bool | None) -> str | None:
    return None if answer is None else "yes" if answer else "no"


def _named_terms(terms: Terms) -> list[tuple[str, Term]]:
    return [*(("agreement", one) for one in terms.agreements), *(("credits", one) for one in terms.credits)]


def _services(terms: Terms) -> Iterator[tuple[Any, ...]]:
    for kind, one in _named_terms(terms):
        # The row without a service is the rule for services that are not named.
        yield kind, one.name, None, not one.eligible_services
        yield from ((kind, one.name, service, True) for service in one.eligible_services)
        yield from ((kind, one.name, service, False) for service in one.excluded_services)


# fmt: off
DECLARED_TABLES: Mapping[str, _Table] = {
    "declared_baseline": _table(
        "baseline_name varchar, baseline_version bigint, frozen_date date, baseline_sha256 varchar, "
        "workload_id varchar, baseline_instance_type varchar, region_id varchar, unit_measure varchar, "
        "hours_per_unit double, hours_low_per_unit double, hours_high_per_unit double, paid_ratio double",
        lambda decisions, _: (
            (one.name, one.version, one.frozen_on, one.sha256, one.workload_id, one.gpu_instance_type, one.region_id,
             one.unit_measure, one.hours_per_unit, one.hours_low_per_unit, one.hours_high_per_unit, one.paid_ratio)
            for one in decisions.frozen
        ),
    ),
    # The price book that baselines are priced by is in dollars, and so are adjustments.
    "declared_adjustment": _table(
        "baseline_name varchar, month_date date, adjustment_no bigint, billing_currency varchar, amount_usd usd, "
        "adjustment_reason varchar, decided_date date",
        lambda decisions, _: (
            (one.baseline, f"{one.month}-01", number, "USD", one.amount_usd, one.reason, one.decided_on)
            for number, one in enumerate(decisions.adjustments, start=1)
        ),
    ),
    "declared_port": _table(
        "port_name varchar, workload_id varchar, started_date date, engineer_days double, day_rate_usd usd, "
        "further_cost_usd usd, upkeep_usd_per_month usd, planned_baseline_cost_per_run_usd usd, "
        "planned_saving_ratio double, runs_per_month double, horizon_months bigint, discount_ratio double, "
        "baseline_price_fall_ratio double, success_ratio double",
        lambda decisions, _: (
            (one.name, one.workload_id, one.started_on, one.engineer_days, one.day_rate_usd, one.further_cost_usd,
             one.upkeep_usd_per_month, one.planned_gpu_cost_usd_per_run, one.planned_saving_ratio, one.runs_per_month,
             one.horizon_months, one.discount_ratio, one.gpu_price_fall_ratio, one.success_ratio)
            for one in decisions.ports
        ),
    ),
    "declared_port_run": _table(
        "port_name varchar, run_id varchar, port_cost_kind varchar", lambda decisions, _: _port_runs(decisions)
    ),
    # One row per threshold.
    "declared_budget": _table(
        "team varchar, billing_currency varchar, first_month_date date, last_month_date date, budget_usd usd, "
        "threshold_ratio decimal(20,6), threshold_usd decimal(38,10)",
        lambda decisions, _: (
            (one.team, one.currency, f"{one.first_month or '0001-01'}-01", f"{one.last_month or '9999-12'}-01",
             one.amount_usd, part, one.amount_usd * part)
            for one in decisions.budgets for part in one.thresholds
        ),
    ),
    "declared_workload": _table(
        "workload_id varchar, purpose varchar, architecture varchar, custom_cuda varchar, neuron_supported varchar, "
        "architecture_changed_date date, team_is_cuda_native varchar, runs_in_horizon bigint, region_id varchar, "
        "need_within_days bigint",
        lambda decisions, _: (
            (one.workload_id, one.purpose, one.architecture, one.custom_cuda,
             None if one.neuron_supported == "unknown" else one.neuron_supported, one.architecture_changed_on,
             _yes_or_no(one.team_is_cuda_native), one.runs_in_horizon, one.region_id, one.need_within_days)
            for one in decisions.workloads
        ),
    ),
    "declared_offer": _table(
        "instance_type varchar, accelerator_family varchar, region_id varchar, purchase_option varchar, "
        "lead_days bigint, reported_date date, price_per_hour_usd usd, block_hours bigint",
        lambda decisions, _: (
            (one.instance_type, one.accelerator_family, one.region_id, one.purchase_option, one.lead_days,
             one.reported_on, one.price_per_hour_usd, one.block_hours)
            for one in decisions.offers
        ),
    ),
    "declared_maturity": _table(
        "settling_months bigint, stable_months bigint",
        lambda decisions, _: [(decisions.maturity.settling_months, decisions.maturity.stable_months)],
    ),
    "declared_agreement": _table(
        "agreement_name varchar, billing_currency varchar, cost_basis varchar, credit_rule varchar, "
        "is_marketplace_counted boolean, shortfall_rule varchar",
        lambda _, terms: (
            (one.name, one.currency, one.counts, one.credits, one.marketplace, one.shortfall)
            for one in terms.agreements
        ),
    ),
    "declared_agreement_period": _table(
        "agreement_name varchar, period_no bigint, period_started_date date, period_ended_date date, "
        "committed_cost_usd usd",
        lambda _, terms: (
            (one.name, number, period.started_on, period.ended_on, period.commitment_usd)
            for one in terms.agreements for number, period in enumerate(one.periods, start=1)
        ),
    ),
    "declared_credit_pool": _table(
        "pool_no bigint, pool_name varchar, billing_currency varchar, matched_text varchar, issued_usd usd, "
        "issued_date date, expiry_date date",
        lambda _, terms: (
            (number, one.name, one.currency, one.matches, one.issued_usd, one.issued_on, one.expires_on)
            for number, one in enumerate(terms.credits, start=1)
        ),
    ),
    "declared_commitment_rate": _table(
        "commitment_kind varchar, purchase_term varchar, payment_option varchar, region_id varchar, "
        "usage_type_key varchar, paid_ratio double, source varchar, as_of date",
        lambda _, terms: (
            (one.commitment_kind, one.purchase_term, one.payment_option, one.region, key, ratio, one.source, one.as_of)
            for one in terms.rates for key, ratio in one.paid_ratio.items()
        ),
    ),
    # A row without a payer stands for all of them.
    "declared_term_payer": _table(
        "term_kind varchar, term_name varchar, payer_account_id varchar",
        lambda _, terms: (
            (kind, one.name, payer) for kind, one in _named_terms(terms) for payer in one.payer_account_ids or (None,)
        ),
    ),
    "declared_term_service": _table(
        "term_kind varchar, term_name varchar, service varchar, is_eligible boolean",
        lambda _, terms: _services(terms),
    ),
}
# fmt: on


def declared_select(name: str, decisions: Decisions, terms: Terms) -> str:
    """The SELECT of one of DECLARED_TABLES; part of the fingerprint of the tables made from it."""
    table = DECLARED_TABLES[name]
    kinds = list(table.columns.values())

    def one(row: Iterable[Any]) -> str:
        cells = (f"cast({_literal(value)} as {kind})" for value, kind in zip(row, kinds, strict=True))
        return f"select {', '.join(cells)}"

    rows = " union all ".join(map(one, table.rows(decisions, terms))) or f"{one([None] * len(kinds))} where 1 = 0"
    return f"select * from ({rows}) as declared ({', '.join(table.columns)})"


def _literal(value: Any) -> str:
    return "null" if value is None else quoted(str(value))
