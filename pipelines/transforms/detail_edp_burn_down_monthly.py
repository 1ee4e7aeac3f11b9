"""One row per agreement on spend and billing month of one of its periods: spent, remaining, forecast, shortfall.

Where a bill is missing or has no cost of some use, spend and what rests on it are unknown. A row uses the months up to
its own only, so that the forecasts of earlier months can be compared with what came.
"""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import polars as pl

from pipelines.analysis.forecast import FEWEST_MONTHS, Ahead, months_ahead
from pipelines.base.errors import counted
from pipelines.transforms import Row, Rows

INPUTS = ("declared_agreement", "declared_agreement_period", "fct_term_spend_monthly")
_OF_MONTH = ("billing_month", "is_open_month", "eligible_cost_usd", "training_cost_usd")
_FORECAST = ("forecast_cost_usd", "forecast_low_cost_usd", "forecast_high_cost_usd")
_SHORTFALL = ("shortfall_usd", "shortfall_low_usd", "shortfall_high_usd")


def build(
    declared_agreement: pl.DataFrame, declared_agreement_period: pl.DataFrame, fct_term_spend_monthly: pl.DataFrame
) -> Rows:
    """Every agreement, for each month of its periods that has a bill."""
    rows: Rows = []
    for agreement in declared_agreement.sort("agreement_name").to_dicts():
        name = agreement["agreement_name"]
        spend = fct_term_spend_monthly.filter(term_kind="agreement", term_name=name).sort("billing_month").to_dicts()
        # What is carried into a period, or why that is unknown.
        carried: Decimal | str = Decimal(0)
        for period in declared_agreement_period.filter(agreement_name=name).sort("period_no").to_dicts():
            first, last = period["period_started_date"], period["period_ended_date"]
            months = [month for month in spend if first <= month["billing_month"] <= last]
            period_rows = list(_rows(agreement, period, carried, months, spend))
            rows += period_rows
            if agreement["shortfall_rule"] == "carried" and not isinstance(carried, str):
                carried = _unknown(first, last, months) or max(period_rows[-1]["remaining_cost_usd"], Decimal(0))
    return rows


def months_between(first: date, last: date) -> int:
    return (last.year - first.year) * 12 + last.month - first.month


def _rows(agreement: Row, period: Row, carried: Decimal | str, months: Rows, spend: Rows) -> Iterator[Row]:
    first, last = period["period_started_date"], period["period_ended_date"]
    committed = None if isinstance(carried, str) else period["committed_cost_usd"] + carried
    for number, month in enumerate(months, start=1):
        past = months[:number]
        unknown = _unknown(first, month["billing_month"], past)
        spent = None if unknown else _sum(past, "eligible_cost_usd")
        history = _history([each for each in spend if each["billing_month"] <= month["billing_month"]])
        spent_in_closed = _sum([each for each in past if not each["is_open_month"]], "eligible_cost_usd")
        owed = None if committed is None or spent is None else committed - spent
        remaining = months_between(month["billing_month"], last) + month["is_open_month"]
        ahead = months_ahead(history, remaining) if remaining else Ahead(0.0, 0.0, 0.0, "spent")
        yield {
            **{key: month[key] for key in _OF_MONTH},
            "agreement_name": agreement["agreement_name"],
            "billing_currency": agreement["billing_currency"],
            **{key: period[key] for key in ("period_no", "period_started_date", "period_ended_date")},
            "committed_cost_usd": period["committed_cost_usd"],
            "carried_cost_usd": None if isinstance(carried, str) else carried,
            "cumulative_cost_usd": spent,
            "cumulative_training_cost_usd": None if unknown else _sum(past, "training_cost_usd"),
            "remaining_cost_usd": owed,
            "remaining_month_count": remaining,
            "needed_per_month_usd": round(max(owed, Decimal(0)) / remaining, 10)
            if remaining and owed is not None
            else None,
            "history_month_count": len(history),
            "forecast_method": ahead.method if ahead and spent is not None else None,
            **_forecast(spent_in_closed, spent, committed, agreement["shortfall_rule"], ahead),
            "shortfall_rule": agreement["shortfall_rule"],
            "missing_evidence": unknown or _missing_evidence(carried, len(history), remaining),
        }


def _history(months: Rows) -> list[float]:
    """The spend of the closed months without a gap up to the newest one, oldest first; unknown spend is a gap."""
    closed = [each for each in months if each["eligible_cost_usd"] is not None and not each["is_open_month"]]
    unbroken = closed[-1:]
    for each in reversed(closed[:-1]):
        if months_between(each["billing_month"], unbroken[0]["billing_month"]) != 1:
            break
        unbroken.insert(0, each)
    return [float(each["eligible_cost_usd"]) for each in unbroken]


def _sum(months: Rows, column: str) -> Decimal | None:
    known = [month[column] for month in months if month[column] is not None]
    return sum(known, Decimal(0)) if len(known) == len(months) else None


def _forecast(
    closed: Decimal | None, spent: Decimal | None, committed: Decimal | None, rule: str, ahead: Ahead | None
) -> Row:
    """Spend and shortfall at the end of the period, with their bounds; never less than is spent already."""
    sums = (ahead.total, ahead.low, ahead.high) if ahead else (None, None, None)
    ends: list[float | None] = [None] * 3
    if closed is not None and spent is not None:
        ends = [None if each is None else max(float(closed) + each, float(spent)) for each in sums]
    short: list[float | None] = [None if end is None or rule != "none" else 0.0 for end in ends]
    if committed is not None and rule != "none":
        short = [None if end is None else max(float(committed) - end, 0.0) for end in ends]
    return dict(zip((*_FORECAST, *_SHORTFALL), (*ends, short[0], short[2], short[1]), strict=True))


def _unknown(first: date, last: date, months: Rows) -> str | None:
    """Why the spend from one month to another is unknown; None where it is known."""
    undelivered = [month for month in months if month["undelivered_payer_count"]]
    if undelivered:
        others = sum(month["undelivered_payer_count"] for month in undelivered) - 1
        month = undelivered[0]
        named = f"no bill of payer {month['undelivered_payer_account_id']} for {month['billing_month']:%Y-%m}"
        return f"{named}, and {others} more" if others else named
    uncosted = sum(month["eligible_cost_usd"] is None for month in months)
    if uncosted:
        return f"the bill has no cost of some use in {counted(uncosted, 'month')} of the period"
    missing = months_between(first, last) + 1 - len(months)
    return f"{counted(missing, 'month')} of the period without a bill" if missing else None


def _missing_evidence(carried: Decimal | str, known: int, remaining: int) -> str | None:
    if isinstance(carried, str):
        return f"the shortfall carried over is unknown: {carried}"
    if remaining and known < FEWEST_MONTHS:
        return f"{counted(known, 'whole month')} of history; an interval needs {FEWEST_MONTHS}"
    return None
