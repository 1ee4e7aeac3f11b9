"""One row per payer, currency and offer of a commitment: how much of it history proves, and what it would have done.

Usage is what ran on demand beside the commitments there are, over whole weeks back from the newest hour, hours without
any included. An offer is a kind of plan, a term and a payment option whose rates the payer's bill or the reviewed list
knows; usage without a rate is left out and named. EC2 Instance plans and reservations are bound to a family in a
region.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from pipelines.analysis import commitment_baseline as baseline

INPUTS = ("fct_commitment_demand_hourly", "fct_commitment_rate", "fct_commitment_expiry")
# What each kind covers (ref_commitment_eligibility), and whether it is bound to a family in a region.
KINDS: dict[str, tuple[tuple[str, ...], bool]] = {
    "compute_savings_plan": (("ec2_instance", "fargate", "lambda"), False),
    "ec2_instance_savings_plan": (("ec2_instance",), True),
    "sagemaker_savings_plan": (("sagemaker_instance",), False),
    "reserved_instance": (("ec2_instance",), True),
}
# So that no more than a quarter of it ends at once.
TRANCHES = 4
_PAYER = ["payer_account_id", "billing_currency"]
_OFFER = ["purchase_term", "payment_option"]
_SCHEMA = {
    "payer_account_id": pl.String,
    "billing_currency": pl.String,
    "commitment_kind": pl.String,
    "purchase_term": pl.String,
    "payment_option": pl.String,
    "region_id": pl.String,
    "instance_family": pl.String,
    "week_count": pl.Int64,
    "eligible_list_cost_usd": pl.Float64,
    "unrated_list_cost_usd": pl.Float64,
    "unrated_usage_types": pl.String,
    "rate_basis": pl.String,
    "best_commitment_per_hour_usd": pl.Float64,
    "commitment_per_hour_usd": pl.Float64,
    "simulated_coverage_ratio": pl.Float64,
    "simulated_utilization_ratio": pl.Float64,
    "simulated_savings_usd": pl.Float64,
    "worst_week_savings_usd": pl.Float64,
    "next_dollar_value_usd": pl.Float64,
    "upfront_cost_usd": pl.Float64,
    "tranche_per_hour_usd": pl.Float64,
    "expiring_per_hour_usd": pl.Float64,
    "next_expiry_at": pl.Datetime("us"),
    "back_test_commitment_per_hour_usd": pl.Float64,
    "back_test_savings_usd": pl.Float64,
    "back_test_best_savings_usd": pl.Float64,
    "back_test_regret_usd": pl.Float64,
    "advice": pl.String,
    "advice_reason": pl.String,
}


def build(
    fct_commitment_demand_hourly: pl.DataFrame,
    fct_commitment_rate: pl.DataFrame,
    fct_commitment_expiry: pl.DataFrame,
) -> pl.DataFrame:
    """Every offer with a rate, and for each kind without one a row that says so."""
    demand = fct_commitment_demand_hourly.with_columns(
        pl.col("list_cost_usd").cast(pl.Float64),
        instance_family=pl.col("usage_type_key").str.strip_prefix("ml.").str.split(".").list.first(),
    ).sort(*_PAYER, "hour_started_at", "region_id", "usage_type_key")
    rates = fct_commitment_rate.with_columns(pl.col("paid_ratio").cast(pl.Float64)).filter(
        pl.col("paid_ratio").is_between(0, 1, closed="none")
    )
    rows: list[dict[str, Any]] = []
    for payer, used in demand.group_by(_PAYER, maintain_order=True):
        is_payers = (pl.col("payer_account_id") == payer[0]) & (pl.col("billing_currency") == payer[1])
        oldest, newest = used["told_from_at"].min(), used["told_until_at"].max()
        held = fct_commitment_expiry.filter(is_payers)
        for kind, (eligible, is_bound) in KINDS.items():
            usage = used.filter(pl.col("commitment_eligibility").is_in(eligible))
            offers = rates.filter(is_payers & (pl.col("commitment_kind") == kind))
            for offer in _offers(usage, offers, is_bound):
                row = dict(zip(_PAYER, payer, strict=True)) | {"commitment_kind": kind} | offer
                advised = _advice(row, oldest, newest)
                rows.append(_ladder(advised, held.filter(commitment_kind=kind), newest))
    kept = [{name: row.get(name) for name in _SCHEMA} for row in rows]
    # Past six places a figure would only differ from machine to machine.
    return pl.DataFrame(kept, schema=_SCHEMA).with_columns(pl.col(pl.Float64).round(6))


def _offers(usage: pl.DataFrame, rates: pl.DataFrame, is_bound: bool) -> list[dict[str, Any]]:
    """Each offer with the usage it may cover, priced; one without a rate where there is none for any of the usage."""
    if usage.is_empty():
        return []
    found = []
    places = usage.select("region_id", "instance_family").unique(maintain_order=True) if is_bound else None
    for place in places.iter_rows(named=True) if places is not None else [{"region_id": "", "instance_family": ""}]:
        part = usage.filter(**place) if is_bound else usage
        for terms, offered in rates.group_by(_OFFER, maintain_order=True):
            priced = _priced(part, offered)
            if priced["paid_ratio"].is_not_null().any():
                found.append(place | dict(zip(_OFFER, terms, strict=True)) | {"usage": priced})
    nothing = {"region_id": "", "instance_family": "", "purchase_term": "", "payment_option": ""}
    return found or [
        nothing | {"usage": usage.with_columns(paid_ratio=pl.lit(None, pl.Float64), rate_basis=pl.lit(None))}
    ]


def _priced(usage: pl.DataFrame, rates: pl.DataFrame) -> pl.DataFrame:
    """The usage with its rate: the payer's own bill before what is declared before the list, its region before any."""
    columns = ["paid_ratio", "rate_basis"]
    priced = usage.with_columns(paid_ratio=pl.lit(None, pl.Float64), rate_basis=pl.lit(None, pl.String))
    for basis, key in (
        ("own bill", ["region_id", "usage_type_key"]),
        ("declared", ["region_id", "usage_type_key"]),
        ("declared", ["usage_type_key"]),
        ("reviewed list", ["usage_type_key"]),
    ):
        told = rates.filter(rate_basis=basis)
        told = told if "region_id" in key else told.filter(region_id="")
        priced = priced.join(told.select(*key, *columns), on=key, how="left", suffix="_told").select(
            pl.exclude(*columns, *(f"{name}_told" for name in columns)),
            *(pl.coalesce(name, f"{name}_told").alias(name) for name in columns),
        )
    return priced


def _advice(row: dict[str, Any], oldest: Any, newest: Any) -> dict[str, Any]:
    usage: pl.DataFrame = row.pop("usage")
    rated, unrated = usage.filter(pl.col("paid_ratio").is_not_null()), usage.filter(pl.col("paid_ratio").is_null())
    row |= {
        "eligible_list_cost_usd": float(rated["list_cost_usd"].sum()),
        "unrated_list_cost_usd": float(unrated["list_cost_usd"].sum()),
        "unrated_usage_types": ", ".join(unrated["usage_type_key"].unique().sort()) or None,
        "rate_basis": " and ".join(rated["rate_basis"].unique().sort()) or None,
    }
    demand, paid = _matrix(rated, oldest, newest)
    weeks = len(demand) // baseline.WEEK_HOURS
    row |= {"week_count": weeks, "commitment_per_hour_usd": 0.0}
    if rated.is_empty():
        return row | {"advice": "commit nothing", "advice_reason": "no rate is known for any of the usage"}
    if weeks < baseline.FEWEST_WEEKS:
        reason = f"{weeks} whole weeks of history; {baseline.FEWEST_WEEKS} are the fewest"
        return row | {"advice": "commit nothing", "advice_reason": reason}
    commitment, best = baseline.proven_commitment(demand, paid), baseline.best_commitment(demand, paid)
    outcome, tested = baseline.simulate(commitment, demand, paid), baseline.back_test(demand, paid)
    if tested is not None:
        tried, scored, hindsight = tested
        row |= {
            "back_test_commitment_per_hour_usd": tried,
            "back_test_savings_usd": scored.savings,
            "back_test_best_savings_usd": hindsight,
            "back_test_regret_usd": hindsight - scored.savings,
        }
    return row | {
        "best_commitment_per_hour_usd": best,
        "commitment_per_hour_usd": commitment,
        "simulated_coverage_ratio": outcome.coverage,
        "simulated_utilization_ratio": outcome.utilization if commitment else None,
        "simulated_savings_usd": outcome.savings,
        "worst_week_savings_usd": outcome.worst_week,
        "next_dollar_value_usd": baseline.next_dollar(commitment, demand, paid),
        "advice": "commit" if commitment else "commit nothing",
        "advice_reason": _reason(commitment, best),
    }


def _reason(commitment: float, best: float) -> str:
    if commitment:
        return "19 of 20 histories made of these weeks would have paid for at least this much"
    if best:
        return "it would have paid in these weeks, but not in enough histories made of them"
    return "no hourly use is met often enough to pay for a commitment: what comes now and then is no baseline"


def _matrix(rated: pl.DataFrame, oldest: Any, newest: Any) -> tuple[baseline.Floats, baseline.Floats]:
    """Demand at plan prices by hour and rate, whole weeks back from the newest hour; and the rates, ascending."""
    paid = np.unique(rated["paid_ratio"].to_numpy())
    hours = int((newest - oldest) / timedelta(hours=1)) + 1
    weeks = hours // baseline.WEEK_HOURS
    demand = np.zeros((weeks * baseline.WEEK_HOURS, max(len(paid), 1)))
    if rated.is_empty() or not weeks:
        return demand, paid
    first = newest - timedelta(hours=len(demand) - 1)
    kept = rated.filter(pl.col("hour_started_at") >= first)
    row = ((kept["hour_started_at"] - first).dt.total_hours()).to_numpy()
    column = np.searchsorted(paid, kept["paid_ratio"].to_numpy())
    np.add.at(demand, (row, column), (kept["list_cost_usd"] * kept["paid_ratio"]).to_numpy())
    return demand, paid


def _ladder(row: dict[str, Any], held: pl.DataFrame, newest: Any) -> dict[str, Any]:
    """What is paid at once, in how large steps to buy, and what of the same kind ends within the new term."""
    years = {"1": 1, "3": 3}.get((row["purchase_term"] or " ")[0])
    upfront = {"No Upfront": 0.0, "Partial Upfront": 0.5, "All Upfront": 1.0}.get(row["payment_option"])
    ending = held.filter(pl.col("ended_at") <= newest + timedelta(days=365 * (years or 1)))
    known = years is not None and upfront is not None
    return row | {
        "upfront_cost_usd": row["commitment_per_hour_usd"] * 8760 * years * upfront if known else None,
        "tranche_per_hour_usd": row["commitment_per_hour_usd"] / TRANCHES,
        "expiring_per_hour_usd": float(ending["commitment_per_hour_usd"].cast(pl.Float64).sum()),
        "next_expiry_at": ending["ended_at"].min(),
    }
