"""Tables that a build creates in its session: the configuration, the month it builds and the deliveries it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.base.sql import quoted

if TYPE_CHECKING:
    from pipelines.config.settings import Settings
    from pipelines.config.terms import Terms
    from pipelines.ingest.billing.delivery import Delivery

# source_name, billing_period, delivery_id, is_gone of every delivery that is read now, also of one without a line.
DELIVERIES = "aws_delivery"


class _Table(NamedTuple):
    """The columns of a table as `name type`, and its rows: tuples, or entries of the configuration.

    A column of an entry is its key of the same name, or the key in `name type = key`; several words are one text. An
    entry may come with columns that are other values, as (entry, values by name).
    """

    columns: str
    rows: Callable[[Settings], Iterable[Any]]


def _named_terms(terms: Terms) -> list[tuple[str, Any]]:
    return [*(("agreement", one) for one in terms.agreements), *(("credits", one) for one in terms.credits)]


def _services(terms: Terms) -> Iterator[tuple[Any, ...]]:
    for kind, one in _named_terms(terms):
        # The row without a service is the rule for services that are not named.
        yield kind, one.name, None, not one.eligible_services
        yield from ((kind, one.name, service, True) for service in one.eligible_services)
        yield from ((kind, one.name, service, False) for service in one.excluded_services)


# fmt: off
CONFIGURED = {
    "policy": _Table(
        "savings_plan_unused varchar, identity_tolerance_usd usd, target_passes bigint, shared_cost varchar, "
        "assumed_eligible varchar, has_provisional_runs boolean = provisional_runs, equal_quality_ratio double, "
        "team_spelling varchar",
        lambda settings: [settings.policy],
    ),
    # Null where it is not set. Apart from the policy, because it moves daily and few tables depend on it.
    "as_of": _Table(
        "as_of_at timestamp",
        lambda settings: [
            (f"{settings.policy.as_of.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if settings.policy.as_of else None,)
        ],
    ),
    "declared_baseline": _Table(
        "baseline_name varchar = name, baseline_version bigint = version, frozen_date date = frozen_on, "
        "baseline_sha256 varchar = sha256, workload_id varchar, baseline_instance_type varchar = gpu_instance_type, "
        "region_id varchar, unit_measure varchar, hours_per_unit double, hours_low_per_unit double, "
        "hours_high_per_unit double, baseline_paid_ratio double = paid_ratio",
        lambda settings: settings.decisions.frozen,
    ),
    "declared_baseline_run": _Table(
        "baseline_name varchar, baseline_version bigint, run_id varchar",
        lambda settings: (
            (one.name, one.version, run_id) for one in settings.decisions.frozen for run_id in one.run_ids
        ),
    ),
    # The price book that baselines are priced by is in dollars, and so are adjustments.
    "declared_adjustment": _Table(
        "baseline_name varchar, month_date date, adjustment_no bigint, billing_currency varchar, amount_usd usd, "
        "adjustment_reason varchar, decided_date date",
        lambda settings: (
            (one.baseline, f"{one.month}-01", number, "USD", one.amount_usd, one.reason, one.decided_on)
            for number, one in enumerate(settings.decisions.adjustments, start=1)
        ),
    ),
    "declared_port": _Table(
        "port_name varchar = name, workload_id varchar, started_date date = started_on, engineer_days double, "
        "day_rate_usd usd, further_cost_usd usd, upkeep_usd_per_month usd, "
        "planned_baseline_cost_per_run_usd usd = planned_gpu_cost_usd_per_run, planned_saving_ratio double, "
        "runs_per_month double, horizon_months bigint, discount_ratio double, "
        "baseline_price_fall_ratio double = gpu_price_fall_ratio, success_ratio double",
        lambda settings: settings.decisions.ports,
    ),
    "declared_port_run": _Table(
        "port_name varchar, run_id varchar, port_cost_kind varchar",
        lambda settings: (
            (port.name, run_id, kind)
            for port in settings.decisions.ports for kind in ("pilot", "validation", "failed_pair")
            for run_id in getattr(port, f"{kind}_run_ids")
        ),
    ),
    # The holder is an account or a role; its days do not overlap.
    "declared_team": _Table(
        "holder varchar, first_date date, last_date date, team varchar", lambda settings: settings.teams.assigned
    ),
    # One row per threshold.
    "declared_budget": _Table(
        "team varchar, billing_currency varchar, first_month_date date, last_month_date date, budget_usd usd, "
        "threshold_ratio decimal(20,6), threshold_usd decimal(38,10)",
        lambda settings: (
            (one.team, one.currency, f"{one.first_month or '0001-01'}-01", f"{one.last_month or '9999-12'}-01",
             one.amount_usd, part, one.amount_usd * part)
            for one in settings.decisions.budgets for part in one.thresholds
        ),
    ),
    "declared_workload": _Table(
        "workload_id varchar, purpose varchar, architecture varchar, custom_cuda varchar, neuron_supported varchar, "
        "architecture_changed_date date = architecture_changed_on, team_is_cuda_native varchar, "
        "runs_in_horizon bigint, region_id varchar, need_within_days bigint, delay_usd_per_day usd",
        lambda settings: (
            (one, {"neuron_supported": None if one.neuron_supported == "unknown" else one.neuron_supported,
                   "team_is_cuda_native": {True: "yes", False: "no", None: None}[one.team_is_cuda_native]})
            for one in settings.decisions.workloads
        ),
    ),
    "declared_offer": _Table(
        "instance_type varchar, accelerator_family varchar, region_id varchar, purchase_option varchar, "
        "lead_days bigint, reported_date date = reported_on, price_per_hour_usd usd, block_hours bigint",
        lambda settings: (
            (one, {"accelerator_family": settings.accelerator_families.get(one.instance_type.removeprefix("ml."))})
            for one in settings.decisions.offers
        ),
    ),
    "declared_serving": _Table(
        "serving_no bigint, model varchar, candidate_model varchar, is_capacity boolean, instance_type varchar, "
        "accelerator_family varchar, region_id varchar, usd_per_hour usd, tokens_per_second double, "
        "output_ratio double, input_usd usd, cache_read_usd usd, cache_write_usd usd, output_usd usd, source varchar, "
        "is_same_quality boolean = same_quality, meets_latency boolean, port_cost_usd usd, upkeep_usd_per_month usd, "
        "horizon_months bigint",
        lambda settings: (
            (one, {"serving_no": number, "candidate_model": one.candidate_model or one.model, "accelerator_family":
                   settings.accelerator_families.get((one.instance_type or "").removeprefix("ml."))})
            for number, one in enumerate(settings.decisions.serving, start=1)
        ),
    ),
    "declared_maturity": _Table(
        "settling_months bigint, stable_months bigint", lambda settings: [settings.decisions.maturity]
    ),
    "declared_agreement": _Table(
        "agreement_name varchar = name, billing_currency varchar = currency, cost_basis varchar = counts, "
        "credit_rule varchar = credits, is_marketplace_counted boolean = marketplace, "
        "shortfall_rule varchar = shortfall",
        lambda settings: settings.terms.agreements,
    ),
    "declared_agreement_period": _Table(
        "agreement_name varchar, period_no bigint, period_started_date date, period_ended_date date, "
        "committed_cost_usd usd",
        lambda settings: (
            (one.name, number, period.started_on, period.ended_on, period.commitment_usd)
            for one in settings.terms.agreements for number, period in enumerate(one.periods, start=1)
        ),
    ),
    "declared_credit_pool": _Table(
        "pool_no bigint, pool_name varchar, billing_currency varchar, matched_text varchar, issued_usd usd, "
        "issued_date date, expiry_date date",
        lambda settings: (
            (number, one.name, one.currency, one.matches, one.issued_usd, one.issued_on, one.expires_on)
            for number, one in enumerate(settings.terms.credits, start=1)
        ),
    ),
    "declared_commitment_rate": _Table(
        "commitment_kind varchar, purchase_term varchar, payment_option varchar, region_id varchar, "
        "usage_type_key varchar, paid_ratio double, source varchar, as_of date",
        lambda settings: (
            (one.commitment_kind, one.purchase_term, one.payment_option, one.region, key, ratio, one.source, one.as_of)
            for one in settings.terms.rates for key, ratio in one.paid_ratio.items()
        ),
    ),
    # A row without a payer stands for all of them.
    "declared_term_payer": _Table(
        "term_kind varchar, term_name varchar, payer_account_id varchar",
        lambda settings: (
            (kind, one.name, payer)
            for kind, one in _named_terms(settings.terms) for payer in one.payer_account_ids or (None,)
        ),
    ),
    "declared_term_service": _Table(
        "term_kind varchar, term_name varchar, service varchar, is_eligible boolean",
        lambda settings: _services(settings.terms),
    ),
}
# fmt: on
# billing_period, started_at, ended_at of the month being built.
THIS_MONTH = "this_month"
CREATED = frozenset({THIS_MONTH, DELIVERIES, *CONFIGURED})


def configured_select(name: str, settings: Settings) -> str:
    """The SELECT of one of CONFIGURED; part of the fingerprint of the tables made from it."""
    table = CONFIGURED[name]
    return _select(table.columns, table.rows(settings))


def month_select(period: str | None) -> str:
    """The SELECT of THIS_MONTH (YYYY-MM)."""
    if period is None:
        raise ValueError(f"a model that reads {THIS_MONTH} must be replaced by month")
    first = date.fromisoformat(f"{period}-01")
    after = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    return _select("billing_period varchar, started_at timestamp, ended_at timestamp", [(period, first, after)])


def delivery_select(deliveries: Sequence[Delivery]) -> str:
    """The SELECT of DELIVERIES."""
    columns = "source_name varchar = source, billing_period varchar, delivery_id varchar, is_gone boolean"
    return _select(columns, deliveries)


def _select(columns: str, rows: Iterable[Any]) -> str:
    described = [column.partition(" = ")[::2] for column in columns.split(", ")]
    typed = [(*column.split(), key or column.split()[0]) for column, key in described]
    kinds = ["decimal(20, 10)" if kind == "usd" else kind for _, kind, _ in typed]

    def one(row: Any) -> str:
        if isinstance(row, tuple) and isinstance(row[-1], dict):
            values = [row[1][name] if name in row[1] else attrgetter(key)(row[0]) for name, _, key in typed]
        else:
            values = row if isinstance(row, tuple | list) else [attrgetter(key)(row) for _, _, key in typed]
        texts = (" ".join(value) if isinstance(value, tuple) else value for value in values)
        literals = ("null" if text is None else quoted(str(text)) for text in texts)
        return f"({', '.join(f'cast({v} as {kind})' for v, kind in zip(literals, kinds, strict=True))})"

    # A list, not a union: each branch of a union is an operator of the plan.
    made = ", ".join(map(one, rows))
    listed = f"(values {made or one([None] * len(kinds))}) as created ({', '.join(name for name, _, _ in typed)})"
    return f"select * from {listed}{'' if made else ' where 1 = 0'}"
