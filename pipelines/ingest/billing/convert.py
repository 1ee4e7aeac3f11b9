"""Delivered files as the raw store keeps them: Parquet as it came, a csv converted, and a record of each.

The code this module imports decides what the raw store holds, so a delivery is converted again when it changes.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import polars as pl

from pipelines.base.errors import SourceError
from pipelines.base.groups import grouped
from pipelines.ingest.billing.columns import FOCUS, ColumnList, RawFile, snake
from pipelines.ingest.billing.parquet import inspect
from pipelines.ingest.billing.text import convert
from pipelines.ingest.billing.unpack import PARQUET, Allowance, magic


def convert_file(
    delivered: Path,
    out: Path,
    *,
    key: str,
    allowed: Allowance,
    listed: ColumnList,
    converting: AbstractContextManager,
    on_bytes: Callable[[int], None],
) -> RawFile:
    """Move the file `delivered` to `out` as the raw store keeps it, the ids of its lines next to it; its record.

    A csv is converted within `converting`. `on_bytes` gets the count of delivered bytes as they are read.
    """
    if key.endswith(".parquet") or magic(delivered) == PARQUET:
        size = delivered.stat().st_size
        delivered.rename(out)
        file = inspect(out, key=key, allowed=allowed, listed=listed)
        on_bytes(size)
    else:
        with converting:
            file = convert(delivered, out, key=key, allowed=allowed, listed=listed, on_bytes=on_bytes)
        delivered.unlink()
    if listed is FOCUS:
        refuse_origins(out, allowed.where)
    return file


def refuse_copies(
    files: Sequence[RawFile], digest: Callable[[RawFile], str], uri: Callable[[str], str], *, is_bare: bool
) -> None:
    """SourceError for a file delivered again under another name, or packed again: it would count double.

    `is_bare`: no manifest names the files, so one may be removed.
    """
    filled = filter(lambda file: file.line_count, files)
    for group in grouped(filled, lambda file: (file.line_count, file.billed_total, file.size)).values():
        first: dict[str, RawFile] = {}
        # Only these are read again: files with other lines hardly ever have all of this equal.
        for file in group if len(group) > 1 else ():
            other = first.setdefault(digest(file), file)
            if other is not file:
                fix = "remove one of them" if is_bare else "have the month delivered again"
                fix = f"their lines would count double, so {fix}"
                raise SourceError(f"{uri(file.key)} has the same content as {uri(other.key)}; {fix}.")


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
