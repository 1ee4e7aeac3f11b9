"""How a workload's accelerator time is bought, and where an instance-hour costs least, as billed or offered."""

from typing import Any

import polars as pl

from pipelines.transforms.port_case import CURRENCY
from pipelines.transforms.workload_case import FAMILIES, WorkloadCase


def bought(recent: pl.DataFrame) -> dict[str, str | None]:
    """How its accelerator time of the last 90 days was bought, by cost, the most first."""
    by_market = recent.group_by("market").agg(pl.col("effective_cost_usd").sum())
    shares = by_market.sort("effective_cost_usd", "market", descending=[True, False])
    whole, shown = float(shares["effective_cost_usd"].sum()), []
    if whole > 0:
        shown = [f"{market.replace('_', ' ')} {float(usd) / whole:.1%}" for market, usd in shares.iter_rows() if usd]
    most = shares["market"][0] if shares.height else None
    return {"purchase_option": most, "purchase_shares": ", ".join(shown) or None}


def cheapest(
    case: WorkloadCase, recommendation: str, recent: pl.DataFrame, offers: pl.DataFrame, counts: dict[str, int]
) -> dict[str, Any]:
    """The lowest price of an instance-hour of the recommended family, else of the one it spends the most on: as billed,
    or as offered in time. The cost of Spot interruptions is not included."""
    spent = recent.group_by("accelerator_family").agg(pl.col("effective_cost_usd").sum())
    most = spent.sort("effective_cost_usd", "accelerator_family")["accelerator_family"].to_list()[-1:]
    families = [recommendation] if recommendation in FAMILIES else most
    found: list[tuple[float, str, str, str]] = []
    billed = recent.filter(pl.col("accelerator_family").is_in(families)).group_by("instance_type", "market")
    for instance_type, market, usd, hours in billed.agg(
        pl.col("effective_cost_usd").sum(), pl.col("accelerator_hours").sum().cast(pl.Float64)
    ).iter_rows():
        if count := counts.get(instance_type.removeprefix("ml.")):
            found.append((float(usd) / hours * count, instance_type, market, "billed"))
    if case.currency == CURRENCY:
        in_time = offers.filter(
            pl.col("accelerator_family").is_in(families),
            pl.col("lead_days") <= case.inputs["need_within_days"],
            pl.col("price_per_hour_usd").is_not_null(),
            pl.lit(True) if case.declared["region_id"] is None else pl.col("region_id") == case.declared["region_id"],
        )
        found += [
            (float(row["price_per_hour_usd"]), row["instance_type"], row["purchase_option"], "offered")
            for row in in_time.iter_rows(named=True)
        ]
    if not found:
        return {}
    usd, instance_type, market, evidence = min(found)
    return {
        "cheapest_instance_type": instance_type,
        "cheapest_purchase_option": market,
        "cheapest_price_per_hour_usd": usd,
        "cheapest_evidence": evidence,
    }
