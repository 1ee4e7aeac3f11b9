"""One row per payer, currency and offer of a commitment: how much of it history proves, and what it would have done.

Usage is what ran on demand in addition to the commitments in force, over whole weeks back from the newest usage of any
line of the payer; hours without usage count as zero. An offer is a kind, a term and a payment option whose rates the
payer's bill, the configuration or the reviewed list has; usage without a rate is left out and named. EC2 Instance plans
and reservations are bound to an instance family in a region.
"""

from datetime import timedelta
from typing import Any

import polars as pl

from pipelines.transforms import Row, Rows
from pipelines.transforms import commitment_offer as offer
from pipelines.transforms.commitment_advice import advice, purchase

INPUTS = (
    "detail_commitment_use_hourly",
    "detail_commitment_utilization_daily",
    "fct_invoice_monthly",
    "declared_commitment_rate",
    "ref_commitment_rate",
)
# Hours of all types and commitments are many: they are summed before Python has them.
QUERIES = {
    "detail_commitment_use_hourly": offer.USE,
    "fct_invoice_monthly": """
        select payer_account_id, billing_currency, max(newest_usage_at) as newest_usage_at
        from fct_invoice_monthly
        group by payer_account_id, billing_currency
    """,
}


def build(**table: pl.DataFrame) -> Rows:
    """Every offer with a rate, and for each kind without one a row that shows that."""
    use, commitments = table["detail_commitment_use_hourly"], table["detail_commitment_utilization_daily"]
    known = offer.rates(use, commitments, table["declared_commitment_rate"], table["ref_commitment_rate"])
    demand = offer.on_demand_usage(use).join(table["fct_invoice_monthly"], on=offer.PAYER, how="left")
    newest = pl.max_horizontal("last_hour_at", pl.col("newest_usage_at").dt.truncate("1h"))
    held, unknown = offer.in_force(commitments), offer.unknown_use(commitments)
    return recommend(demand.with_columns(last_hour_at=newest), known, held, unknown)


def recommend(
    demand: pl.DataFrame, rates: pl.DataFrame, held: pl.DataFrame, unknown: dict[tuple[Any, ...], str] | None = None
) -> Rows:
    """The recommendations for the frames of commitment_offer: on-demand usage, rates, and commitments in force.

    `unknown` has the payers and currencies whose use of their commitments is unknown, each with the reason.
    """
    family = pl.col("usage_type_key").str.strip_prefix("ml.").str.split(".").list.first()
    rows: Rows = []
    for payer, used in demand.with_columns(instance_family=family).group_by(offer.PAYER, maintain_order=True):
        is_payers = (pl.col("payer_account_id") == payer[0]) & (pl.col("billing_currency") == payer[1])
        oldest, newest = used["first_hour_at"].min(), used["last_hour_at"].max()
        for kind, (eligible, is_bound) in offer.KINDS.items():
            is_kinds = is_payers & (pl.col("commitment_kind") == kind)
            usage = used.filter(pl.col("commitment_eligibility").is_in(eligible))
            for offered in offer.offers(usage, rates.filter(is_kinds), is_bound):
                row = dict(zip(offer.PAYER, payer, strict=True)) | {"commitment_kind": kind} | offered
                reason = (unknown or {}).get(payer)
                judged = advice(row, oldest, newest, reason)
                judged["eligible_share_ratio"] = _share(judged, usage, newest)
                rows.append(purchase(judged, held.filter(is_kinds), newest, reason))
    _name_exclusive(rows)
    return rows


def _share(row: Row, usage: pl.DataFrame, newest: Any) -> float | None:
    """The share of all eligible on-demand use of the kind, at list price, that the commitment would have covered."""
    whole = usage.filter(pl.col("hour_started_at") > newest - timedelta(weeks=row["week_count"]))["list_cost_usd"].sum()
    covered = row.get("simulated_covered_list_usd")
    return covered / float(whole) if covered is not None and whole else None


def _name_exclusive(rows: Rows) -> None:
    """Name in each row that recommends a commitment the others that would cover the same use: at most one is right."""
    advised = [row for row in rows if row["advice"] == "commit"]
    for row in advised:
        others = [_name(other) for other in advised if other is not row and _overlaps(row, other)]
        row["exclusive_offers"] = "; ".join(others) or None


def _overlaps(one: Row, other: Row) -> bool:
    if any(one[name] != other[name] for name in offer.PAYER):
        return False
    if not set(offer.KINDS[one["commitment_kind"]][0]) & set(offer.KINDS[other["commitment_kind"]][0]):
        return False
    # An unbound offer has neither region nor family, and covers every one.
    bounds = [(one[name], other[name]) for name in ("region_id", "instance_family")]
    return all(ours == theirs or not ours or not theirs for ours, theirs in bounds)


def _name(row: Row) -> str:
    names = ("commitment_kind", "purchase_term", "payment_option", "region_id", "instance_family")
    return " ".join(row[name] for name in names if row[name])
