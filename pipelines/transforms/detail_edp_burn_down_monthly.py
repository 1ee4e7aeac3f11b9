"""One row per agreement on spend and billing month of one of its periods: spent, remaining, forecast, shortfall.

Where the bill has no cost of some use, spend and what rests on it are unknown. A row uses the months up to its own
only, so that the forecasts of earlier months can be compared with what came.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import polars as pl

from pipelines.analysis.forecast import FEWEST_MONTHS, Ahead, months_ahead
from pipelines.transforms import Row, Rows

INPUTS = ("declared_agreement", "declared_agreement_period", "fct_term_spend_monthly")
_FORECAST = ("forecast_cost_usd", "forecast_low_cost_usd", "forecast_high_cost_usd")
_SHORTFALL = ("shortfall_usd", "shortfall_low_usd", "shortfall_high_usd")


@dataclass(frozen=True)
class Spend:
    """Spend that counts toward the agreement, by the first day of the billing month."""

    eligible: dict[date, Decimal | None]
    training: dict[date, Decimal | None]
    newest_open: date | None

    def closed_until(self, month: date) -> list[date]:
        """The closed months of known spend up to `month` without a gap, oldest first."""
        known = sorted(each for each, usd in self.eligible.items() if usd is not None)
        closed = [each for each in known if each <= month and each != self.newest_open]
        unbroken = closed[-1:]
        for each in reversed(closed[:-1]):
            if months_between(each, unbroken[0]) != 1:
                break
            unbroken.insert(0, each)
        return unbroken


def build(
    declared_agreement: pl.DataFrame, declared_agreement_period: pl.DataFrame, fct_term_spend_monthly: pl.DataFrame
) -> Rows:
    """Every agreement, for each month of its periods that has a bill."""
    rows: Rows = []
    for agreement in declared_agreement.sort("agreement_name").to_dicts():
        name = agreement["agreement_name"]
        months = fct_term_spend_monthly.filter(term_kind="agreement", term_name=name)
        open_months = months.filter("is_open_month")["billing_month"]
        spend = Spend(
            dict(months.select("billing_month", "eligible_cost_usd").iter_rows()),
            dict(months.select("billing_month", "training_cost_usd").iter_rows()),
            open_months[0] if len(open_months) else None,
        )
        carried: Decimal | None = Decimal(0)
        for period in declared_agreement_period.filter(agreement_name=name).sort("period_no").to_dicts():
            period_rows = list(_rows(agreement, period, carried, spend))
            rows += period_rows
            is_carried = agreement["shortfall_rule"] == "carried"
            carried = _shortfall(period_rows) if is_carried else Decimal(0)
    return rows


def months_between(first: date, last: date) -> int:
    return (last.year - first.year) * 12 + last.month - first.month


def _rows(agreement: Row, period: Row, carried: Decimal | None, spend: Spend) -> Iterator[Row]:
    first, last = period["period_started_date"], period["period_ended_date"]
    committed = None if carried is None else period["committed_cost_usd"] + carried
    months = [month for month in sorted(spend.eligible) if first <= month <= last]
    for month in months:
        past = [each for each in months if each <= month]
        spent = _sum(spend.eligible, past)
        history = spend.closed_until(month)
        spent_in_closed = _sum(spend.eligible, [each for each in past if each != spend.newest_open])
        owed = None if committed is None or spent is None else committed - spent
        remaining = months_between(month, last) + (month == spend.newest_open)
        ahead: Ahead | None = Ahead(0.0, 0.0, 0.0, "spent")
        if remaining:
            ahead = months_ahead([float(spend.eligible[each] or 0) for each in history], remaining)
        yield {
            "agreement_name": agreement["agreement_name"],
            "billing_month": month,
            "billing_currency": agreement["billing_currency"],
            **{key: period[key] for key in ("period_no", "period_started_date", "period_ended_date")},
            "is_open_month": month == spend.newest_open,
            "committed_cost_usd": period["committed_cost_usd"],
            "carried_cost_usd": carried,
            "eligible_cost_usd": spend.eligible[month],
            "training_cost_usd": spend.training[month],
            "cumulative_cost_usd": spent,
            "cumulative_training_cost_usd": _sum(spend.training, past),
            "remaining_cost_usd": owed,
            "remaining_month_count": remaining,
            "needed_per_month_usd": round(max(owed, Decimal(0)) / remaining, 10)
            if remaining and owed is not None
            else None,
            "history_month_count": len(history),
            "forecast_method": ahead.method if ahead and spent is not None else None,
            **_forecast(spent_in_closed, spent, committed, agreement["shortfall_rule"], ahead),
            "shortfall_rule": agreement["shortfall_rule"],
            "missing_evidence": _missing_evidence(first, past, len(history), remaining, spend),
        }


def _sum(costs: dict[date, Decimal | None], months: list[date]) -> Decimal | None:
    known = [usd for month in months if (usd := costs[month]) is not None]
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


def _shortfall(rows: Rows) -> Decimal | None:
    """The exact shortfall of a period that has ended, null where unknown; 0 while it runs."""
    if not rows or rows[-1]["remaining_month_count"]:
        return Decimal(0)
    owed = rows[-1]["remaining_cost_usd"]
    return None if owed is None else max(owed, Decimal(0))


def _missing_evidence(first: date, past: list[date], known: int, remaining: int, spend: Spend) -> str | None:
    uncosted = sum(spend.eligible[month] is None for month in past)
    if uncosted:
        return f"the bill has no cost of some use in {months_in_words(uncosted)} of the period"
    missing = months_between(first, past[-1]) + 1 - len(past)
    if missing:
        return f"{months_in_words(missing)} of the period before this one without a bill"
    if remaining and known < FEWEST_MONTHS:
        return f"{months_in_words(known, 'whole ')} of history; an interval needs {FEWEST_MONTHS}"
    return None


def months_in_words(count: int, kind: str = "") -> str:
    """1 month, 2 whole months."""
    return f"{count} {kind}month{'' if count == 1 else 's'}"
