"""One row per payer, currency and offer of a commitment: how much of it history proves, and what it would have done.

Usage is what ran on demand in addition to the commitments in force, and what commitments covered that have ended, over
whole weeks back from the payer's newest usage of any kind; hours without usage count as zero. Before a commitment
began, in force or still to begin, only what it would have left on demand counts. An offer is a kind, term and payment
option with rates, for EC2 Instance plans and reservations also a family in a region. Usage without a rate is named.
"""

from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from pipelines.analysis import commitment_baseline as baseline
from pipelines.transforms import Row, Rows, commitment_query
from pipelines.transforms import commitment_offer as offer
from pipelines.transforms.commitment_queued import named, queued

INPUTS = (
    "detail_commitment_use_hourly",
    "detail_commitment_utilization_daily",
    "fct_invoice_monthly",
    "fct_charge",
    "stg_aws__commitment",
    "declared_commitment_rate",
    "ref_commitment_rate",
)
QUERIES = commitment_query.QUERIES
TRANCHES = 4  # Bought in four steps, no more than a quarter of it ends at once.


def build(**table: pl.DataFrame) -> Rows:
    """Every offer with a rate, and for each kind or bound family without one a row that shows that."""
    use, commitments, bill, charges, inventory = (table[name] for name in INPUTS[:5])
    known = offer.rates(use, commitments, table["declared_commitment_rate"], table["ref_commitment_rate"])
    held, unknown = offer.in_force(commitments, bill), _unknown_use(commitments, bill, inventory)
    demand = offer.on_demand_usage(use, commitments, held).join(bill, on=offer.PAYER, how="left")
    newest = pl.max_horizontal("last_hour_at", pl.col("newest_usage_at").dt.truncate("1h"))
    waiting = queued(inventory, commitments, bill, held)
    begun = pl.concat([offer.begun_within(commitments, use, held), waiting], how="diagonal")
    demand = offer.since_hourly(demand.with_columns(last_hour_at=newest), charges)
    rows, daily = recommend(demand, known, held, unknown, begun), charges.rows_by_key(offer.PAYER)
    for row in rows:
        for (month,) in daily.get(tuple(row[name] for name in offer.PAYER), ()):
            if row["week_count"] < baseline.FEWEST_TESTED_WEEKS:
                row["advice_reason"] += f"; up to {month:%B %Y} the bill has days, not hours: set the export to hourly"
    return rows


def recommend(
    demand: pl.DataFrame,
    rates: pl.DataFrame,
    held: pl.DataFrame,
    unknown: dict[tuple[Any, ...], str] | None = None,
    begun: pl.DataFrame | None = None,
) -> Rows:
    """The recommendations for the frames of commitment_offer: on-demand usage, rates, and commitments in force.

    `unknown` has the payers and currencies whose use of their commitments is unknown, each with the reason; `begun` the
    commitments that began within the history or begin after it.
    """
    rows: Rows = []
    demand = demand.with_columns(instance_family=offer.FAMILY, is_least=pl.lit(False), is_unknown=pl.lit(False))
    for payer, used in demand.group_by(offer.PAYER, maintain_order=True):
        is_payers = (pl.col("payer_account_id") == payer[0]) & (pl.col("billing_currency") == payer[1])
        oldest, newest = used["first_hour_at"].min(), used["last_hour_at"].max()
        if begun is not None:
            used = offer.remaining_usage(used, begun.filter(is_payers), rates.filter(is_payers))
        for kind, (eligible, is_bound) in offer.KINDS.items():
            is_kinds = is_payers & (pl.col("commitment_kind") == kind)
            usage = used.filter(pl.col("commitment_eligibility").is_in(eligible))
            for offered in offer.offers(usage, rates.filter(is_kinds), is_bound):
                row = dict(zip(offer.PAYER, payer, strict=True)) | {"commitment_kind": kind} | offered
                reason = (unknown or {}).get(payer)
                judged = advice(row, oldest, newest, reason)
                if begun is not None:
                    judged["advice_reason"] += named(begun.filter(is_payers, pl.col("began_at") > newest), kind)
                judged["eligible_share_ratio"] = _share(judged, usage, newest)
                rows.append(purchase(judged, held.filter(is_kinds), newest, reason))
    # Of those that would cover the same use at most one is right.
    advised = [row for row in rows if row["advice"] == "commit"]
    for row in advised:
        others = [_name(other) for other in advised if other is not row and _overlaps(row, other)]
        row["exclusive_offers"] = "; ".join(others) or None
    return rows


def _share(row: Row, usage: pl.DataFrame, newest: Any) -> float | None:
    """The share of all eligible on-demand use of the kind, at list price, that the commitment would have covered."""
    whole = usage.filter(pl.col("hour_started_at") > newest - timedelta(weeks=row["week_count"]))["list_cost_usd"].sum()
    covered = row.get("simulated_covered_list_usd")
    return covered / float(whole) if covered is not None and whole else None


def _overlaps(one: Row, other: Row) -> bool:
    both = set(offer.KINDS[one["commitment_kind"]][0]) & set(offer.KINDS[other["commitment_kind"]][0])
    if not both or any(one[name] != other[name] for name in offer.PAYER):
        return False
    # An unbound offer has neither region nor family, and covers every one.
    bounds = [(one[name], other[name]) for name in ("region_id", "instance_family")]
    return all(ours == theirs or not ours or not theirs for ours, theirs in bounds)


def _name(row: Row) -> str:
    names = ("commitment_kind", "purchase_term", "payment_option", "region_id", "instance_family")
    return " ".join(row[name] for name in names if row[name])


def _unknown_use(commitments: pl.DataFrame, newest: pl.DataFrame, inventory: pl.DataFrame) -> dict[Any, str]:
    """The payers and currencies whose commitments, or their use or cost in the newest 28 days, are unknown, and why."""
    unread = inventory.filter(pl.col("commitment_kind").is_null())["commitment_discount_id"].min()
    reason = f"commitments cannot be read, such as {unread}"
    found = dict.fromkeys(newest.select(offer.PAYER).rows(), reason) if unread else {}
    age = pl.col("newest_usage_at").dt.date() - pl.col("usage_date")
    uncosted = pl.col("covered_hours").filter(pl.col("covered_cost_usd").is_null()).sum()
    fee, cost = pl.col("unallocated_fee_usd"), pl.col("commitment_cost_usd")
    has_cost = cost.count().over(*offer.PAYER, "commitment_kind", "commitment_id") > 0
    recent = commitments.join(newest, on=offer.PAYER).filter(age < timedelta(days=28)).with_columns(paid=has_cost)
    sums = recent.group_by(offer.PAYER).agg(fee.sum(), uncosted, (pl.col("paid") | (fee != 0)).all())
    for payer, currency, usd, hours, paid in sums.iter_rows():
        reasons = [f"does not show what used {usd:,.2f} {currency} of commitment fees"] if usd else []
        reasons += [f"has no cost of {hours:,.0f} hours that commitments covered"] if hours else []
        reasons += ["has no fee of a commitment that was used"] if not paid and not hours else []
        if reasons:
            found[payer, currency] = f"the bill {' and '.join(reasons)} in 28 days"
    return found


def advice(row: Row, oldest: Any, newest: Any, unknown_use: str | None) -> Row:
    """The row of an offer with the commitment that its usage proves, its simulation and its back-test.

    `commit` needs a back-test that saves money. What cannot be judged is `undecided`, with null for the commitment;
    `unknown_use` is the reason where the use of the payer's own commitments is unknown.
    """
    usage: pl.DataFrame = row.pop("usage")
    rated = usage.filter(pl.col("paid_ratio").is_not_null())
    unrated = usage.filter(pl.col("paid_ratio").is_null(), pl.col("list_cost_usd") > 0)
    rated, least = rated.filter(~pl.col("is_unknown")), rated.filter("is_least")
    unpaid = rated.filter(pl.col("on_demand_ratio").is_null(), pl.col("list_cost_usd") > 0)
    used = _matrix(rated, oldest, newest)
    weeks = len(used) // baseline.WEEK_HOURS
    history = f"{weeks} whole week{'s' * (weeks != 1)} of history"
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
    if rated.is_empty() and least.is_empty():
        return row | {"advice_reason": "no rate is known for any of the usage"}
    if weeks < baseline.FEWEST_WEEKS:
        return row | {"advice_reason": f"{history}; advice needs {baseline.FEWEST_WEEKS}"}
    if not unpaid.is_empty():
        types = ", ".join(unpaid["usage_type_key"].unique().sort())
        return row | {"advice_reason": f"it is unknown what {len(unpaid):,} hours of {types} cost on demand"}
    steady, recent = baseline.resampled_commitment(used), baseline.newest_commitment(used)
    proven, best = min(steady, recent), baseline.best_commitment(used)
    tested = baseline.back_test(used)
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
        return row | {"advice_reason": f"{history}; a back-test needs {needed}"}
    commitment = proven if tested is None or tested[1].savings > 0 else 0.0
    if not commitment and not least.is_empty():
        types = ", ".join(least["usage_type_key"].unique().sort())
        reason = f"it is unknown how much use of {types} the commitments in force would have covered before they began"
        return row | {"advice_reason": reason}
    outcome = baseline.simulate(commitment, used)
    return row | {
        "best_commitment_per_hour_usd": best,
        "commitment_per_hour_usd": commitment,
        "simulated_coverage_ratio": outcome.coverage if used.demand.any() else None,
        "simulated_covered_list_usd": outcome.covered,
        "simulated_utilization_ratio": outcome.utilization if commitment else None,
        "simulated_savings_usd": outcome.savings,
        "worst_week_savings_usd": outcome.worst_week,
        "next_dollar_value_usd": baseline.next_dollar(commitment, used),
        "advice": "commit" if commitment else "commit nothing",
        "advice_reason": _reason(commitment, best, steady, recent, used, newest),
    }


def _reason(commitment: float, best: float, steady: float, recent: float, used: baseline.Use, newest: Any) -> str:
    if not used.demand.any():
        return "in these weeks nothing ran on demand that the commitments in force would not have covered"
    if commitment:
        if recent < steady:
            return f"the newest {baseline.NEWEST_WEEKS} weeks would have paid for this much, older ones for more"
        return "19 of 20 histories resampled from these weeks would have paid for at least this much"
    if steady and not recent:
        unused = timedelta(hours=int(np.argmax(used.demand[::-1].any(axis=1))))
        if unused >= timedelta(weeks=1):
            return f"its use ended on {newest - unused:%-d %B %Y}"
        return f"it would have paid in these weeks, but not in the newest {baseline.NEWEST_WEEKS} of them"
    if steady:
        return "its back-test saves nothing: bought after two thirds of these weeks, it would not have paid in the rest"
    if best:
        return "it would have paid in these weeks, but not in enough histories resampled from them"
    if (used.on_demand <= used.demand).all():
        return "on demand this use costs no more than under the commitment"
    return "usage is too intermittent for a commitment to pay off"


def _matrix(rated: pl.DataFrame, oldest: Any, newest: Any) -> baseline.Use:
    """Use with a list cost by hour and rate, rates ascending, in whole weeks back from the newest hour."""
    paid = np.unique(rated["paid_ratio"].to_numpy())
    weeks = (int((newest - oldest) / timedelta(hours=1)) + 1) // baseline.WEEK_HOURS
    shape = (weeks * baseline.WEEK_HOURS, max(len(paid), 1))
    used = baseline.Use(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    if rated.is_empty() or not weeks:
        return used
    first = newest - timedelta(hours=len(used) - 1)
    kept = rated.filter(pl.col("hour_started_at") >= first, pl.col("list_cost_usd") > 0)
    row = ((kept["hour_started_at"] - first).dt.total_hours()).to_numpy()
    column = np.searchsorted(paid, kept["paid_ratio"].to_numpy())
    listed = kept["list_cost_usd"]
    np.add.at(used.demand, (row, column), (listed * kept["paid_ratio"]).to_numpy())
    np.add.at(used.listed, (row, column), listed.to_numpy())
    np.add.at(used.on_demand, (row, column), (listed * kept["on_demand_ratio"]).to_numpy())
    return used


def purchase(row: Row, held: pl.DataFrame, newest: Any, unknown_use: str | None) -> Row:
    """The row with what is paid upfront, the size of each step, and what of the same kind ends within the new term."""
    years = {"1": 1, "3": 3}.get((row["purchase_term"] or " ")[0])
    upfront = {"No Upfront": 0.0, "Partial Upfront": 0.5, "All Upfront": 1.0}.get(row["payment_option"])
    ending = held.filter(pl.col("ended_at") <= newest + timedelta(days=365 * (years or 1)))
    per_hour, hourly = ending["commitment_per_hour_usd"].cast(pl.Float64), row["commitment_per_hour_usd"]
    has_ends = not held["ended_at"].has_nulls()  # A FOCUS bill has none.
    is_known = has_ends and not unknown_use and not per_hour.has_nulls()
    return row | {
        "upfront_cost_usd": hourly * 8760 * years * upfront if None not in (hourly, years, upfront) else None,
        "tranche_per_hour_usd": hourly / TRANCHES if hourly is not None else None,
        "expiring_per_hour_usd": float(per_hour.sum()) if is_known else None,
        "next_expiry_at": ending["ended_at"].min() if has_ends else None,
    }
