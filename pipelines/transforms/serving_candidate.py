"""Other ways to serve a model, declared or in use already: price and throughput of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from operator import gt
from typing import Any

from pipelines.analysis.crossover import KINDS, Capacity
from pipelines.analysis.verdict import percent
from pipelines.transforms import Row, number
from pipelines.transforms.port_case import CURRENCY
from pipelines.transforms.price_book import Prices, price_on
from pipelines.transforms.serving_side import BASES, BEDROCK, WINDOW_DAYS, Side

# Points of output tokens by which the mix of a throughput may differ from the traffic (facts serving 5).
_MIX = 0.10
# What a declaration denies, and its name where it is missing.
_QUALITY = ("does not have the same quality", "equal quality")
_LATENCY = ("does not meet the latency target", "compliance with the latency target")
_PRICES = {kind: f"{kind}_usd" for kind in KINDS}
# What a declaration has and a way of serving that is in use need not.
_UNDECLARED = (
    "is_same_quality", "meets_latency", "source", "region_id", "usd_per_hour", "tokens_per_second", "output_ratio",
)  # fmt: skip


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


def is_itself(option: Mapping[str, Any], side: Side) -> bool:
    """Whether the option is how the side is served already."""
    is_same_model = option["candidate_model"] == side.model
    if option["is_capacity"]:
        is_here = option["usd_per_hour"] is None and option["region_id"] in (None, side.region_id)
        return is_same_model and is_here and option["instance_type"] == side.instance_type
    return is_same_model and not side.is_capacity and option["input_usd"] is None


def served_options(sides: Sequence[Side], declared: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """A model that is served in several ways is compared without a declaration; another model does not replace it."""
    own = (one for one in declared if one["candidate_model"] == one["model"])
    known = {(one["model"], one["is_capacity"], one["instance_type"]) for one in own}
    for model, is_capacity, instance_type, family in dict.fromkeys(
        (side.model, side.is_capacity, side.instance_type, side.family) for side in sides
    ):
        # Provisioned units have no throughput that could be measured.
        if (model, is_capacity, instance_type) in known or (is_capacity and instance_type is None):
            continue
        yield {
            "model": model,
            "candidate_model": model,
            "is_capacity": is_capacity,
            "instance_type": instance_type,
            "accelerator_family": family,
            **dict.fromkeys((*_UNDECLARED, *_PRICES.values())),
            **{"port_cost_usd": 0, "upkeep_usd_per_month": 0, "horizon_months": 12},
        }


def candidate_of(option: Mapping[str, Any], side: Side, sides: Sequence[Side], prices: Prices) -> Candidate:
    """The option as it would serve the side's traffic; `sides` are all that are measured, `prices` of prices_of."""
    name, instance_type = option["candidate_model"], option["instance_type"]
    like = [one for one in sides if one.model == name and one.currency == side.currency]
    measured = next((one for one in like if one.instance_type == instance_type and one.is_capacity), None)
    managed = next((one for one in like if not one.is_capacity), None)
    known = measured if option["is_capacity"] else managed
    is_same = option["is_same_quality"]
    # Nothing shows the precision of Bedrock: two servers of our own alone are alike without a declaration.
    if is_same is None and known and name == side.model and known.precision and known.precision == side.precision:
        is_same = True
    gaps = [] if is_same else [_unshown(is_same, *_QUALITY)]
    faults = [] if side.currency == CURRENCY else [f"prices are declared in {CURRENCY}, the bill is in {side.currency}"]
    # Its own meters come with the traffic, whatever the price of its tokens or hours.
    faults += [known.uncounted] if known and known.uncounted else []
    if not option["is_capacity"]:
        declared = {kind: number(option[column]) for kind, column in _PRICES.items()}
        by_basis = {
            basis: declared if declared["input"] is not None else managed.prices(basis, is_anew=True) if managed else {}
            for basis in BASES
        }
        if declared["input"] is None and managed is None:
            faults.append(
                _unpriced(name, [one.model for one in sides if one.currency == side.currency and not one.is_capacity])
            )
        if option["meets_latency"] is not True:
            gaps.append(_unshown(option["meets_latency"], *_LATENCY))
        return Candidate(option, BEDROCK, BEDROCK, None, by_basis, None, tuple(gaps), tuple(faults))
    family = option["accelerator_family"] or BEDROCK
    speed, evidence, mix = number(option["tokens_per_second"]), "declared", number(option["output_ratio"])
    lacking = f"no throughput of {instance_type or name} is measured or declared at the latency target"
    if speed is not None:
        speed /= mix or side.output_ratio or 1
    elif measured is not None and measured.has_part:
        # The price is that of the whole machine.
        lacking = f"servers measured on {instance_type} have a part of it: declare tokens_per_second of a whole one"
    elif measured is not None:
        speed, evidence, mix = measured.capacity, "measured", measured.output_ratio
    if speed is not None and mix is None and side.output_ratio:
        gaps.append("the mix of tokens of its benchmark is not declared (output_ratio)")
    elif speed is not None and abs((mix or 0) - (side.output_ratio or 0)) > _MIX:
        found, wanted = percent(mix or 0), percent(side.output_ratio or 0)
        faults.append(f"its throughput was measured with {found} output tokens, the traffic has {wanted}")
        speed = None
    elif speed is None:
        faults.append(lacking)
    # A throughput counts as measured only while its own latency target held.
    if option["meets_latency"] is False or (evidence == "declared" and option["meets_latency"] is None):
        gaps.append(_unshown(option["meets_latency"], *_LATENCY))
    targets = measured.targets if measured and evidence == "measured" else ()
    if any(any(map(gt, lax, strict)) for lax in targets for strict in side.targets):
        gaps.append("its throughput was measured at a less strict latency target than today's")
    place = {"instance_type": instance_type, "region_id": option["region_id"] or side.region_id}
    hourly = number(option["usd_per_hour"])
    if hourly is None:
        hourly = price_on(prices, {**place, "billing_currency": side.currency}, side.dates[-1])
    if hourly is None:
        faults.append(f"the price book has no price of {instance_type} in {place['region_id'] or 'an unknown region'}")
    if not side.is_peak_measured:
        what = "invocation logs of all its calls" if side.platform == BEDROCK else "traffic of all hours of its servers"
        gaps.append(f"the busiest hour is not known: read the {what} as [[serving]] sources")
    monthly = float(option["upkeep_usd_per_month"]) + float(option["port_cost_usd"]) / option["horizon_months"]
    capacity = None
    if hourly is not None:
        capacity = Capacity(hourly, speed, monthly_usd=monthly).for_peak(side.peak)
    platform = "sagemaker" if (instance_type or "").startswith("ml.") else family
    return Candidate(
        option, platform, family, capacity, {}, evidence if speed else None, tuple(gaps), tuple(dict.fromkeys(faults))
    )


def _unpriced(name: str, billed: Sequence[str]) -> str:
    """That no tokens of a model are on the bill, with the nearest of the names that are."""
    by_word = {model.lower(): model for model in billed}
    nearest = [by_word[word] for word in get_close_matches(name.lower(), by_word, 1)]
    meant = f"; correct candidate_model to {nearest[0]!r}, or" if nearest else ":"
    return f"the last {WINDOW_DAYS} days of the bill have no tokens of {name!r}{meant} declare input_usd and output_usd"


def _unshown(known: bool | None, fault: str, name: str) -> str:
    return f"the candidate {fault}" if known is False else f"{name} is not declared"
