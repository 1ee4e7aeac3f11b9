"""Where two builds of a table differ: by key and column, with both values."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from pipelines.base.console import cell_text
from pipelines.base.groups import grouped


class Difference(NamedTuple):
    """One figure that is not the same; a whole row or table has no column."""

    table: str
    key: str
    column: str
    packed: str
    rebuilt: str


def differences(table: str, key: Sequence[str], packed: pl.DataFrame, rebuilt: pl.DataFrame) -> Iterator[Difference]:
    """Every figure of `packed` that `rebuilt` does not have, and the reverse; rows are identified by `key`."""
    columns = [name for name in rebuilt.columns if name in packed.columns]
    odd = [name for name in (*packed.columns, *rebuilt.columns) if name not in columns]
    for name in dict.fromkeys(odd):
        there = ["there" if name in frame.columns else "not there" for frame in (packed, rebuilt)]
        yield Difference(table, "", name, *there)
    by = [name for name in key if name in columns] or columns
    ours, theirs = packed.select(columns), rebuilt.select(columns)
    if ours.equals(theirs):
        return
    at = [columns.index(name) for name in by]
    left, right = (grouped(frame.rows(), lambda row: tuple(row[i] for i in at)) for frame in (ours, theirs))
    for row_key in dict.fromkeys((*left, *right)):
        where = ", ".join(f"{name}={cell_text(value)}" for name, value in zip(by, row_key, strict=True))
        one, other = left.get(row_key, []), right.get(row_key, [])
        if len(one) != 1 or len(other) != 1:
            if len(one) != len(other):
                yield Difference(table, where, "", _rows(len(one)), _rows(len(other)))
            continue
        for name, a, b in zip(columns, one[0], other[0], strict=True):
            # A value that is not a number is the same as itself.
            if (a is None) != (b is None) or not (a == b or (a != a and b != b)):
                yield Difference(table, where, name, *("unknown" if v is None else cell_text(v) for v in (a, b)))


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows" if count else "no row"
