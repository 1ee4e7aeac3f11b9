"""How a workload's accelerator time is bought, and where an instance-hour costs least, as billed or offered."""

import polars as pl

from pipelines.analysis.comparison import SIDES
from pipelines.transforms import Row
from pipelines.transforms.port_case import CURRENCY
from pipelines.transforms.workload_case import FAMILIES, WorkloadCase, in_region


def bought(recent: pl.DataFrame) -> dict[str, str | None]:
    """How its accelerator time of the last 90 days was bought, by cost, the most first."""
    by_market = recent.group_by("market").agg(pl.col("effective_cost_usd").sum())
    shares = by_market.sort("effective_cost_usd", "market", descending=[True, False])
    whole, shown = float(shares["effective_cost_usd"].sum()), []
    if whole > 0:
        shown = [f"{market.replace('_', ' ')} {float(usd) / whole:.1%}" for market, usd in shares.iter_rows() if usd]
    most = shares["market"][0] if shares.height else None
    return {"purchase_option": most, "purchase_shares": ", ".join(shown) or None}


def offered(case: WorkloadCase, offers: pl.DataFrame) -> Row:
    """The soonest offer of each side in the workload's region, the cheapest of those, and the best Spot score."""
    found: Row = {}
    for side, family in zip(SIDES, FAMILIES, strict=True):
        here = in_region(offers.filter(accelerator_family=family), case.declared)
        timed = here.drop_nulls("lead_days").sort(
            "lead_days", "price_per_hour_usd", "instance_type", "region_id", nulls_last=True
        )
        for row in timed.head(1).iter_rows(named=True):
            option = row["purchase_option"].replace("_", " ")
            found[f"{side}_offer"] = f"{row['instance_type']} {option} in {row['region_id'] or 'an unknown region'}"
            found[f"{side}_offer_price_per_hour_usd"] = row["price_per_hour_usd"]
            found[f"{side}_lead_days"] = row["lead_days"]
        found[f"{side}_placement_score"] = here["placement_score"].max()
    return found


def cheapest(
    case: WorkloadCase, recommendation: str, recent: pl.DataFrame, offers: pl.DataFrame, counts: dict[str, int]
) -> Row:
    """The lowest price of an instance-hour of the recommended family, else of the one it spends the most on: as billed,
    or as offered in time. The cost of Spot interruptions is not included."""
    spent = recent.group_by("accelerator_family").agg(pl.col("effective_cost_usd").sum())
    most = spent.sort("effective_cost_usd", "accelerator_family")["accelerator_family"].to_list()[-1:]
    families = [recommendation] if recommendation in FAMILIES else most
    found: list[tuple[float, str, str, str]] = []
    billed = (
        recent.drop_nulls("effective_cost_usd")
        .filter(pl.col("accelerator_family").is_in(families))
        .group_by("instance_type", "market")
    )
    for instance_type, market, usd, hours in billed.agg(
        pl.col("effective_cost_usd").sum(), pl.col("accelerator_hours").sum().cast(pl.Float64)
    ).iter_rows():
        if count := counts.get(instance_type.removeprefix("ml.")):
            found.append((float(usd) / hours * count, instance_type, market, "billed"))
    if case.currency == CURRENCY:
        in_time = in_region(offers, case.declared).filter(
            pl.col("accelerator_family").is_in(families),
            pl.col("lead_days") <= case.inputs["need_within_days"],
            pl.col("price_per_hour_usd").is_not_null(),
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
