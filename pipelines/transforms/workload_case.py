"""The inputs of each workload's recommendation, from the bill, its runs, the comparison and declarations."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from math import inf
from typing import Any

import polars as pl

from pipelines.analysis import recommendation
from pipelines.analysis.break_even import runs_to_break_even
from pipelines.analysis.comparison import SIDES
from pipelines.analysis.recommendation import weigh_measured
from pipelines.transforms import Frames, Row, number, port_case
from pipelines.transforms.run_pair import FAMILY_PAIRS

INPUTS = (
    *port_case.INPUTS,
    "declared_workload",
    "stg_aws__capacity_offer",
    "declared_maturity",
    "fct_ledger",
    "ref_recommendation_rule",
)
# What the runs of each workload spent, by day, family of the run, machine and way it was bought, and the newest day of
# any usage on the bill of their payer; unknown where it lacks a part of such a run that ended before: what comes after
# is of a later month. It is unknown too of machines that cost nothing: on a dedicated host, the host is what costs.
QUERIES = {
    "fct_ledger": """
        select run.workload_id, ledger.usage_date, bill.newest_date, ledger.billing_currency, run.accelerator_family,
            coalesce(ledger.instance_type, '') as instance_type, coalesce(ledger.market, '') as market,
            sum(ledger.accelerator_hours) as accelerator_hours, case when count(ledger.effective_cost_usd) = count(*)
                and count(case when cast(run.ended_at as date) < bill.newest_date then run.unbilled_hours end) = 0
                and count(case when cost.accelerator_hours > 0 and cost.effective_cost_usd = cost.attached_cost_usd
                    then 1 end) = 0
                then sum(ledger.effective_cost_usd) end as effective_cost_usd
        from fct_ledger as ledger
        join fct_run as run on run.run_id = ledger.run_id
        join fct_run_cost as cost on cost.run_id = ledger.run_id
        join (
            select payer_account_id, billing_currency, coalesce(max(usage_date) filter (where charge_category = 'Usage'
                    and piece_kind <> 'block_hour'), max(usage_date)) as newest_date
            from fct_ledger group by 1, 2) as bill
            on bill.payer_account_id = ledger.payer_account_id and bill.billing_currency = ledger.billing_currency
        where ledger.bucket = 'run'
        group by 1, 2, 3, 4, 5, 6, 7
    """
}
FAMILIES = FAMILY_PAIRS[0]
# A port's, where none is declared.
_HORIZON_MONTHS = 12
# A month's money is measured over this many days of the bill.
WINDOW_DAYS = 90
_TRAINS = ("pretrain", "finetune")


@dataclass(frozen=True)
class WorkloadCase:
    """A workload in one currency; `pair` is its comparison with the most runs on the effective basis."""

    workload_id: str
    currency: str
    inputs: recommendation.Inputs
    runs: pl.DataFrame
    spend: pl.DataFrame
    declared: Row
    pair: Row | None
    port: port_case.PortCase | None
    monthly_cost: float | None
    rules: list[recommendation.Rule]

    @cached_property
    def findings(self) -> list[recommendation.Finding]:
        """Every rule applied to it, in the order in which they decide."""
        stops, scenarios = (
            [weigh_measured(rule, self.inputs, self.pair) for rule in self.rules if rule.kind == kind]
            for kind in ("hard_stop", "scenario")
        )
        unpaid = recommendation.repayment(self.inputs)
        case = self.port and self.port.case
        npv, unbilled = case.expected if case else None, self.port.gaps if self.port else ()
        measured = recommendation.arithmetic(self.pair, npv, self.inputs, unbilled)
        return [*stops, *([unpaid] if unpaid else []), measured, *scenarios]

    @property
    def decision(self) -> recommendation.Decision:
        return recommendation.decide(self.findings, {rule.name: rule.situation for rule in self.rules})


def workload_cases(table: Frames) -> Iterator[WorkloadCase]:
    """Every workload with a billed run on GPU or Trainium, by name and currency; `table` has the frames of INPUTS."""
    rules = recommendation.rules_of(table["ref_recommendation_rule"].to_dicts())
    runs = table["fct_run"].filter(pl.col("accelerator_family").is_in(FAMILIES), pl.col("is_billed"))
    # A bill that names no currency leaves nothing to sum or to rank.
    runs = runs.drop_nulls("billing_currency").sort("workload_id", "billing_currency", "run_id")
    # Of several the newest: what older ones cost is spent.
    by_start = sorted(port_case.port_cases(table), key=lambda found: found.port["started_date"])
    ports = {port.port["workload_id"]: port for port in by_start}
    units, workloads = port_case.compared_units(table), table["declared_workload"]
    jobs = table["detail_run_job"].select("run_id", "job_id")
    by_workload = {row["workload_id"]: row for row in workloads.iter_rows(named=True)}
    spend = table["fct_ledger"].with_columns(pl.col("effective_cost_usd").cast(pl.Float64))
    terms = table["declared_maturity"].row(0, named=True)
    for key, own in runs.group_by(["workload_id", "billing_currency"], maintain_order=True):
        workload_id, currency = map(str, key)
        declared = by_workload.get(workload_id, dict.fromkeys(workloads.columns))
        pair = port_case.best_pair(table["mart_silicon_comparison"], workload_id, currency)
        port = ports.get(workload_id) if currency == port_case.CURRENCY else None
        billed = spend.filter(billing_currency=currency)
        paid = billed.filter(workload_id=workload_id)
        first, newest = billed["usage_date"].min(), paid["newest_date"].max()
        here = in_region(table["stg_aws__capacity_offer"], declared)
        soonest = [here.filter(accelerator_family=family)["lead_days"].min() for family in FAMILIES]
        inputs = {
            **terms,
            **_declared(declared, own, newest),
            **{f"{side}_lead_days": number(days) for side, days in zip(SIDES, soonest, strict=True)},
            **_arithmetic(
                declared,
                own.join(jobs, on="run_id", how="left"),
                paid,
                pair,
                port,
                units,
                port_case.newest_usage(table, currency),
            ),
            "monthly_cost_trend_usd": _trend(paid, first, newest),
        }
        monthly = monthly_cost(paid, paid, newest)
        yield WorkloadCase(workload_id, currency, inputs, own, paid, declared, pair, port, monthly, rules)


def _declared(declared: Row, runs: pl.DataFrame, newest: Any) -> Row:
    """Declared inputs, where the runs themselves do not show them."""
    purposes = set(runs["purpose"].drop_nulls()) & set(_TRAINS)
    # What completed on Trainium needs nothing that Neuron lacks.
    has_run = bool(runs.filter(accelerator_family="trainium", status="completed").height)
    changed = declared["architecture_changed_date"]
    return {
        "purpose": purposes.pop() if len(purposes) == 1 else declared["purpose"],
        "architecture": declared["architecture"],
        "custom_cuda": declared["custom_cuda"] or ("some" if has_run else None),
        "neuron_supported": declared["neuron_supported"] or ("yes" if has_run else None),
        "months_since_architecture_change": (newest - changed).days / port_case.MONTH_DAYS if changed else None,
        "team_is_cuda_native": declared["team_is_cuda_native"],
        "need_within_days": inf if declared["need_within_days"] is None else declared["need_within_days"],
    }


def in_region(offers: pl.DataFrame, declared: Mapping[str, Any]) -> pl.DataFrame:
    """The offers in the region of a declared workload; all where it has none."""
    return offers.filter(region_id=declared["region_id"]) if declared["region_id"] else offers


def _arithmetic(
    declared: Row,
    runs: pl.DataFrame,
    spend: pl.DataFrame,
    pair: Row | None,
    port: port_case.PortCase | None,
    units: pl.DataFrame,
    newest: Any,
) -> dict[str, float | None]:
    months = port.port["horizon_months"] if port else _HORIZON_MONTHS
    cadence = port.runs_per_month if port else port_case.runs_per_month(runs, newest)
    saving = cost = needed = None
    if port is not None:
        cost = port.port_cost
        saving = None if port.baseline is None or port.candidate is None else port.baseline - port.candidate
    elif pair is not None and pair["claims"]:
        done = port_case.units_of(pair, units)
        saving = done and float(pair["baseline_unit_cost_usd"]) * done * float(pair["saving_ratio"])
    if saving is not None and (cost is not None or saving <= 0):
        # What saves nothing pays nothing back, whatever it cost.
        found = runs_to_break_even(1.0 if cost is None else cost, saving)
        needed = inf if found is None else float(found)
    planned = declared["runs_in_horizon"]
    gpu, gpu_usd = runs.filter(accelerator_family="gpu"), _known_usd(spend.filter(accelerator_family="gpu"))
    completed = gpu.filter(status="completed").select(pl.coalesce("job_id", "run_id")).n_unique()
    return {
        # Failed runs are part of what a completed one costs.
        "baseline_run_cost_usd": gpu_usd / completed
        if completed and gpu_usd is not None and not gpu["unbilled_hours"].count()
        else None,
        "saving_per_run_usd": saving,
        "port_cost_usd": cost,
        "break_even_runs": needed,
        "runs_in_horizon": float(planned) if planned is not None else cadence and cadence * months,
        "payback_months": None if needed is None or cadence is None else needed / cadence if cadence else inf,
        "horizon_months": float(months),
    }


def _trend(spend: pl.DataFrame, first: Any, newest: Any) -> float | None:
    """Cost of the last whole month less that of the month before; None before two are whole or where one is unknown."""
    if first is None or newest is None:
        return None
    end: date = newest + timedelta(days=1)
    last = (end.replace(day=1) - timedelta(days=1)).replace(day=1)
    before = (last - timedelta(days=1)).replace(day=1)
    if first.replace(day=1) > before:
        return None
    of_month = pl.col("usage_date").dt.truncate("1mo")
    costs = [_known_usd(spend.filter(of_month == month)) for month in (last, before)]
    return None if costs[0] is None or costs[1] is None else costs[0] - costs[1]


def _known_usd(spend: pl.DataFrame) -> float | None:
    """Its effective cost; None where that of a part is unknown."""
    return None if spend["effective_cost_usd"].null_count() else float(spend["effective_cost_usd"].sum())


def monthly_cost(part: pl.DataFrame, spend: pl.DataFrame, newest: Any) -> float | None:
    """USD a month of `part` over the last 90 days of the ledger, or since the first of `spend`, a month at least.

    None where the cost of any of it is unknown.
    """
    if not spend.height:
        return 0.0
    recent = part.filter(pl.col("usage_date") > newest - timedelta(days=WINDOW_DAYS))
    first: Any = spend["usage_date"].min()
    days = min(max((newest - first).days + 1, port_case.MONTH_DAYS), WINDOW_DAYS)
    ordered = recent.sort("usage_date", "accelerator_family", "instance_type", "market")
    usd = _known_usd(ordered)
    return None if usd is None else usd * port_case.MONTH_DAYS / days
