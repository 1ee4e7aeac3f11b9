"""Schemas of the tables that sources fill, in the short form their modules write them in, and the times in them."""

from datetime import UTC, datetime, timedelta

import polars as pl

Schema = dict[str, pl.DataType | type[pl.DataType]]
AT = pl.Datetime("ms")
MONEY = pl.Decimal(20, 10)
# What is wrong with a time that is read once it has come.
FUTURE = "which is in the future"
# The clock of a machine may be ahead of ours, but not beyond tomorrow.
AHEAD = timedelta(days=2)
_TYPES = {"": pl.String, "count": pl.Int64, "number": pl.Float64, "flag": pl.Boolean, "date": pl.Date, "money": MONEY}


def schema(columns: str) -> Schema:
    """Columns as `name` (text) or `name:count`, `:number`, `:flag`, `:date`, `:money`; those in `_at` are naive UTC."""
    pairs = (column.partition(":") for column in columns.split())
    return {name: AT if name.endswith("_at") else _TYPES[kind] for name, _, kind in pairs}


def latest() -> datetime:
    """The latest time of a record, as naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None) + AHEAD


def moment_of(seconds: float) -> datetime:
    """Seconds since 1970 as naive UTC. ValueError for what no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (OverflowError, OSError):
        raise ValueError(f"{seconds} is not a time") from None
