"""Schemas of the tables that sources fill, in the short form their modules write them in."""

import polars as pl

Schema = dict[str, pl.DataType | type[pl.DataType]]
AT = pl.Datetime("ms")
MONEY = pl.Decimal(20, 10)
_TYPES = {"": pl.String, "count": pl.Int64, "number": pl.Float64, "flag": pl.Boolean, "date": pl.Date, "money": MONEY}


def schema(columns: str) -> Schema:
    """Columns as `name` (text) or `name:count`, `:number`, `:flag`, `:date`, `:money`; those in `_at` are naive UTC."""
    pairs = (column.partition(":") for column in columns.split())
    return {name: AT if name.endswith("_at") else _TYPES[kind] for name, _, kind in pairs}
