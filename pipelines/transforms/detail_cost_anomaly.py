"""One row per run, team's day or month, or day of idle machines whose cost is far from its own history.

A run is held against the runs of its workload on its instance type that ended before it, a day against earlier days
with a cost, a month against earlier months. Days and the newest month may be incomplete, so only costlier ones count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl

from pipelines.analysis.far_off import FarOff, far_off

INPUTS = ("mart_run_cost", "mart_team_cost_monthly", "fct_ledger")
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
    """
}
# What a run is measured by: the first of these that its records measure.
_MEASURES = {
    "cost_per_million_tokens_usd": "per million tokens",
    "cost_per_epoch_usd": "per epoch",
    "effective_cost_usd": "per run",
}
# Less money than this is nobody's alarm, in any currency.
LEAST_EXCESS = 10.0
_SCHEMA = {
    "anomaly_kind": pl.String,
    "subject": pl.String,
    "observed_date": pl.Date,
    "billing_currency": pl.String,
    "cost_basis": pl.String,
    "anomaly_measure": pl.String,
    "observed_cost_usd": pl.Float64,
    "expected_cost_usd": pl.Float64,
    "history_low_cost_usd": pl.Float64,
    "history_high_cost_usd": pl.Float64,
    "history_count": pl.Int64,
    "deviation_score": pl.Float64,
    "excess_cost_usd": pl.Float64,
    "anomaly_reason": pl.String,
}


@dataclass(frozen=True)
class Kind:
    """How a kind is judged: the least and most points of its history, how far back they reach, what they are called."""

    least: int
    most: int
    reach: timedelta
    below: bool
    words: str


KINDS = {
    "run": Kind(8, 40, timedelta(days=365), True, "earlier runs of {series}"),
    "team_day": Kind(14, 56, timedelta(days=90), False, "earlier days with a cost"),
    "team_month": Kind(8, 24, timedelta(days=800), False, "earlier months"),
    "idle_day": Kind(14, 56, timedelta(days=90), False, "earlier days with idle machines"),
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


def build(mart_run_cost: pl.DataFrame, mart_team_cost_monthly: pl.DataFrame, fct_ledger: pl.DataFrame) -> pl.DataFrame:
    """The costs that are far off, each with its reason."""
    series: dict[tuple[str, ...], list[Point]] = defaultdict(list)
    points = [*_runs(mart_run_cost), *_months(mart_team_cost_monthly), *_days(fct_ledger)]
    for point in sorted(points, key=lambda point: (point.at, point.subject)):
        series[point.kind, point.series, point.currency, point.measure].append(point)
    found = [row for _, history in sorted(series.items()) for row in _judged(history)]
    return pl.DataFrame(found, schema=_SCHEMA, orient="row").sort("anomaly_kind", "subject", "observed_date")


def _runs(frame: pl.DataFrame) -> Iterator[Point]:
    for run in frame.filter((pl.col("status") == "completed") & (pl.col("effective_cost_usd") > 0)).to_dicts():
        name = next(name for name in _MEASURES if run[name])
        series = f"{run['workload_id']} on {run['instance_type']}"
        cost, total, currency = float(run[name]), float(run["effective_cost_usd"]), run["billing_currency"]
        yield Point("run", run["run_id"], series, run["ended_at"], currency, _MEASURES[name], cost, total)


def _months(frame: pl.DataFrame) -> Iterator[Point]:
    by = ("team", "billing_month", "billing_currency")
    summed = frame.group_by(by).agg(pl.col("showback_cost_usd").sum()).filter(pl.col("team") != "no team")
    for team, month, currency, cost in summed.iter_rows():
        if cost > 0:
            yield Point("team_month", team, team, _moment(month), currency, "per month", float(cost), float(cost))


def _days(frame: pl.DataFrame) -> Iterator[Point]:
    columns = ("watched_kind", "subject", "usage_date", "billing_currency", "effective_cost_usd")
    for kind, subject, day, currency, cost in frame.select(columns).iter_rows():
        if cost > 0:
            yield Point(kind, subject, subject, _moment(day), currency, "per day", float(cost), float(cost))


def _moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _judged(points: list[Point]) -> Iterator[dict[str, Any]]:
    kind = KINDS[points[0].kind]
    for number, point in enumerate(points):
        since = point.at - kind.reach
        # Seeds that end together are no history of one another.
        before = [one.cost for one in points[:number] if since <= one.at < point.at][-kind.most :]
        if len(before) < kind.least:
            continue
        off = far_off(point.cost, before, below=kind.below)
        if off:
            excess = point.total * (1 - off.expected / point.cost)
            if abs(excess) >= LEAST_EXCESS:
                yield _row(point, off, len(before), excess)


def _row(point: Point, off: FarOff, count: int, excess: float) -> dict[str, Any]:
    return {
        "anomaly_kind": point.kind,
        "subject": point.subject,
        "observed_date": point.at.date(),
        "billing_currency": point.currency,
        "cost_basis": "effective",
        "anomaly_measure": point.measure,
        # Six places, for further ones differ from machine to machine.
        "observed_cost_usd": round(point.cost, 6),
        "expected_cost_usd": round(off.expected, 6),
        "history_low_cost_usd": round(off.low, 6),
        "history_high_cost_usd": round(off.high, 6),
        "history_count": count,
        "deviation_score": round(off.score, 1),
        "excess_cost_usd": round(excess, 6),
        "anomaly_reason": _reason(point, off, count),
    }


def _reason(point: Point, off: FarOff, count: int) -> str:
    times, words = point.cost / off.expected, KINDS[point.kind].words.format(series=point.series)
    compared = f"{times:.1f} times" if times >= 1 else f"{times:.0%} of"
    return (
        f"{_money(point.cost)} {point.currency} {point.measure} is {compared} the median of its {count} {words}, "
        f"{_money(off.expected)}, which lay between {_money(off.low)} and {_money(off.high)}"
    )


def _money(cost: float) -> str:
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.3g}"
