"""One row per Capacity Block or training plan, hour of it and resource that used the hour; unused rest has a row too.

Units are instance-milliseconds of the block, from 0 to whole_units: its window times its instances where both are known
or inferred, hours to come included; else the used and unused hours on the bill so far.
"""

from collections.abc import Collection
from datetime import datetime

import polars as pl

from pipelines.analysis.repricing import UNSTATED, of_region

INPUTS = (
    "fct_charge", "fct_capacity_block_fee", "stg_tracker__stay_monthly", "stg_aws__capacity_reservation",
    "ref_list_price",
)  # fmt: skip
QUERIES = {
    # Hours on the bill, used or not.
    "fct_charge": """
        select capacity_reservation_id, account_id, instance_type, usage_started_at as hour_started_at, resource_id,
            line_class = 'capacity_unused' as is_unused, sum(usage_quantity) as instance_hours
        from fct_charge
        where source_row is not null and market = 'capacity_block' and line_class in ('instance', 'capacity_unused')
        group by all""",
    # Runs may record the block their machines are of.
    "stg_tracker__stay_monthly": """
        select resource_id, max(capacity_reservation_id) as recorded_block_id
        from stg_tracker__stay_monthly
        where capacity_reservation_id is not null and resource_id is not null
        group by resource_id""",
}
_HOUR = ("block_id", "hour_started_at")
_COLUMNS = (*_HOUR, "resource_id", "is_unused", "use_ms", "held_ms")
# When a block of so many instances runs, in UTC milliseconds, half-open; no count is as many as are billed.
_WINDOW = {"block_id": pl.String, "started_ms": pl.Int64, "ended_ms": pl.Int64, "instance_count": pl.Int64}


def build(**table: pl.DataFrame) -> pl.DataFrame:
    """Uses as (block_id, hour_started_at, resource_id, is_unused), the cuts of their units, and the inferred window."""
    fee = table["fct_capacity_block_fee"]
    blocks = table["stg_aws__capacity_reservation"].filter(pl.col("reservation_kind") != "odcr")
    declared = blocks.drop_nulls(["started_at", "ended_at"]).select(
        block_id="reservation_id",
        started_ms=pl.col("started_at").dt.epoch("ms"),
        ended_ms=pl.col("ended_at").dt.epoch("ms"),
        instance_count=pl.col("instance_count").cast(pl.Int64),
    )
    billed = _billed(table["fct_charge"], fee, table["stg_tracker__stay_monthly"], declared)
    hours = (
        billed.filter(pl.col("use_ms") > 0)
        .group_by(_HOUR)
        .agg(pl.col("use_ms").sum(), pl.col("is_unused").any().alias("has_unused"))
    )
    inferred = inferred_windows(hours, fee, table["ref_list_price"], {*declared["block_id"]})
    shown = inferred.select(
        "block_id",
        window_started_at=_moment("started_ms"),
        window_ended_at=_moment("ended_ms"),
        window_instance_count="instance_count",
    )
    return _cut(_used(billed, pl.concat([declared, inferred]))).join(shown, on="block_id", how="left")


def _moment(ms: str) -> pl.Expr:
    """Milliseconds since 1970 as a time in UTC."""
    return pl.from_epoch(ms, "ms").cast(pl.Datetime("us"))


def _billed(charge: pl.DataFrame, fee: pl.DataFrame, recorded: pl.DataFrame, declared: pl.DataFrame) -> pl.DataFrame:
    """Hours on the bill by block.

    Where neither the bill nor the run names it, it is the only one of that type that the account bought, else the only
    one whose declared window may have the hour.
    """
    of_type = ["account_id", "instance_type"]
    is_refund, is_kept = pl.col("charge_category") == "Refund", pl.col("is_kept")
    left_usd = pl.col("billed_cost_usd").sum().over("block_id")
    bought = (
        fee.with_columns(is_kept=~is_refund.any().over("block_id") | (left_usd > 0))
        .filter(~is_refund)
        .select("account_id", "is_kept", instance_type="used_instance_type", bought_block_id="block_id")
        # One that was refunded whole was cancelled: hours are of another, if there is one.
        .filter(is_kept | ~is_kept.any().over(of_type))
        .drop("is_kept")
    )
    windows = declared.select(
        bought_block_id="block_id", from_hour=_moment("started_ms").dt.truncate("1h"), to=_moment("ended_ms")
    )
    is_only = pl.col("bought_block_id").n_unique().over(of_type) == 1
    has_hour = pl.col("hour_started_at").is_between("from_hour", "to", closed="left").fill_null(True)
    possible = (
        charge.select(*of_type, "hour_started_at")
        .unique()
        .join(bought.unique().with_columns(is_only=is_only), on=of_type)
        .join(windows, on="bought_block_id", how="left")
        .filter(pl.col("is_only") | has_hour)
        .group_by(*of_type, "hour_started_at")
        .agg(pl.col("bought_block_id").min(), pl.col("bought_block_id").n_unique().alias("block_count"))
        .filter(block_count=1)
    )
    return (
        charge.join(recorded, on="resource_id", how="left")
        .join(possible, on=[*of_type, "hour_started_at"], how="left")
        .with_columns(block_id=pl.coalesce("capacity_reservation_id", "recorded_block_id", "bought_block_id"))
        .filter(pl.col("block_id").is_not_null())
        .group_by(*_HOUR, "resource_id", "is_unused")
        .agg((pl.col("instance_hours").sum().cast(pl.Float64) * HOUR_MS).round().cast(pl.Int64).alias("use_ms"))
    )


def _used(billed: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """What used each hour and what stayed unused of it, with the instance-milliseconds the block held then."""
    hourly = billed.group_by(_HOUR).agg(
        pl.col("use_ms").sum().alias("billed_ms"), pl.col("use_ms").filter(~pl.col("is_unused")).sum().alias("used_ms")
    )
    # Instances of a reservation without a count: as many as the bill shows at once.
    at_once = hourly.group_by("block_id").agg(at_once=-(-pl.col("billed_ms").max() // HOUR_MS))
    part_ms = pl.min_horizontal("ended_ms", pl.col("hour_ms") + HOUR_MS) - pl.max_horizontal("started_ms", "hour_ms")
    held_hour = (
        windows.join(at_once, on="block_id", how="left")
        .with_columns(hour_ms=pl.int_ranges(pl.col("started_ms") // HOUR_MS * HOUR_MS, "ended_ms", HOUR_MS))
        .explode("hour_ms")
        .drop_nulls("hour_ms")
        .group_by("block_id", hour_started_at=_moment("hour_ms"))
        .agg(held_ms=(part_ms * pl.coalesce("instance_count", "at_once", 1)).sum())
    )
    has_window = pl.col("block_id").is_in(windows["block_id"].implode())
    known = (
        billed.filter(has_window, ~pl.col("is_unused"))
        .join(held_hour, on=_HOUR, how="left")
        .with_columns(pl.col("held_ms").fill_null(0))
    )
    rest = held_hour.join(hourly, on=_HOUR, how="left").with_columns(
        resource_id=pl.col("block_id"),
        is_unused=pl.lit(True),
        use_ms=pl.col("held_ms") - pl.col("used_ms").fill_null(0),
    )
    open_ended = billed.filter(~has_window).join(hourly.select(*_HOUR, pl.col("billed_ms").alias("held_ms")), on=_HOUR)
    return pl.concat([part.select(_COLUMNS) for part in (known, rest, open_ended)]).filter(pl.col("use_ms") > 0)


def _cut(used: pl.DataFrame) -> pl.DataFrame:
    """Units laid end to end, hour by hour; use beyond the window is scaled down to what the window holds."""
    hour = (
        used.select(*_HOUR, "held_ms").unique().sort(_HOUR)
        .with_columns(
            before_units=pl.col("held_ms").cum_sum().over("block_id") - pl.col("held_ms"),
            whole_units=pl.col("held_ms").sum().over("block_id"),
        )
        .drop("held_ms")
    )  # fmt: skip
    ordered = used.sort(*_HOUR, "is_unused", "resource_id", nulls_last=True).with_columns(
        upto_ms=pl.col("use_ms").cum_sum().over(_HOUR), hour_use_ms=pl.col("use_ms").sum().over(_HOUR)
    )

    def scaled(units: pl.Expr) -> pl.Expr:
        # The product of two such sums may need more than 64 bits.
        product = units.cast(pl.Int128) * pl.col("held_ms").cast(pl.Int128) // pl.col("hour_use_ms").cast(pl.Int128)
        fits = pl.col("hour_use_ms") == pl.col("held_ms")
        return pl.col("before_units") + pl.when(fits).then(units).otherwise(product.cast(pl.Int64))

    return ordered.join(hour, on=_HOUR).select(
        *_HOUR,
        "resource_id",
        "is_unused",
        (pl.col("hour_use_ms") > pl.col("held_ms")).alias("is_overused"),
        scaled(pl.col("upto_ms") - pl.col("use_ms")).alias("lower_units"),
        scaled(pl.col("upto_ms")).alias("upper_units"),
        "whole_units",
    )


HOUR_MS = 3_600_000
_DAY_MS, _HALF_PAST_ELEVEN_MS = 24 * HOUR_MS, 41_400_000
_MOST_DAYS = 183
# Without unused hours, the bill shows neither how many instances there are nor whether the block began before its use.
_INSTANCE_COUNTS = (1, 2, 4, 8, 16, 32, 64)
# The fee is rounded to cents.
_TOLERANCE = 0.0002


def inferred_windows(
    hours: pl.DataFrame, fee: pl.DataFrame, prices: pl.DataFrame, declared: Collection[str]
) -> pl.DataFrame:
    """One window per block on the bill that is not `declared` and that a single window fits.

    Blocks end at 11:30 UTC, whole days after the first 11:30 that follows their start, and cost the block price of the
    day they were bought (standards-2026 4). They start at 11:30 or within an hour; where the bill has their unused
    hours too, with its first hour.

    `hours` are the billed hours of blocks (block_id, hour_started_at, use_ms, has_unused), `fee` the lines of
    fct_capacity_block_fee, `prices` ref_list_price. A fee that is partly refunded, or not in USD, fits none.
    """
    found: list[tuple[str, int, int, int]] = []
    hours = hours.with_columns(hour_ms=pl.col("hour_started_at").dt.epoch("ms")).sort("hour_ms")
    for (block_id,), lines in fee.filter(billing_currency="USD").group_by("block_id", maintain_order=True):
        billed = hours.filter(block_id=block_id)
        if block_id in declared or billed.is_empty() or "Refund" in lines["charge_category"]:
            continue
        # An UltraServer is priced as one, and its instances are billed.
        if not lines["instance_type"].eq_missing(lines["used_instance_type"]).all():
            continue
        instance_type = max(filter(None, lines["instance_type"]), default="")
        region_id = max(filter(None, lines["region_id"]), default=UNSTATED)
        price = _price(prices, instance_type, region_id, min(lines["usage_started_at"].to_list()))
        if price is None:
            continue
        usd = float(lines["billed_cost_usd"].sum())
        fitting = [
            (str(block_id), started_ms, ended_ms, count)
            for started_ms, count in _starts(billed)
            for ended_ms in _ends(started_ms)
            if ended_ms > billed["hour_ms"][-1]
            and abs(usd - price * count * (ended_ms - started_ms) / HOUR_MS) <= usd * _TOLERANCE
        ]
        found += fitting if len(fitting) == 1 else []
    return pl.DataFrame(found, schema=_WINDOW, orient="row")


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
    first_ms, first_use_ms = billed["hour_ms"][0], billed["use_ms"][0]
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
