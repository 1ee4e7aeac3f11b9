"""One row per pool of credits, currency and month with a bill: issued, used, expired, remaining, and how long it lasts.

Unit costs are before credits; costs after credits appear here only. A credit's description names its program (facts
aws-billing 2.5): it belongs to the first declared pool whose text it contains. Other descriptions are pools of their
own, without an issued amount. What a month used is unknown where the bill of a payer is missing; sums and means are
over the months that are known, and `missing_evidence` counts the others.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import polars as pl

from pipelines.analysis.forecast import FEWEST_MONTHS, runway
from pipelines.base.errors import counted
from pipelines.transforms import Row, Rows
from pipelines.transforms.detail_edp_burn_down_monthly import months_between

INPUTS = (
    "declared_credit_pool",
    "declared_term_payer",
    "fct_bill_total_monthly",
    "fct_charge_sum_monthly",
    "fct_term_spend_monthly",
)
QUERIES = {
    "declared_term_payer": "select term_name, payer_account_id from declared_term_payer where term_kind = 'credits'",
    # As in fct_term_spend_monthly.
    "fct_bill_total_monthly": """
        select total.billing_month, total.billing_currency,
            bool_or(total.is_open) and total.billing_month = max(total.billing_month) over () as is_open_month
        from fct_bill_total_monthly as total
        semi join (select * from fct_charge_sum_monthly where not is_other_provider) as charge
            on charge.billing_month = total.billing_month and charge.billing_currency = total.billing_currency
            and charge.payer_account_id = total.payer_account_id
        group by total.billing_month, total.billing_currency
        order by total.billing_month
    """,
    "fct_charge_sum_monthly": """
        select
            payer_account_id, billing_month, billing_currency, coalesce(charge_description, '') as charge_description,
            - sum(billed_cost_usd) as used_usd
        from fct_charge_sum_monthly
        where effective_rule = 'credit' and not is_other_provider
        group by all
    """,
}
_DECLARED = ("issued_usd", "issued_date", "expiry_date")


def build(**table: pl.DataFrame) -> Rows:
    """Every pool, declared or on a bill, from the month it was issued or first used."""
    pools = table["declared_credit_pool"].sort("pool_no").to_dicts()
    # A pool without payers is every payer's.
    payers_of: dict[str, set[str | None]] = defaultdict(set)
    for name, payer in table["declared_term_payer"].iter_rows():
        payers_of[name].add(payer)
    # A declared pool may have no use.
    used: dict[tuple[str, str, bool], dict[date, Decimal]]
    used = {(pool["pool_name"], pool["billing_currency"], True): {} for pool in pools}
    for payer, month, currency, description, usd in table["fct_charge_sum_monthly"].iter_rows():
        matched = (
            pool["pool_name"]
            for pool in pools
            if pool["billing_currency"] == currency
            and payers_of[pool["pool_name"]] & {payer, None}
            and pool["matched_text"].lower() in description.lower()
        )
        declared_name = next(matched, None)
        name = declared_name or description or "credits without a description"
        by_month = used.setdefault((name, currency, declared_name is not None), {})
        by_month[month] = by_month.get(month, Decimal(0)) + usd
    declared = {pool["pool_name"]: pool for pool in pools}
    spend = table["fct_term_spend_monthly"].filter(term_kind="credits")
    rows: Rows = []
    for (name, currency, is_declared), by_month in sorted(used.items()):
        of_pool = declared[name] if is_declared else dict.fromkeys(_DECLARED)
        pool = {"pool_name": name, "billing_currency": currency, "is_declared": is_declared}
        of_term = {row["billing_month"]: row for row in spend.filter(term_name=name).to_dicts()} if is_declared else {}
        months = [
            {
                "billing_month": month,
                "is_open_month": is_open,
                "known_usd": by_month.get(month, Decimal(0)),
                "is_known": not is_declared or not of_term[month]["undelivered_payer_count"],
                "eligible_cost_usd": of_term[month]["eligible_cost_usd"] if is_declared else None,
            }
            for month, of_currency, is_open in table["fct_bill_total_monthly"].iter_rows()
            if of_currency == currency and (month in of_term or not is_declared)
        ]
        if months:
            pool |= {key: of_pool[key] for key in _DECLARED}
            rows += _rows(pool, months)
    return rows


def _rows(pool: Row, months: Rows) -> Iterator[Row]:
    issued, expiry, amount = pool["issued_date"], pool["expiry_date"], pool["issued_usd"]
    # A pool whose credits were all taken back has no use; it begins with the bills.
    begun = [month["billing_month"] for month in months if month["known_usd"]] or [months[0]["billing_month"]]
    first = min(issued.replace(day=1), *begun) if issued else min(begun)
    months = [month for month in months if month["billing_month"] >= first]
    for number, month in enumerate(months, start=1):
        past = months[:number]
        used = sum((each["known_usd"] for each in past), Decimal(0))
        to_expiry = None if expiry is None else months_between(month["billing_month"], expiry)
        is_expired = to_expiry is not None and to_expiry <= 0 and not month["is_open_month"]
        expired = max(amount - used, Decimal(0)) if is_expired and amount is not None else Decimal(0)
        remaining = None if amount is None else amount - used - expired
        history = _history(past)
        lasts = runway(history, float(remaining)) if remaining is not None else runway([], 1.0)
        months_to_expiry = None if to_expiry is None else max(to_expiry, 0)
        eligible_cost = month["eligible_cost_usd"]
        yield {
            **pool,
            "billing_month": month["billing_month"],
            "is_open_month": month["is_open_month"],
            "used_usd": month["known_usd"] if month["is_known"] else None,
            "cumulative_used_usd": used,
            "expired_usd": None if amount is None else expired,
            "remaining_usd": remaining,
            "eligible_cost_usd": eligible_cost,
            "cost_after_credits_usd": None if eligible_cost is None else eligible_cost - month["known_usd"],
            "history_month_count": len(history),
            "runway_months": lasts.months,
            "runway_low_months": lasts.low,
            "runway_high_months": lasts.high,
            "months_to_expiry": months_to_expiry,
            "unused_at_expiry_usd": _unused_at_expiry(months_to_expiry, remaining, history, month),
            "missing_evidence": _missing_evidence(amount, first, past, len(history)),
        }


def _history(months: Rows) -> list[float]:
    """Credits used in each closed month that is known, from the first with any use."""
    closed = [float(month["known_usd"]) for month in months if month["is_known"] and not month["is_open_month"]]
    first = next((number for number, used in enumerate(closed) if used), len(closed))
    return closed[first:]


def _unused_at_expiry(months: int | None, remaining: Decimal | None, history: list[float], month: Row) -> float | None:
    """What remains if whole months, the open `month` too, come to the mean."""
    if months is None or remaining is None or ((months or month["is_open_month"]) and not history):
        return None
    mean = sum(history) / len(history) if history else 0.0
    rest = max(mean - float(month["known_usd"]), 0.0) if month["is_open_month"] else 0.0
    return max(float(remaining) - rest - months * mean, 0.0)


def _missing_evidence(amount: Decimal | None, first: date, months: Rows, known: int) -> str | None:
    if amount is None:
        return "the issued amount is not declared: add it to [[terms.credits]]"
    missing = months_between(first, months[-1]["billing_month"]) + 1 - sum(month["is_known"] for month in months)
    if missing:
        return f"{counted(missing, 'month')} since it was issued without a bill"
    if known < FEWEST_MONTHS:
        return f"{counted(known, 'whole month')} of use; an interval needs {FEWEST_MONTHS}"
    return None
