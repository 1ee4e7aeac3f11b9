"""One row per run, team's day or month, or day of idle machines whose cost is far from its own history.

A run is held against the runs of its workload on its instance type that ended before it, a day against earlier days
with a cost, a month against earlier months. Days and the newest month may be incomplete, so only costlier ones count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import log
from statistics import median

import polars as pl

from pipelines.transforms import Row, Rows

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
        having count(effective_cost_usd) = count(*)
    """
}
# What a run is measured by: the first of these that its records measure.
_MEASURES = {
    "cost_per_million_tokens_usd": "per million tokens",
    "cost_per_epoch_usd": "per epoch",
    "effective_cost_usd": "per run",
}
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


def build(mart_run_cost: pl.DataFrame, mart_team_cost_monthly: pl.DataFrame, fct_ledger: pl.DataFrame) -> Rows:
    """The costs that are far off, each with its reason."""
    points = pl.concat([_runs(mart_run_cost), _months(mart_team_cost_monthly), _days(fct_ledger)])
    series = ["anomaly_kind", "series", "billing_currency", "anomaly_measure"]
    # By series, so that its order does not depend on how the table was written.
    ordered = points.filter(pl.col("cost") > 0).sort(*series, "at", "subject")
    found = [row for _, own in ordered.group_by(series, maintain_order=True) for row in _judged(own.to_dicts())]
    return sorted(found, key=lambda row: (row["anomaly_kind"], row["subject"], row["observed_date"]))


def _points(frame: pl.DataFrame, kind: str | pl.Expr, series: pl.Expr, *columns: str, measure: pl.Expr) -> pl.DataFrame:
    """Costs of series, each with when it was; `total` is the whole cost where `cost` is one per unit of work."""
    subject, at, cost, total = columns
    return frame.select(
        anomaly_kind=kind,
        subject=subject,
        series=series,
        at=pl.col(at).cast(pl.Datetime("us")),
        billing_currency="billing_currency",
        anomaly_measure=measure,
        cost=pl.col(cost).cast(pl.Float64),
        total=pl.col(total).cast(pl.Float64),
    )


def _runs(run: pl.DataFrame) -> pl.DataFrame:
    is_measured = {name: pl.col(name) != 0 for name in _MEASURES}
    # The cost of a run that the bill has in part is too low. Runs that record no model need not be of the same work.
    whole = pl.col("unbilled_hours").fill_null(0) == 0
    known = ~pl.col("workload_id").str.starts_with("? / ")
    measured = run.filter((pl.col("status") == "completed") & (pl.col("effective_cost_usd") > 0) & whole & known)
    measured = measured.with_columns(cost=pl.coalesce(pl.when(holds).then(name) for name, holds in is_measured.items()))
    series = pl.format("{} on {}", "workload_id", pl.col("instance_type").fill_null("no machine"))
    measure = pl.coalesce(pl.when(holds).then(pl.lit(_MEASURES[name])) for name, holds in is_measured.items())
    return _points(measured, pl.lit("run"), series, "run_id", "ended_at", "cost", "effective_cost_usd", measure=measure)


def _months(team: pl.DataFrame) -> pl.DataFrame:
    summed = (
        team.filter(pl.col("team") != "no team")
        .group_by("team", "billing_month", "billing_currency")
        .agg(pl.col("showback_cost_usd").sum(), pl.col("is_cost_partial").any())
        .filter(~pl.col("is_cost_partial"))
    )
    costs = ("team", "billing_month", "showback_cost_usd", "showback_cost_usd")
    return _points(summed, pl.lit("team_month"), pl.col("team"), *costs, measure=pl.lit("per month"))


def _days(day: pl.DataFrame) -> pl.DataFrame:
    costs = ("subject", "usage_date", "effective_cost_usd", "effective_cost_usd")
    return _points(day, pl.col("watched_kind"), pl.col("subject"), *costs, measure=pl.lit("per day"))


def _judged(points: Rows) -> Iterator[Row]:
    kind = KINDS[points[0]["anomaly_kind"]]
    for number, point in enumerate(points):
        cost, since = point["cost"], point["at"] - kind.reach
        # Seeds that end together are no history of one another.
        before = [one["cost"] for one in points[:number] if since <= one["at"] < point["at"]][-kind.most :]
        off = far_off(cost, before, below=kind.below) if len(before) >= kind.least else None
        excess = point["total"] * (1 - off.expected / cost) if off else 0.0
        if off is None or abs(excess) < LEAST_EXCESS:
            continue
        times, words = cost / off.expected, kind.words.format(series=point["series"])
        expected, low, high = map(_money, (off.expected, off.low, off.high))
        yield point | {
            "observed_date": point["at"].date(),
            "cost_basis": "effective",
            "observed_cost_usd": cost,
            "expected_cost_usd": off.expected,
            "history_low_cost_usd": off.low,
            "history_high_cost_usd": off.high,
            "history_count": len(before),
            "deviation_score": round(off.score, 1),
            "excess_cost_usd": excess,
            "anomaly_reason": f"{_money(cost)} {point['billing_currency']} {point['anomaly_measure']} is "
            f"{f'{times:.1f} times' if times >= 1 else f'{times:.0%} of'} the median of its {len(before)} {words}: "
            f"{expected}, lowest {low}, highest {high}",
        }


def _money(cost: float) -> str:
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.3g}"


# Of a normal distribution 1.4826 x MAD is the standard deviation.
_MAD_TO_DEVIATION = 1.4826
# Costs that never differed would make any difference infinitely far.
_LEAST_DEVIATION = 0.02
_BAR, _BAR_OF_FEW = 4.0, 15
# Smaller changes raise no alarm, however steady the history; nor do costs seen before.
LEAST_FACTOR = 1.5


@dataclass(frozen=True)
class FarOff:
    """What was to be expected, between what the history lay, and how many deviations off it is."""

    expected: float
    low: float
    high: float
    score: float


def far_off(observed: float, history: Sequence[float], *, below: bool) -> FarOff | None:
    """How far a cost is from its history; None where it is not far, or cheaper and `below` is not set.

    By median and median absolute deviation of logarithms, so that a few odd points in the history neither hide nor make
    an alarm (Iglewicz and Hoaglin 1993: modified z-score). The deviation of a short history is itself uncertain, so the
    bar is higher the shorter it is: of calm lognormal costs fewer than one in a thousand are taken for far off at any
    length. The history is of three costs or more, all above zero. What happened before is no news: the cost must also
    lie half as much again beyond all of its history but one.
    """
    ranked = sorted(history)
    logs = [log(cost) for cost in ranked]
    middle = median(logs)
    deviation = max(_MAD_TO_DEVIATION * median(abs(one - middle) for one in logs), _LEAST_DEVIATION)
    distance = log(observed) - middle
    bar = _BAR * (1 + _BAR_OF_FEW / (len(ranked) - 2)) * deviation
    is_expensive = distance > bar and observed >= LEAST_FACTOR * ranked[-2]
    is_cheap = below and -distance > bar and observed * LEAST_FACTOR <= ranked[1]
    if not is_expensive and not is_cheap:
        return None
    return FarOff(median(ranked), ranked[0], ranked[-1], abs(distance) / deviation)
