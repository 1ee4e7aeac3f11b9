"""One delivered file in the raw store: what is recorded of it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pipelines.ingest.billing.columns import Delivered


@dataclass(frozen=True)
class TagKey:
    """A tag a file has: its key as delivered, the kind of column it came in, and the Parquet column."""

    key: str
    container: str
    column: str
    in_map: bool


@dataclass(frozen=True)
class RawFile:
    """One delivered file in the raw store: Parquet named `name` of `size` bytes, rows in the delivered order.

    `billed_total` sums what is billed: of a csv every delivered digit, of Parquet to 10 places a line.
    """

    key: str
    name: str
    size: int
    line_count: int
    billed_total: Decimal
    columns: tuple[Delivered, ...]
    tag_keys: tuple[TagKey, ...]
    warnings: tuple[str, ...]
