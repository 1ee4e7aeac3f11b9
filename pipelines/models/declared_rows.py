"""Rows of the tables that people's statements give, in the order of their columns (`stated.tables`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pipelines.config.decisions import Decisions
from pipelines.config.terms import Term, Terms

Rows = Iterable[tuple[Any, ...]]


def rows_of(name: str, decisions: Decisions, terms: Terms) -> Rows:
    """The rows of one of `STATED`."""
    return _OF_DECISIONS[name](decisions) if name in _OF_DECISIONS else _OF_TERMS[name](terms)


# fmt: off
def _baselines(told: Decisions) -> Rows:
    for one in told.frozen:
        yield (
            one.name, one.version, one.frozen_on, one.sha256, one.workload_id, one.gpu_instance_type, one.region_id,
            one.unit_measure, one.hours_per_unit, one.hours_low_per_unit, one.hours_high_per_unit, one.paid_ratio,
        )


def _adjustments(told: Decisions) -> Rows:
    for number, one in enumerate(told.adjustments, start=1):
        yield one.baseline, f"{one.month}-01", number, "USD", one.amount_usd, one.reason, one.decided_on


def _ports(told: Decisions) -> Rows:
    for one in told.ports:
        yield (
            one.name, one.workload_id, one.started_on, one.engineer_days, one.day_rate_usd, one.further_cost_usd,
            one.upkeep_usd_per_month, one.planned_gpu_cost_usd_per_run, one.planned_saving_ratio,
            one.runs_per_month, one.horizon_months, one.discount_ratio, one.gpu_price_fall_ratio, one.success_ratio,
        )


def _port_runs(told: Decisions) -> Rows:
    for port in told.ports:
        yield from ((port.name, run_id, "pilot") for run_id in port.spike_run_ids)
        yield from ((port.name, run_id, "validation") for run_id in port.validation_run_ids)
        yield from ((port.name, run_id, "failed_pair") for run_id in port.failed_pair_run_ids)


def _budgets(told: Decisions) -> Rows:
    for one in told.budgets:
        first, last = f"{one.first_month or '0001-01'}-01", f"{one.last_month or '9999-12'}-01"
        for part in one.thresholds:
            yield one.team, one.currency, first, last, one.amount_usd, part, one.amount_usd * part


def _workloads(told: Decisions) -> Rows:
    for one in told.workloads:
        yield (
            one.workload_id, one.purpose, one.architecture, one.custom_cuda,
            None if one.neuron_supported == "unknown" else one.neuron_supported, one.architecture_changed_on,
            None if one.team_is_cuda_native is None else "yes" if one.team_is_cuda_native else "no",
            one.runs_in_horizon, one.region_id, one.need_within_days,
        )


def _offers(told: Decisions) -> Rows:
    for one in told.offers:
        yield (
            one.instance_type, one.accelerator_family, one.region_id, one.purchase_option, one.lead_days,
            one.told_on, one.price_per_hour_usd, one.block_hours,
        )


def _agreements(told: Terms) -> Rows:
    for one in told.agreements:
        yield one.name, one.currency, one.counts, one.credits, one.marketplace, one.shortfall


def _periods(told: Terms) -> Rows:
    for one in told.agreements:
        for number, period in enumerate(one.periods, start=1):
            yield one.name, number, period.started_on, period.ended_on, period.commitment_usd


def _credit_pools(told: Terms) -> Rows:
    for number, one in enumerate(told.credits, start=1):
        yield number, one.name, one.currency, one.matches, one.issued_usd, one.issued_on, one.expires_on


def _rates(told: Terms) -> Rows:
    for one in told.rates:
        for key, ratio in one.paid_ratio.items():
            yield (
                one.commitment_kind, one.purchase_term, one.payment_option, one.region, key, ratio, one.source,
                one.as_of,
            )


def _payers(told: Terms) -> Rows:
    for kind, one in _named(told):
        # No payer named: all of them.
        yield from ((kind, one.name, payer) for payer in one.payer_account_ids or (None,))


def _services(told: Terms) -> Rows:
    for kind, one in _named(told):
        # A row without a service says how those that are not named count.
        yield kind, one.name, None, not one.eligible_services
        yield from ((kind, one.name, service, True) for service in one.eligible_services)
        yield from ((kind, one.name, service, False) for service in one.excluded_services)


def _named(told: Terms) -> Iterator[tuple[str, Term]]:
    yield from (("agreement", one) for one in told.agreements)
    yield from (("credits", one) for one in told.credits)
# fmt: on


_OF_DECISIONS: Mapping[str, Callable[[Decisions], Rows]] = {
    "stated_baseline": _baselines,
    "stated_adjustment": _adjustments,
    "stated_port": _ports,
    "stated_port_run": _port_runs,
    "stated_budget": _budgets,
    "stated_workload": _workloads,
    "stated_offer": _offers,
    "stated_lean_term": lambda told: [(told.leans.settling_months, told.leans.stable_months)],
}
_OF_TERMS: Mapping[str, Callable[[Terms], Rows]] = {
    "stated_agreement": _agreements,
    "stated_agreement_period": _periods,
    "stated_credit_pool": _credit_pools,
    "stated_commitment_rate": _rates,
    "stated_term_payer": _payers,
    "stated_term_service": _services,
}
