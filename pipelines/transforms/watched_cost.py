"""The costs that are watched, as points of series: of runs, of teams by day and month, and of days of idle machines."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl

# What a team used in a day, and what the machines of an account and family cost while they idled.
QUERIES = {
    "fct_ledger": """
        select watched_kind, subject, usage_date, billing_currency, sum(effective_cost_usd) as effective_cost_usd
        from (
            select 'team_day' as watched_kind, team as subject, usage_date, billing_currency, effective_cost_usd
            from fct_ledger
            where bucket <> 'shared' and charge_category = 'Usage' and team is not null
            union all
            select 'idle_day', 'account ' || account_id || ', ' || accelerator_family, usage_date, billing_currency,
                effective_cost_usd
            from fct_ledger
            where bucket = 'idle'
        ) as watched
        group by watched_kind, subject, usage_date, billing_currency
        having count(effective_cost_usd) = count(*)
    """
}
# What a run is measured by: the first of these that its records measure.
_MEASURES = {
    "cost_per_million_tokens_usd": "per million tokens",
    "cost_per_epoch_usd": "per epoch",
    "effective_cost_usd": "per run",
}


@dataclass(frozen=True)
class Point:
    """One cost of a series; `total` is the whole cost where `cost` is one per unit of work."""

    kind: str
    subject: str
    series: str
    at: datetime
    currency: str
    measure: str
    cost: float
    total: float


def watched_points(
    mart_run_cost: pl.DataFrame, mart_team_cost_monthly: pl.DataFrame, ledger_days: pl.DataFrame
) -> list[Point]:
    """Every known cost above zero, oldest first; `ledger_days` is what QUERIES has of the ledger."""
    points = [*_runs(mart_run_cost), *_months(mart_team_cost_monthly), *_days(ledger_days)]
    return sorted(points, key=lambda point: (point.at, point.subject))


def _runs(frame: pl.DataFrame) -> Iterator[Point]:
    for run in frame.filter((pl.col("status") == "completed") & (pl.col("effective_cost_usd") > 0)).to_dicts():
        name = next(name for name in _MEASURES if run[name])
        series = f"{run['workload_id']} on {run['instance_type']}"
        cost, total, currency = float(run[name]), float(run["effective_cost_usd"]), run["billing_currency"]
        yield Point("run", run["run_id"], series, run["ended_at"], currency, _MEASURES[name], cost, total)


def _months(frame: pl.DataFrame) -> Iterator[Point]:
    by = ("team", "billing_month", "billing_currency")
    summed = frame.group_by(by).agg(pl.col("showback_cost_usd").sum(), pl.col("is_cost_partial").any())
    for team, month, currency, cost, is_partial in summed.filter(pl.col("team") != "no team").iter_rows():
        if cost > 0 and not is_partial:
            yield Point("team_month", team, team, _moment(month), currency, "per month", float(cost), float(cost))


def _days(frame: pl.DataFrame) -> Iterator[Point]:
    columns = ("watched_kind", "subject", "usage_date", "billing_currency", "effective_cost_usd")
    for kind, subject, day, currency, cost in frame.select(columns).iter_rows():
        if cost > 0:
            yield Point(kind, subject, subject, _moment(day), currency, "per day", float(cost), float(cost))


def _moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)
