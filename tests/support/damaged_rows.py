"""Rows that break the checks of a contract: for each kind of check a table that fails it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import combinations
from typing import Any

import polars as pl
import sqlglot
from sqlglot import exp

from pipelines.models.checks import Check
from pipelines.models.contract import Contract

Row = dict[str, Any]

_MADE_UP: dict[str, Any] = {
    **{"VARCHAR": "x", "BOOLEAN": True, "BIGINT": 1, "DOUBLE": 1.0},
    **{"DATE": date(2026, 7, 1), "TIMESTAMP": datetime(2026, 7, 1, 10)},
}
# Values that conditions turn on, by type.
_EXTREMES: dict[str, tuple[Any, ...]] = {
    "VARCHAR": ("", "someone's %s: {x}"),
    "BOOLEAN": (True, False),
    "BIGINT": (-1, 0, 1, 10**12),
    "DOUBLE": (-1.5, -0.0, 0.0, 1.0, 1e12, math.nan, math.inf, -math.inf),
    "DATE": (date(1999, 12, 31), date(2100, 1, 1)),
    "TIMESTAMP": (datetime(1999, 12, 31, 23), datetime(2100, 1, 1)),
    "DECIMAL": (Decimal(-1), Decimal(0), Decimal(1), Decimal(10**9)),
}
_STEPS = {"DATE": timedelta(days=1), "TIMESTAMP": timedelta(microseconds=1)}


def damaged(contract: Contract, good: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """The table without a row, and with rows that fail its checks: by kind of check, or by the name of a query."""
    types = {column.name: column.type for column in contract.columns}
    base = good.row(0, named=True) if len(good) else {name: _made_up(type_) for name, type_ in types.items()}

    def with_rows(name: str, rows: list[Row]) -> tuple[str, pl.DataFrame]:
        return name, pl.concat([good, pl.DataFrame(rows, schema=good.schema)])

    yield "empty", good.clear()
    if contract.key:
        keyless = base | dict.fromkeys(contract.key)
        yield with_rows("unique", [base, base, keyless, keyless, keyless])
        yield with_rows("last", [base | {name: _extremes(types[name])[-1] for name in contract.key}])
    for kind in ("not_null", "not_negative", "in_set", "between"):
        checks = [check for check in contract.checks if check.kind == kind]
        if checks:
            # Another number of rows for each check.
            rows = [
                base | {check.columns[0]: value}
                for count, check in enumerate(checks, start=1)
                for value in _breaking(check, types[check.columns[0]]) * count
            ]
            yield with_rows(kind, rows)
    for check in contract.checks:
        if check.kind == "rows":
            yield with_rows(check.name, _mutated(check, base, types))


def _made_up(type_: str) -> Any:
    return Decimal(1) if type_.startswith("DECIMAL") else _MADE_UP[type_]


def _breaking(check: Check, type_: str) -> list[Any]:
    """Values of which some fail a check of a column, and some are just at its edge."""
    if check.kind == "not_null":
        return [None]
    extremes = _extremes(type_)
    read: Any = {"DATE": date.fromisoformat, "TIMESTAMP": datetime.fromisoformat}.get(type_, lambda value: value)
    bounds: list[Any] = [read(value) for value in (check.values or (0,)) if value is not None]
    if check.kind == "in_set":
        return [None, *extremes, *bounds]
    if type_.startswith("DECIMAL"):
        bounds, step = [Decimal(str(bound)) for bound in bounds], Decimal(1).scaleb(-int(type_[:-1].split(",")[1]))
    else:
        step = _STEPS.get(type_, 1)
    return [None, *extremes, *(bound + by for bound in bounds for by in (-step, 0 * step, step))]


def _extremes(type_: str) -> tuple[Any, ...]:
    return _EXTREMES["DECIMAL" if type_.startswith("DECIMAL") else type_]


def _mutated(check: Check, base: Row, types: dict[str, str]) -> list[Row]:
    """The row with every one and every two of the columns that a query names set to what it may turn on.

    Of the columns in its conditions every three.
    """
    tree = sqlglot.parse_one(check.query.format(batch="batch"), read="duckdb")
    texts = {literal.this for literal in tree.find_all(exp.Literal) if literal.is_string}
    names = sorted({column.name for column in tree.find_all(exp.Column)} & set(types)) or sorted(types)
    conditions = {column.name for where in tree.find_all(exp.Where) for column in where.find_all(exp.Column)}
    changes = [
        (name, value)
        for name in names
        for value in (None, *_extremes(types[name]), *(sorted(texts) if types[name] == "VARCHAR" else ()))
    ]
    chosen = [
        *([change] for change in changes),
        *combinations(changes, 2),
        *combinations([change for change in changes if change[0] in conditions], 3),
    ]
    return [base | dict(several) for several in chosen if len(dict(several)) == len(several)]
