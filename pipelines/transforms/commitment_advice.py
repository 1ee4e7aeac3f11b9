"""What one offer of a commitment is advised: how much, what it would have done, and how to buy it."""

from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from pipelines.analysis import commitment_baseline as baseline
from pipelines.transforms import Row

# Bought in four steps, no more than a quarter of it ends at once.
TRANCHES = 4


def advice(row: Row, oldest: Any, newest: Any, unknown_use: str | None) -> Row:
    """The row of an offer with the commitment that its usage proves, its simulation and its back-test.

    `commit` needs a back-test that saves money. What cannot be judged is `undecided`, with null for the commitment;
    `unknown_use` is the reason where the use of the payer's own commitments is unknown.
    """
    usage: pl.DataFrame = row.pop("usage")
    rated, unrated = usage.filter(pl.col("paid_ratio").is_not_null()), usage.filter(pl.col("paid_ratio").is_null())
    demand, paid = _matrix(rated, oldest, newest)
    weeks = len(demand) // baseline.WEEK_HOURS
    row |= {
        "eligible_list_cost_usd": float(rated["list_cost_usd"].sum()),
        "unrated_list_cost_usd": float(unrated["list_cost_usd"].sum()),
        "unrated_usage_types": ", ".join(unrated["usage_type_key"].unique().sort()) or None,
        "rate_basis": " and ".join(rated["rate_basis"].unique().sort()) or None,
        "last_used_at": usage["hour_started_at"].max(),
        "week_count": weeks,
        "commitment_per_hour_usd": None,
        "advice": "undecided",
    }
    if unknown_use:
        return row | {"advice_reason": unknown_use}
    if rated.is_empty():
        return row | {"advice_reason": "no rate is known for any of the usage"}
    if weeks < baseline.FEWEST_WEEKS:
        return row | {"advice_reason": f"{weeks} whole weeks of history; advice needs {baseline.FEWEST_WEEKS}"}
    proven, best = baseline.proven_commitment(demand, paid), baseline.best_commitment(demand, paid)
    tested = baseline.back_test(demand, paid)
    if tested is not None:
        learned, scored, best_savings = tested
        row |= {
            "back_test_commitment_per_hour_usd": learned,
            "back_test_savings_usd": scored.savings,
            "back_test_best_savings_usd": best_savings,
            "back_test_regret_usd": best_savings - scored.savings,
        }
    elif proven:
        needed = baseline.FEWEST_TESTED_WEEKS
        return row | {"advice_reason": f"{weeks} whole weeks of history; a back-test needs {needed}"}
    is_proven = tested is None or tested[1].savings > 0
    commitment = proven if is_proven else 0.0
    outcome = baseline.simulate(commitment, demand, paid)
    return row | {
        "best_commitment_per_hour_usd": best,
        "commitment_per_hour_usd": commitment,
        "simulated_coverage_ratio": outcome.coverage,
        "simulated_covered_list_usd": outcome.covered,
        "simulated_utilization_ratio": outcome.utilization if commitment else None,
        "simulated_savings_usd": outcome.savings,
        "worst_week_savings_usd": outcome.worst_week,
        "next_dollar_value_usd": baseline.next_dollar(commitment, demand, paid),
        "advice": "commit" if commitment else "commit nothing",
        "advice_reason": _reason(commitment, best, proven),
    }


def _reason(commitment: float, best: float, proven: float) -> str:
    if commitment:
        return "19 of 20 histories resampled from these weeks would have paid for at least this much"
    if proven:
        return "its back-test saves nothing: bought after two thirds of these weeks, it would not have paid in the rest"
    if best:
        return "it would have paid in these weeks, but not in enough histories resampled from them"
    return "no level of hourly use lasts long enough to pay for a commitment: occasional use is no baseline"


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


def purchase(row: Row, held: pl.DataFrame, newest: Any, unknown_use: str | None) -> Row:
    """The row with what is paid upfront, the size of each step, and what of the same kind ends within the new term."""
    years = {"1": 1, "3": 3}.get((row["purchase_term"] or " ")[0])
    upfront = {"No Upfront": 0.0, "Partial Upfront": 0.5, "All Upfront": 1.0}.get(row["payment_option"])
    ending = held.filter(pl.col("ended_at") <= newest + timedelta(days=365 * (years or 1)))
    known = years is not None and upfront is not None
    hourly = row["commitment_per_hour_usd"]
    return row | {
        "upfront_cost_usd": hourly * 8760 * years * upfront if known and hourly is not None else None,
        "tranche_per_hour_usd": hourly / TRANCHES if hourly is not None else None,
        "expiring_per_hour_usd": None
        if unknown_use
        else float(ending["commitment_per_hour_usd"].cast(pl.Float64).sum()),
        "next_expiry_at": ending["ended_at"].min(),
    }
