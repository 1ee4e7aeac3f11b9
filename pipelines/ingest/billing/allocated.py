"""Split cost allocation of FOCUS 1.3 and later: allocated charges stand instead of the charge they split."""

from pathlib import Path

import polars as pl

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.columns import snake

_METHOD = "allocated_method_id"
# What the parts of a charge have in common with it (facts standards-2026 1.4).
_SHARED = ("resource_id", "charge_period_start", "sku_price_id", "sub_account_id")


def refuse_origins(stored: Path, where: str) -> None:
    """SourceError where a FOCUS file has a charge next to the allocated charges that add up to it: it counts twice."""
    names = {snake(name): name for name in pl.read_parquet_schema(stored)}
    shared = [names[name] for name in _SHARED if name in names]
    if _METHOD not in names or len(shared) < len(_SHARED) or "billed_cost" not in names:
        return
    is_part = pl.col(names[_METHOD]).cast(pl.String).fill_null("") != ""
    lines = pl.scan_parquet(stored).select(*shared, cost=pl.col(names["billed_cost"]).cast(pl.Float64), part=is_part)
    parts = lines.filter("part").group_by(shared).agg(whole=pl.col("cost").sum())
    origins = (
        lines.filter(~pl.col("part"))
        .join(parts, on=shared, nulls_equal=True)
        .filter((pl.col("cost") != 0) & ((pl.col("cost") - pl.col("whole")).abs() < 1e-6))
        .select(pl.len(), pl.col("cost").sum())
        .collect()
    )
    count, cost = origins.row(0)
    if count:
        raise SourceError(
            f"{where} has charges of {cost:,.2f} ({count} of its lines) next to the allocated charges that add up to "
            "them, so they would count twice; have it delivered with the allocated charges alone."
        )
