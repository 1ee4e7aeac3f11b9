"""One row per run, team's day or month, or day of idle machines whose cost is far from its own history.

A run is held against the runs of its workload on its instance type that ended before it, a day against earlier days
with a cost, a month against earlier months. Days and the newest month may be incomplete, so only costlier ones count.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import polars as pl

from pipelines.analysis.far_off import FarOff, far_off
from pipelines.transforms import watched_cost
from pipelines.transforms.watched_cost import Point, watched_points

INPUTS = ("mart_run_cost", "mart_team_cost_monthly", "fct_ledger")
QUERIES = watched_cost.QUERIES
# Less money than this raises no alarm, in any currency.
LEAST_EXCESS = 10.0


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


def build(
    mart_run_cost: pl.DataFrame, mart_team_cost_monthly: pl.DataFrame, fct_ledger: pl.DataFrame
) -> list[dict[str, Any]]:
    """The costs that are far off, each with its reason."""
    series: dict[tuple[str, ...], list[Point]] = defaultdict(list)
    for point in watched_points(mart_run_cost, mart_team_cost_monthly, fct_ledger):
        series[point.kind, point.series, point.currency, point.measure].append(point)
    found = [row for _, history in sorted(series.items()) for row in _judged(history)]
    return sorted(found, key=lambda row: (row["anomaly_kind"], row["subject"], row["observed_date"]))


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
        "observed_cost_usd": point.cost,
        "expected_cost_usd": off.expected,
        "history_low_cost_usd": off.low,
        "history_high_cost_usd": off.high,
        "history_count": count,
        "deviation_score": round(off.score, 1),
        "excess_cost_usd": excess,
        "anomaly_reason": _reason(point, off, count),
    }


def _reason(point: Point, off: FarOff, count: int) -> str:
    times, words = point.cost / off.expected, KINDS[point.kind].words.format(series=point.series)
    compared = f"{times:.1f} times" if times >= 1 else f"{times:.0%} of"
    return (
        f"{_money(point.cost)} {point.currency} {point.measure} is {compared} the median of its {count} {words}: "
        f"{_money(off.expected)}, lowest {_money(off.low)}, highest {_money(off.high)}"
    )


def _money(cost: float) -> str:
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.3g}"
