"""The window of a Capacity Block that no reservation declares, where just one fits its fee.

Blocks end at 11:30 UTC, whole days after the first 11:30 that follows their start, and cost the block price of the day
they were bought (standards-2026 4). They start at 11:30 or within an hour; where the bill has their unused hours too,
with its first hour.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import polars as pl

from pipelines.analysis.repricing import UNSTATED, of_region

HOUR_MS = 3_600_000
_DAY_MS, _HALF_PAST_ELEVEN_MS = 24 * HOUR_MS, 41_400_000
_MOST_DAYS = 183
# Without unused hours, the bill shows neither how many instances there are nor whether the block began before its use.
_INSTANCE_COUNTS = (1, 2, 4, 8, 16, 32, 64)
# The fee is rounded to cents.
_TOLERANCE = 0.0002


class Window(NamedTuple):
    """When a block of so many instances runs, in UTC milliseconds, half-open; no count is as many as are billed."""

    block_id: str
    started_ms: int
    ended_ms: int
    instance_count: int | None


def ms_of(moment: datetime) -> int:
    """A UTC moment without a zone, in milliseconds since 1970."""
    return (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def inferred_windows(
    hours: pl.DataFrame, fee: pl.DataFrame, prices: pl.DataFrame, declared: Collection[str]
) -> list[Window]:
    """One window per block on the bill that is not `declared` and that a single window fits.

    `hours` are the billed hours of blocks (block_id, hour_started_at, use_ms, has_unused), `fee` the lines of
    fct_capacity_block_fee, `prices` ref_list_price. A fee that is partly refunded, or not in USD, fits none.
    """
    found = []
    for (block_id,), lines in fee.filter(billing_currency="USD").group_by("block_id", maintain_order=True):
        billed = hours.filter(block_id=block_id).sort("hour_started_at")
        if block_id in declared or billed.is_empty() or "Refund" in lines["charge_category"]:
            continue
        instance_type = max(filter(None, lines["instance_type"]), default="")
        region_id = max(filter(None, lines["region_id"]), default=UNSTATED)
        price = _price(prices, instance_type, region_id, min(lines["usage_started_at"].to_list()))
        if price is None:
            continue
        usd = float(lines["billed_cost_usd"].sum())
        fitting = [
            Window(str(block_id), started_ms, ended_ms, count)
            for started_ms, count in _starts(billed)
            for ended_ms in _ends(started_ms)
            if ended_ms > ms_of(billed["hour_started_at"][-1])
            and abs(usd - price * count * (ended_ms - started_ms) / HOUR_MS) <= usd * _TOLERANCE
        ]
        found += fitting if len(fitting) == 1 else []
    return found


def _price(prices: pl.DataFrame, instance_type: str, region_id: str, bought_at: datetime) -> float | None:
    """USD per instance-hour of a block bought then."""
    listed = prices.filter(
        pl.col("from_date").cast(pl.Date) <= bought_at.date(),
        instance_type=instance_type.removeprefix("ml."),
        offer="capacity_block",
    )
    held = of_region(listed, region_id)
    return None if held.is_empty() else float(held["price_per_hour_usd"][-1])


def _starts(billed: pl.DataFrame) -> set[tuple[int, int]]:
    """Moments at which the block may have begun, with its instances then."""
    first_ms, first_use_ms = ms_of(billed["hour_started_at"][0]), billed["use_ms"][0]
    least, has_unused = -(-max(billed["use_ms"].to_list()) // HOUR_MS), billed["has_unused"].any()
    counts = [least] if has_unused else [count for count in _INSTANCE_COUNTS if count >= least]
    starts = {(first_ms + HOUR_MS - min(first_use_ms // count, HOUR_MS), count) for count in counts}
    if not has_unused:
        starts |= {(_last_half_past_eleven(first_ms + HOUR_MS - 1), count) for count in counts}
    return starts


def _ends(started_ms: int) -> range:
    first = _last_half_past_eleven(started_ms) + _DAY_MS
    return range(first, first + _MOST_DAYS * _DAY_MS, _DAY_MS)


def _last_half_past_eleven(at_ms: int) -> int:
    """The last 11:30 UTC at or before a moment; Capacity Blocks end then."""
    return (at_ms - _HALF_PAST_ELEVEN_MS) // _DAY_MS * _DAY_MS + _HALF_PAST_ELEVEN_MS
