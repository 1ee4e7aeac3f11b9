"""One row per model × way it is served × other way to serve it: cost of the same traffic, crossover, verdict."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

import polars as pl

from pipelines.analysis import crossover
from pipelines.analysis.crossover import KINDS, MONTH_DAYS, MONTH_HOURS, UNDECIDED, Capacity, blended_price
from pipelines.analysis.estimate import Estimate
from pipelines.transforms import Row, Rows, serving_query, serving_side
from pipelines.transforms.price_book import prices_of
from pipelines.transforms.serving_candidate import Candidate, candidate_of, is_itself, served_options
from pipelines.transforms.serving_side import BASES, Side, sides_of

INPUTS = (*serving_side.INPUTS, "mart_price_book", "declared_serving", "fct_charge_sum_monthly")
QUERIES = serving_query.QUERIES


def build(**table: pl.DataFrame) -> Rows:
    """Every declared way to serve a model that the bill shows, and every other way it is served in already."""
    prices = prices_of(table["mart_price_book"])
    sides = sides_of(table, prices)
    declared = table["declared_serving"].sort("serving_no").to_dicts()
    options = [*declared, *served_options(sides, declared)]
    unserved = sorted({one["model"] for one in declared} - {side.model for side in sides})
    rows = []
    for side in sides:
        own = [one for one in options if one["model"] == side.model and not is_itself(one, side)]
        gaps = [*_undiscounted(side, table["fct_charge_sum_monthly"])]
        found = [_row(side, candidate_of(option, side, sides, prices), gaps) for option in own]
        rows += found or [_alone(side, unserved)]
    return rows


def _alone(side: Side, unserved: Sequence[str]) -> Row:
    lacking = "no serving alternative is measured or declared in [[decisions.serving]]"
    if unserved:
        names = ", ".join(map(repr, unserved))
        lacking += f", only for {names}, which nothing serves: correct the model if {side.model!r} is meant"
    if not any(side.tokens.values()):
        lacking += f"; {_no_tokens(side)}"
    lacking += f"; {side.uncounted}" if side.uncounted else ""
    return _today(side) | {"verdict": UNDECIDED, "verdict_reason": lacking, "missing_evidence": lacking}


def _undiscounted(side: Side, discounts: pl.DataFrame) -> Iterator[str]:
    """That what serves today costs less than its lines: a candidate may seem cheaper than it is."""
    months = {day.replace(day=1) for day in side.dates}
    own = discounts.filter(pl.col("billing_month").is_in(months), billing_currency=side.currency, family=side.family)
    if usd := own["discount_usd"].sum():
        yield f"today's cost lacks discounts of {side.currency} {abs(usd):,.2f}, on lines of their own on the bill"


def _no_tokens(side: Side) -> str:
    """Why nothing is known of what a side served."""
    return "the tokens of no day are completely known" if side.peak else "no traffic is recorded"


def _today(side: Side) -> Row:
    """The columns of the baseline."""
    tokens, effective, days = side.tokens, side.costs("effective"), len(side.dates)
    whole = sum(tokens.values())
    row: Row = {
        "model": side.model,
        "billing_currency": side.currency,
        "baseline_platform": side.platform,
        "baseline_family": side.family,
        "baseline_instance_type": side.instance_type,
        "baseline_tier": side.tier,
        "price_date": side.dates[-1],
        "day_count": days,
        "tokens_per_month": whole / days * MONTH_DAYS or None,
        "output_ratio": side.output_ratio,
        "peak_tokens_per_second": side.peak or None,
    }
    if effective is not None:
        row["baseline_cost_per_month_usd"] = sum(effective) / days * MONTH_DAYS
        row["baseline_cost_per_million_total_usd"] = sum(effective) * 1e6 / whole if whole else None
    return row


def _row(side: Side, candidate: Candidate, gaps: Sequence[str]) -> Row:
    option, capacity, gaps = candidate.option, candidate.capacity, [*candidate.gaps, *gaps]
    whole, days = sum(side.tokens.values()), len(side.dates)
    row = _today(side) | {
        "candidate_model": option["candidate_model"],
        "candidate_platform": candidate.platform,
        "candidate_family": candidate.family,
        "candidate_instance_type": option["instance_type"],
        "candidate_source": option["source"],
        "throughput_evidence": candidate.throughput_evidence,
    }
    faults = [*candidate.faults] if whole else [*candidate.faults, _no_tokens(side)]
    faults += [side.uncounted] if side.uncounted and side.uncounted not in faults else []
    per_day = {basis: None if faults else _day_costs(side, candidate, basis) for basis in BASES}
    after = per_day["effective"]
    if after is not None:
        row["candidate_cost_per_month_usd"] = sum(after) / days * MONTH_DAYS
        row["candidate_cost_per_million_total_usd"] = sum(after) * 1e6 / whole
    elif not faults:
        faults.append("a kind of token has no price: declare input_usd and output_usd")
    row |= _crossover(side, candidate, row) if not faults else {}
    if capacity is not None:
        row["candidate_price_per_hour_usd"] = capacity.usd_per_hour
        if not candidate.faults:
            row |= {"candidate_tokens_per_second": capacity.tokens_per_second, "replica_count": capacity.replicas}
    estimates = {basis: _estimate(side, per_day[basis], basis) for basis in BASES} if not faults else {}
    found = estimates.get("effective")
    if found is not None:
        row |= {"saving_ratio": found.saving, "saving_low_ratio": found.low, "saving_high_ratio": found.high}
        row |= _payback(option, row)
    utilization = row.get("crossover_utilization_ratio")
    verdict, reason, recommended = crossover.judge(
        (side.is_capacity, option["is_capacity"]),
        estimates,
        utilization is not None and utilization > 1,
        gaps,
        faults,
    )
    if found is not None and found.low is not None:
        weeks = len({day.isocalendar()[:2] for day in compress(side.dates, side.is_used)})
        reason += f"; {days} days, {weeks} weeks with traffic"
    platforms = side.family, candidate.family
    missing = [*faults, *gaps]
    if side.unmeasured_days:
        missing.append(f"days left out because their tokens or costs are not all known: {side.unmeasured_days}")
    if side.changed_on:
        missing.append(f"days up to {side.changed_on} are left out: a list price has changed since")
    return row | {
        "verdict": verdict,
        "verdict_reason": reason,
        "recommended_family": None if recommended is None else platforms[recommended],
        "missing_evidence": "; ".join(missing) or None,
    }


def _day_costs(side: Side, candidate: Candidate, basis: str) -> list[float] | None:
    """What the candidate costs for each day's tokens; None where that is unknown."""
    if candidate.option["is_capacity"]:
        capacity = candidate.capacity
        return None if capacity is None else [capacity.month_usd / MONTH_DAYS] * len(side.dates)
    upkeep = float(candidate.option["upkeep_usd_per_month"])
    port = float(candidate.option["port_cost_usd"]) / candidate.option["horizon_months"]
    costs = []
    for day in side.days.iter_rows(named=True):
        tokens = {kind: float(day[f"{kind}_tokens"]) for kind in KINDS}
        price = blended_price(tokens, candidate.prices[basis]) if any(tokens.values()) else 0.0
        if price is None:
            return None
        costs.append(price * sum(tokens.values()) / 1e6 + (upkeep + port) / MONTH_DAYS)
    return costs


def _crossover(side: Side, candidate: Candidate, row: Mapping[str, Any]) -> Row:
    """Where capacity and tokens cost the same; empty where both sides are of one kind or a price is unknown."""
    if side.is_capacity == candidate.option["is_capacity"]:
        return {}
    capacity = _fleet(side, row) if side.is_capacity else candidate.capacity
    prices = candidate.prices["effective"] if side.is_capacity else side.prices("effective")
    price = blended_price(side.tokens, prices)
    if capacity is None or price is None:
        return {"blended_price_usd": price}
    volume = crossover.crossover_tokens(capacity, price)
    today = row["tokens_per_month"]
    return {
        "blended_price_usd": price,
        "crossover_tokens_per_month": volume,
        "crossover_utilization_ratio": crossover.crossover_utilization(capacity, price),
        "traffic_multiple": volume / today if volume is not None and today else None,
        "break_even_tokens_per_second": crossover.break_even_tokens_per_second(capacity.usd_per_hour, price),
    }


def _fleet(side: Side, row: Mapping[str, Any]) -> Capacity | None:
    """The servers of a baseline as one replica: what it costs an hour, idle included, and serves while up."""
    month_usd = row.get("baseline_cost_per_month_usd")
    if month_usd is None:
        return None
    share_up = side.up_seconds / (len(side.dates) * 86400)
    return Capacity(month_usd / MONTH_HOURS, side.capacity * share_up if side.capacity else None)


def _estimate(side: Side, after: Sequence[float] | None, basis: str) -> Estimate | None:
    before = side.costs(basis)
    if before is None or after is None or sum(before) <= 0 or sum(after) <= 0:
        return None
    return crossover.saving_of_days(side.dates, side.is_used, before, after)


def _payback(option: Mapping[str, Any], row: Mapping[str, Any]) -> Row:
    """Months until what a move costs once is saved; none where it saves nothing."""
    port = float(option["port_cost_usd"])
    saved = row["baseline_cost_per_month_usd"] - row["candidate_cost_per_month_usd"] + port / option["horizon_months"]
    return {"port_cost_usd": port, "payback_months": port / saved if saved > 0 else None}
