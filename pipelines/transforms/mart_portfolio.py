"""One row per trained workload or served model, and currency: recommendation, money at stake, pilot, gaps."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import polars as pl

from pipelines.analysis.comparison import SIDES
from pipelines.analysis.comparison_faults import first_of
from pipelines.analysis.recommendation import OF_PORT, PILOT, Finding, where_to_declare
from pipelines.transforms import Row, Rows, run_pair, serving_decision, workload_case
from pipelines.transforms.pilot_plan import pilot_plan
from pipelines.transforms.port_case import CURRENCY
from pipelines.transforms.price_book import prices_of
from pipelines.transforms.run_pair import runs_of
from pipelines.transforms.serving_decision import serving_rows
from pipelines.transforms.workload_case import (
    FAMILIES,
    WINDOW_DAYS,
    WorkloadCase,
    in_region,
    monthly_cost,
    workload_cases,
)

INPUTS = tuple(dict.fromkeys((*workload_case.INPUTS, "mart_price_book", *run_pair.INPUTS, *serving_decision.INPUTS)))
QUERIES = workload_case.QUERIES | run_pair.QUERIES
_UNDECIDED = ("indicative", "inconclusive", "not comparable")
_NAMES = {"gpu": "GPU", "trainium": "Trainium"}
_HOLDS = {True: "holds", False: "does not hold", None: "is undecided"}


def build(**table: pl.DataFrame) -> Rows:
    """Every workload that is declared or has a billed run, and every served model; the most at stake of each first."""
    newest: Any = table["fct_ledger"]["newest_date"].max()
    # An announced price is no price yet.
    prices = prices_of(table["mart_price_book"].filter(pl.col("from_date") <= pl.lit(newest, pl.Date)))
    offers, compared = table["stg_aws__capacity_offer"], runs_of(table)
    rows: Rows = [
        _row(case, offers) | pilot_plan(case, compared, prices, in_region(offers, case.declared))
        for case in workload_cases(table)
    ]
    known, billed = {row["workload_id"] for row in rows}, {*table["fct_ledger"]["workload_id"]}
    declared = table["declared_workload"]["workload_id"].sort()
    rows += [_without_runs(name, is_billed=name in billed) for name in declared if name not in known]
    rows = [*({"activity": "training", **row} for row in rows), *serving_rows(table)]
    rows.sort(key=_rank)
    ranked: Counter[tuple[Any, Any]] = Counter()
    for row in rows:
        key = row["activity"], row["billing_currency"]
        ranked[key] += 1
        row["portfolio_rank"] = ranked[key]
    return rows


def _rank(row: Row) -> tuple[Any, ...]:
    """Most at stake first, unknown last."""
    stake = row["monthly_at_stake_usd"]
    return row["billing_currency"], stake is None, -abs(stake or 0), row["workload_id"]


def _without_runs(workload_id: str, *, is_billed: bool = False) -> Row:
    """A declared workload without a run to decide by: it costs nothing, or an unknown amount where it has others."""
    cost, reason, missing = 0.0, "no billed run", "no billed run on GPU or Trainium has this workload_id"
    if is_billed:
        cost, reason = None, "its billed runs are of several currencies, or not on GPU or Trainium alone"
    return {
        "workload_id": workload_id,
        "billing_currency": CURRENCY,
        "recommendation": PILOT,
        "decided_by": "missing inputs",
        "recommendation_reason": reason,
        "verdict": "not compared",
        **{f"{side}_run_count": 0 for side in SIDES},
        "monthly_cost_usd": cost,
        "monthly_at_stake_usd": cost,
        "at_stake_evidence": None if is_billed else "at most all of it",
        "missing_evidence": reason if is_billed else missing,
    }


def _row(case: WorkloadCase, offers: pl.DataFrame) -> Row:
    pair, decision = case.pair, case.decision
    newest: Any = case.spend["newest_date"].max()
    completed = [case.runs.filter(accelerator_family=family, status="completed").height for family in FAMILIES]
    done = {side: pair[f"{side}_run_count"] if pair else count for side, count in zip(SIDES, completed, strict=True)}
    stake, evidence, options = _at_stake(case, newest)
    used = case.spend.filter(pl.col("accelerator_hours") > 0)
    recent = used.filter(pl.col("usage_date") > newest - timedelta(days=WINDOW_DAYS))
    recent = used if recent.is_empty() else recent
    return {
        "workload_id": case.workload_id,
        "billing_currency": case.currency,
        "recommendation": decision.recommendation,
        "decided_by": decision.decided_by,
        "recommendation_reason": decision.reason,
        "rule_findings": " | ".join(map(_words, case.findings)),
        "verdict": pair["verdict"] if pair else "not compared",
        **{name: pair[name] if pair else None for name in ("saving_ratio", "saving_low_ratio", "saving_high_ratio")},
        **{f"{side}_run_count": count for side, count in done.items()},
        "monthly_cost_usd": case.monthly_cost,
        **options,
        "monthly_at_stake_usd": stake,
        "at_stake_evidence": evidence,
        **bought(recent),
        **offered(case, offers),
        "missing_evidence": "; ".join(_missing(case, done)) or None,
    }


def _words(found: Finding) -> str:
    missing = f" (missing: {', '.join(found.missing)})" if found.missing else ""
    return f"{found.rule} {_HOLDS[found.holds]}: {found.explanation}{missing}"


def _at_stake(case: WorkloadCase, newest: Any) -> tuple[float | None, str | None, dict[str, float]]:
    """USD a month that hang on the choice, its evidence, and what all of it costs in each family that shows it.

    What all of it would cost on the GPU × the saving, negative where that is; without a saving, at most all of it.
    Nothing where a part of the cost is unknown.
    """
    if case.monthly_cost is None:
        return None, None, {}
    saving, evidence = None, "measured"
    if case.pair is not None and case.pair["claims"]:
        saving = float(case.pair["saving_ratio"])
        evidence = case.pair["verdict"] if case.pair["verdict"] in _UNDECIDED else evidence
    elif case.port is not None and case.port.saving_evidence == "planned" and case.port.baseline:
        saving, evidence = 1 - (case.port.candidate or 0.0) / case.port.baseline, "planned"
    costs = [monthly_cost(case.spend.filter(accelerator_family=f), case.spend, newest) or 0.0 for f in FAMILIES]
    names = [f"{family}_monthly_cost_usd" for family in FAMILIES]
    if saving is None or saving >= 1:
        # All of it is on one of them, or nothing shows what it would cost there.
        options = {name: usd for name, usd in zip(names, costs, strict=True) if usd and usd == case.monthly_cost}
        return case.monthly_cost, "at most all of it", options
    whole = costs[0] + costs[1] / (1 - saving)
    return whole * saving, evidence, dict(zip(names, (whole, whole * (1 - saving)), strict=True))


def _missing(case: WorkloadCase, done: dict[str, int]) -> Iterable[str]:
    if case.pair is None:
        without = [_NAMES[family] for family, count in zip(FAMILIES, done.values(), strict=True) if not count]
        yield f"no run completed on {' or '.join(without)}" if without else "no two sides on one kind of machine each"
    # An interval that includes zero lacks no evidence that could be named.
    elif case.pair["verdict"] in _UNDECIDED and case.pair["verdict"] != "inconclusive":
        yield f"{case.pair['verdict']}: {case.pair['verdict_reason']}"
    if case.monthly_cost is None:
        partial = case.runs.drop_nulls("unbilled_hours")["run_id"].to_list()
        lacks = f": the bill lacks recorded time of {first_of(partial)}" if partial else ""
        yield f"the cost of a month is unknown{lacks}"
    missing = case.decision.missing
    if case.port and (of_port := {*missing} & {*OF_PORT}):
        yield from case.port.missing
        missing = tuple(name for name in missing if name not in of_port)
    if missing:
        yield where_to_declare(missing)


def bought(recent: pl.DataFrame) -> dict[str, str | None]:
    """How its accelerator time of the last 90 days was bought, by cost, the most first; unknown where a cost is."""
    if recent["effective_cost_usd"].null_count():
        return {}
    by_market = recent.group_by("market").agg(pl.col("effective_cost_usd").sum())
    shares = by_market.sort("effective_cost_usd", "market", descending=[True, False])
    whole, shown = float(shares["effective_cost_usd"].sum()), []
    if whole > 0:
        shown = [f"{market.replace('_', ' ')} {float(usd) / whole:.1%}" for market, usd in shares.iter_rows() if usd]
    most = shares["market"][0] if shares.height else None
    return {"purchase_option": most, "purchase_shares": ", ".join(shown) or None}


def offered(case: WorkloadCase, offers: pl.DataFrame) -> Row:
    """The soonest offer of each side in the workload's region, the cheapest of those, and the best Spot score."""
    found: Row = {}
    for side, family in zip(SIDES, FAMILIES, strict=True):
        here = in_region(offers.filter(accelerator_family=family), case.declared)
        timed = here.drop_nulls("lead_days").sort(
            "lead_days", "price_per_hour_usd", "instance_type", "region_id", nulls_last=True
        )
        for row in timed.head(1).iter_rows(named=True):
            option = row["purchase_option"].replace("_", " ")
            found[f"{side}_offer"] = f"{row['instance_type']} {option} in {row['region_id'] or 'an unknown region'}"
            found[f"{side}_offer_price_per_hour_usd"] = row["price_per_hour_usd"]
            found[f"{side}_lead_days"] = row["lead_days"]
        found[f"{side}_placement_score"] = here["placement_score"].max()
    return found
