"""What a saving measured at one day's prices is at another day's (facts training-runs 6); prices are of instance-hours.

A saving is 1 - Trainium's cost / GPU's cost of the same work. Hours do not change with a price, so each side's cost
scales by its own price, and nothing else may change: both prices of one side are of the same offer.
"""

import re
from decimal import Decimal

import polars as pl

# Pages with the rate of a Capacity Block or a reservation may not name the region.
UNSTATED = "unstated"


def of_region(prices: pl.DataFrame, region_id: str) -> pl.DataFrame:
    """Prices of one instance type and offer that hold in a region, oldest first.

    Prices are of a region, of an area (`us` of us-east-1) or of an unstated region; of one day, the nearest comes last.
    """
    area = re.sub(r"-[a-z]+-[0-9]+.*$", "", region_id)
    nearness = {UNSTATED: 0, area: 1, region_id: 2}
    return prices.filter(pl.col("region_id").is_in(list(nearness))).sort(
        "from_date", pl.col("region_id").replace_strict(nearness, default=0)
    )


def repriced_saving(
    saving: Decimal, baseline_then: Decimal, baseline_now: Decimal, candidate_then: Decimal, candidate_now: Decimal
) -> Decimal:
    """The saving, below 1; negative where Trainium is more expensive."""
    return 1 - (1 - saving) * (baseline_then * candidate_now) / (baseline_now * candidate_then)


def price_of_what(price: Decimal, instance: Decimal, accelerators: int, cores: int) -> str:
    """What a price quoted for an instance-hour is really of, if within 2 % of a well-known mistake; else "instance".

    `instance` is the book's price, `cores` those of one accelerator (1 where it has no cores of its own).
    """
    mistakes = {
        "accelerator": instance / accelerators,
        "core": instance / (accelerators * cores),
        "instance times accelerators": instance * accelerators,
    }
    if accelerators > 1 and not _near(price, instance):
        for name, other in mistakes.items():
            if _near(price, other):
                return name
    return "instance"


def _near(one: Decimal, other: Decimal) -> bool:
    return abs(one - other) * 50 <= other
