"""A check of a table, as a plain value and as SQL: its failing rows, and how many there are of each.

The checks of columns are counted in the scan that counts the table; every `rows` check and the uniqueness of a key is a
query of its own, and all of them are counted in one statement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.base.sql import quoted

Severity = Literal["error", "warn"]
"""Whether a failure stops the build or is printed under the report."""
Kind = Literal["columns", "unique", "not_null", "not_negative", "in_set", "between", "rows"]


@dataclass(frozen=True)
class Check:
    """One promise about a table.

    `name` is unique within the table, of letters, digits and underscores; `title` is the check in words. `values`
    holds the allowed values of an `in_set` check and the two bounds of a `between` check, None for an open
    side; days and times are ISO 8601 text. `query` is the SELECT of a `rows` check, `{batch}` standing for the table:
    any row it gives fails; `shows` is a SELECT of the figures it is about, kept also when nothing fails. `fix` is what
    to do about a failure, in sentences.
    """

    name: str
    title: str
    kind: Kind
    severity: Severity
    columns: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    query: str = ""
    shows: str = ""
    fix: str = ""


def is_query(check: Check) -> bool:
    """Whether a check is a query of its own; the others are conditions on one column of a row."""
    return check.kind in ("rows", "unique")


def conditions(checks: Iterable[Check]) -> dict[str, str]:
    """Of the checks of columns, by name, the condition that selects the rows that fail."""
    return {check.name: _condition(check) for check in checks if not is_query(check)}


def query_counts(checks: Sequence[Check], table: str, is_large: bool) -> str:
    """The SELECT of `check_name` and `row_count`, the rows that each of these queries gives."""
    batch = f'"{table}"'
    return " union all ".join(
        f"select '{check.name}' as check_name, count(*) as row_count "
        f"from ({query_of(check, is_large).format(batch=batch)}) as failing"
        for check in checks
    )


def failing_rows(check: Check, table: str, shown: Sequence[str] = ()) -> str:
    """The SELECT of the rows that fail a check; those of a column show `shown` and the column."""
    if is_query(check):
        return query_of(check).format(batch=f'"{table}"')
    columns = ", ".join(f'"{column}"' for column in dict.fromkeys([*shown, *check.columns]))
    return f'select {columns} from "{table}" where {_condition(check)}'


def query_of(check: Check, is_large: bool = True) -> str:
    """The SELECT whose rows fail a check, `{batch}` standing for the table, which may be large or not."""
    if check.kind == "rows":
        return check.query
    if check.kind != "unique":
        condition = _condition(check).replace("{", "{{").replace("}", "}}")
        return f'select "{check.columns[0]}" from {{batch}} where {condition}'
    columns = ", ".join(f'"{column}"' for column in check.columns)
    # Grouping by a hash takes half the time and memory of many rows; only keys whose hashes meet are then compared.
    # Of a few rows it takes twice the time.
    alike = f"(select hash({columns}) from {{batch}} group by hash({columns}) having count(*) > 1)"
    where = f" where hash({columns}) in {alike}" if is_large else ""
    return f"select {columns}, count(*) as row_count from {{batch}}{where} group by {columns} having count(*) > 1"


def _condition(check: Check) -> str:
    """The condition that selects the rows that fail a check of one column; null fails `not_null` only."""
    column = f'"{check.columns[0]}"'
    if check.kind == "not_null":
        return f"{column} is null"
    if check.kind == "not_negative":
        return f"{column} < 0"
    if check.kind == "in_set":
        return f"{column} not in ({', '.join(map(_literal, check.values))})"
    low, high = check.values
    outside = [f"{column} < {_literal(low)}"] if low is not None else []
    outside += [f"{column} > {_literal(high)}"] if high is not None else []
    return f"({' or '.join(outside)})"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return f"double '{value}'"
    return str(value) if isinstance(value, int | float) else quoted(value)
