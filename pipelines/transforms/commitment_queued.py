"""Commitments of the inventory that begin after the bill ends, such as queued ones: what they leave is still open."""

from datetime import timedelta

import polars as pl

from pipelines.transforms import Row, Rows
from pipelines.transforms.commitment_offer import KINDS, PAYER

# Those that never begin, or no longer apply.
_VOID = ("retired", "returned", "pending-return", "payment-failed", "queued-deleted", "expired", "canceled")
_SCHEMA = {
    **dict.fromkeys((*PAYER, "commitment_kind", "commitment_id", "purchase_term", "payment_option"), pl.String),
    **dict.fromkeys(("region_id", "instance_family"), pl.String),
    "began_at": pl.Datetime("us"),
    "per_hour_usd": pl.Float64,
}


def queued(inventory: pl.DataFrame, bill: pl.DataFrame, newest: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """The commitments that begin after their payer's `newest_usage_at` in `newest`, in the columns of begun_within.

    The cost of a Compute or SageMaker plan in force that ends by then is subtracted from a plan of its kind, which
    renews it; a mere renewal has no row. `per_hour_usd` is null where it renews another kind, or a bound one: which use
    moves to it is unknown. So is the payer of a commitment where several have its currency and its id names none.
    """
    billed = {str(name).rsplit("/", 1)[-1].lower() for name in bill["commitment_id"].drop_nulls()}
    waiting = inventory.filter(
        pl.col("commitment_kind").is_in(list(KINDS)), ~pl.col("state").is_in(_VOID).fill_null(False)
    ).sort("started_at", "commitment_discount_id")
    left, found = held.sort(*PAYER, "ended_at").to_dicts(), []
    for one in waiting.filter(~pl.col("commitment_key").is_in(billed)).to_dicts():
        payers = [row for row in newest.to_dicts() if one["currency"] in (None, row["billing_currency"])]
        payers = [row for row in payers if str(row["payer_account_id"]) in one["commitment_discount_id"]] or payers
        for payer in payers:
            began, last = one["started_at"], payer["newest_usage_at"]
            if began is None or last is None or began < last.replace(minute=0, second=0, microsecond=0):
                continue
            ending = [row for row in left if _is_renewed(row, one, payer)]
            left = [row for row in left if row not in ending]
            costs = [one["commitment_per_hour_usd"], *(row["commitment_per_hour_usd"] for row in ending)]
            kinds = {row["commitment_kind"] for row in ending}
            is_known = len(payers) == 1 and None not in costs
            is_known &= not kinds or (kinds == {one["commitment_kind"]} and not KINDS[one["commitment_kind"]][1])
            per_hour = max(float(costs[0]) - sum(map(float, costs[1:])), 0.0) if is_known else None
            if per_hour == 0:
                continue
            names = {name: payer[name] for name in PAYER} | {"commitment_id": one["commitment_discount_id"]}
            terms = {name: one[name] or "" for name in ("purchase_term", "payment_option")}
            found.append({**one, **names, **terms, "began_at": began, "per_hour_usd": per_hour})
    return pl.DataFrame([{name: row[name] for name in _SCHEMA} for row in found], schema=_SCHEMA)


def _is_renewed(held: Row, one: Row, payer: Row) -> bool:
    """Whether the commitment in force ends by the start of `one`, and covers some of the same use."""
    same = set(KINDS.get(str(held["commitment_kind"]), ((), False))[0]) & set(KINDS[one["commitment_kind"]][0])
    is_payers = all(held[name] == payer[name] for name in PAYER)
    return bool(same and is_payers and held["ended_at"] and held["ended_at"] <= one["started_at"] + timedelta(days=1))


def named(queued: pl.DataFrame, kind: str) -> str:
    """What a reason adds: the commitments that take use which an offer of this kind could cover, with their start."""
    same = [other for other in KINDS if set(KINDS[other][0]) & set(KINDS[kind][0])]
    rows: Rows = queued.filter(pl.col("commitment_kind").is_in(same)).to_dicts()
    names = [f"{row['commitment_id'].rsplit('/', 1)[-1]} from {row['began_at']:%-d %B %Y}" for row in rows]
    return f"; counted as in force: {', '.join(names)}" if names else ""
