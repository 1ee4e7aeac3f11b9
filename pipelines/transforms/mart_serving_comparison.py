"""One row per model × way it is served × other way to serve it: cost of the same traffic, crossover, verdict."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipelines.analysis.crossover import (
    KINDS,
    MONTH_DAYS,
    MONTH_HOURS,
    UNDECIDED,
    Capacity,
    Found,
    blended_price,
    break_even_tokens_per_second,
    crossover_tokens,
    crossover_utilization,
    judge,
    saving_of_days,
)
from pipelines.analysis.estimate import Estimate
from pipelines.analysis.verdict import percent
from pipelines.transforms import serving_side
from pipelines.transforms.port_case import CURRENCY
from pipelines.transforms.run_pair import price_on, prices_of
from pipelines.transforms.serving_side import BASES, BEDROCK, Side, sides_of

INPUTS = (*serving_side.INPUTS, "mart_price_book", "declared_serving")
QUERIES = serving_side.QUERIES
# Points of output tokens by which the mix of a throughput may differ from the traffic (facts serving 5).
_MIX = 0.10
_PRICES = {kind: f"{kind}_usd" for kind in KINDS}


@dataclass(frozen=True)
class Candidate:
    """Another way to serve a baseline's traffic: `capacity` with its price, or `prices` of tokens by basis.

    `option` is its declaration; `faults` are what keeps its cost unknown.
    """

    option: Mapping[str, Any]
    platform: str
    family: str
    capacity: Capacity | None
    prices: Mapping[str, Mapping[str, float | None]]
    throughput_evidence: str | None
    gaps: tuple[str, ...]
    faults: tuple[str, ...]


def build(**table: pl.DataFrame) -> list[dict[str, Any]]:
    """Every declared way to serve a model that the bill shows, and every other way it is served in already."""
    sides, prices = sides_of(table), prices_of(table["mart_price_book"])
    declared = table["declared_serving"].sort("serving_no").to_dicts()
    options = [*declared, *_served(sides, declared)]
    rows = []
    for side in sides:
        own = [one for one in options if one["model"] == side.model and not _is_itself(one, side)]
        rows += [_row(side, _candidate(option, side, sides, prices)) for option in own] or [_alone(side)]
    return rows


def _alone(side: Side) -> dict[str, Any]:
    lacking = "no other way to serve it is measured or declared in [[decisions.serving]]"
    if not any(side.tokens.values()):
        lacking += "; no traffic is recorded"
    return _today(side) | {"verdict": UNDECIDED, "verdict_reason": lacking, "missing_evidence": lacking}


def _is_itself(option: Mapping[str, Any], side: Side) -> bool:
    is_same_model = option["candidate_model"] == side.model
    if option["is_capacity"]:
        return is_same_model and option["usd_per_hour"] is None and option["instance_type"] == side.instance_type
    return is_same_model and not side.is_capacity and option["input_usd"] is None


def _served(sides: Sequence[Side], declared: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """A model that is served in several ways is compared without a declaration."""
    known = {(one["model"], one["is_capacity"], one["instance_type"]) for one in declared}
    for model, is_capacity, instance_type, family in dict.fromkeys(
        (side.model, side.is_capacity, side.instance_type, side.family) for side in sides
    ):
        # Provisioned units have no throughput that could be measured.
        if (model, is_capacity, instance_type) in known or (is_capacity and instance_type is None):
            continue
        precisions = {side.precision for side in sides if side.model == model and side.is_capacity}
        is_same = len(precisions) == 1 and None not in precisions and is_capacity
        yield {
            "model": model,
            "candidate_model": model,
            "is_capacity": is_capacity,
            "instance_type": instance_type,
            "accelerator_family": family,
            "is_same_quality": True if is_same else None,
            **dict.fromkeys(
                ("region_id", "usd_per_hour", "tokens_per_second", "output_ratio", "source", "meets_latency")
            ),
            **dict.fromkeys(_PRICES.values()),
            **{"port_cost_usd": 0, "upkeep_usd_per_month": 0, "horizon_months": 12},
        }


def _candidate(option: Mapping[str, Any], side: Side, sides: Sequence[Side], prices: Any) -> Candidate:
    name, instance_type = option["candidate_model"], option["instance_type"]
    like = [one for one in sides if one.model == name and one.currency == side.currency]
    measured = next((one for one in like if one.instance_type == instance_type and one.is_capacity), None)
    gaps = [] if option["is_same_quality"] else [_unshown(option["is_same_quality"], "has the same quality")]
    faults = [] if side.currency == CURRENCY else [f"prices are declared in {CURRENCY}, the bill is in {side.currency}"]
    if not option["is_capacity"]:
        managed = next((one for one in like if not one.is_capacity), None)
        declared = {kind: _float(option[column]) for kind, column in _PRICES.items()}
        by_basis = {basis: declared if declared["input"] is not None else managed.prices(basis) if managed else {}
                    for basis in BASES}  # fmt: skip
        if option["meets_latency"] is not True:
            gaps.append(_unshown(option["meets_latency"], "meets the latency target"))
        return Candidate(option, BEDROCK, BEDROCK, None, by_basis, None, tuple(gaps), tuple(faults))
    family = option["accelerator_family"] or BEDROCK
    speed, evidence, mix = _float(option["tokens_per_second"]), "declared", _float(option["output_ratio"])
    if speed is not None:
        speed /= mix or side.output_ratio or 1
    elif measured is not None:
        speed, evidence, mix = measured.capacity, "measured", measured.output_ratio
    if speed is not None and mix is None and side.output_ratio:
        gaps.append("the mix of tokens of its benchmark is not declared (output_ratio)")
    elif speed is not None and abs((mix or 0) - (side.output_ratio or 0)) > _MIX:
        found, wanted = percent(mix or 0), percent(side.output_ratio or 0)
        faults.append(f"its throughput is of {found} output tokens, and the traffic has {wanted}")
        speed = None
    elif speed is None:
        faults.append(f"no throughput of {instance_type or name} is measured or declared at the latency target")
    # A throughput counts as measured only while the latency target held.
    if evidence == "declared" and option["meets_latency"] is not True:
        gaps.append(_unshown(option["meets_latency"], "meets the latency target"))
    place = {"instance_type": instance_type, "region_id": option["region_id"] or side.region_id}
    hourly = _float(option["usd_per_hour"])
    if hourly is None:
        hourly = price_on(prices, {**place, "billing_currency": side.currency}, side.dates[-1])
    if hourly is None:
        faults.append(f"the price book has no price of {instance_type} in {place['region_id'] or 'an unknown region'}")
    if not side.is_peak_measured:
        gaps.append("the busiest hour is not known: read the invocation log as a [[serving]] source")
    monthly = float(option["upkeep_usd_per_month"]) + float(option["port_cost_usd"]) / option["horizon_months"]
    capacity = None
    if hourly is not None:
        capacity = Capacity(hourly, speed, monthly_usd=monthly).for_peak(side.peak)
    platform = "sagemaker" if (instance_type or "").startswith("ml.") else family
    return Candidate(
        option, platform, family, capacity, {}, evidence if speed else None, tuple(gaps), tuple(dict.fromkeys(faults))
    )


def _unshown(known: bool | None, what: str) -> str:
    return f"the candidate does not {what}" if known is False else f"nothing shows that the candidate {what}"


def _today(side: Side) -> dict[str, Any]:
    """The columns of the baseline."""
    tokens, effective, days = side.tokens, side.costs("effective"), len(side.dates)
    whole = sum(tokens.values())
    row: dict[str, Any] = {
        "model": side.model,
        "billing_currency": side.currency,
        "baseline_platform": side.platform,
        "baseline_family": side.family,
        "baseline_instance_type": side.instance_type,
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


def _row(side: Side, candidate: Candidate) -> dict[str, Any]:
    option, capacity = candidate.option, candidate.capacity
    whole, days = sum(side.tokens.values()), len(side.dates)
    row = _today(side) | {
        "candidate_model": option["candidate_model"],
        "candidate_platform": candidate.platform,
        "candidate_family": candidate.family,
        "candidate_instance_type": option["instance_type"],
        "candidate_source": option["source"],
        "throughput_evidence": candidate.throughput_evidence,
    }
    faults = [*candidate.faults] if whole else [*candidate.faults, "no traffic is recorded"]
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
    verdict, reason, recommended = judge(
        Found(
            (side.is_capacity, option["is_capacity"]),
            estimates,
            utilization is not None and utilization > 1,
            candidate.gaps,
            faults,
        )
    )
    if found is not None and found.low is not None:
        weeks = len({day.isocalendar()[:2] for day in side.dates})
        reason += f"; {days} days in {weeks} weeks"
    platforms = side.family, candidate.family
    missing = [*faults, *candidate.gaps]
    if side.unmeasured_days:
        missing.append(f"{side.unmeasured_days} days whose tokens are not all known are left out")
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


def _crossover(side: Side, candidate: Candidate, row: Mapping[str, Any]) -> dict[str, Any]:
    """Where capacity and tokens cost the same; empty where both sides are of one kind or a price is unknown."""
    if side.is_capacity == candidate.option["is_capacity"]:
        return {}
    capacity = _fleet(side, row) if side.is_capacity else candidate.capacity
    prices = candidate.prices["effective"] if side.is_capacity else side.prices("effective")
    price = blended_price(side.tokens, prices)
    if capacity is None or price is None:
        return {"blended_price_usd": price}
    volume = crossover_tokens(capacity, price)
    today = row["tokens_per_month"]
    return {
        "blended_price_usd": price,
        "crossover_tokens_per_month": volume,
        "crossover_utilization_ratio": crossover_utilization(capacity, price),
        "traffic_multiple": volume / today if volume is not None and today else None,
        "break_even_tokens_per_second": break_even_tokens_per_second(capacity.usd_per_hour, price),
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
    return saving_of_days(side.dates, before, after)


def _payback(option: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Months until what a move costs once is saved; none where it saves nothing."""
    port = float(option["port_cost_usd"])
    saved = row["baseline_cost_per_month_usd"] - row["candidate_cost_per_month_usd"] + port / option["horizon_months"]
    return {"port_cost_usd": port, "payback_months": port / saved if saved > 0 else None}


def _float(value: Any) -> float | None:
    return None if value is None else float(value)
