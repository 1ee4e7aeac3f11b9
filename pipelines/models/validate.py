"""Checks a table against its contract before it is published.

The table is a view of an engine, as are the other tables that its `rows` checks read (`contract.reads`). The checks
are compiled to SQL. Where there is a gate, as Great Expectations is for the public marts, it has to count the same
failing rows. Only checks that fail are run again, to show rows.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.base.errors import CheckError, EngineError
from pipelines.engine import Engine
from pipelines.models.checks import Check, Severity, conditions, failing_rows, is_query, query_counts
from pipelines.models.written import CURRENCIES, Counted, counted

if TYPE_CHECKING:
    from pipelines.models.contract import Contract

# Rows of figures kept with a check: enough for the identities of a dozen months.
FIGURES = 60
# Queries over more rows than this run one after the other: together they may not fit into memory.
_LARGE = 1_000_000


class Validated(NamedTuple):
    """What a check came to as an expectation of Great Expectations, named by the type that was validated."""

    expectation: str
    unexpected_count: int


Gate = Callable[[str, Sequence[Check]], Mapping[str, Validated]]
"""Validates the checks of a table another way; what each came to, by its name."""


@dataclass(frozen=True)
class CheckResult:
    """How one check came out; every value is fit for JSON.

    `unexpected_count` counts failing rows: repeated keys for `key_unique`, columns for `columns_as_typed`.
    `sample` shows the first of them by column name: the key and the column checked, or what the query of a
    `rows` check selects; decimals are text, times ISO 8601. `title` is the check in words. `figures` are what the
    check is about, where it shows any, whether it passed or not. `totals` adds up the first amount of all failing rows
    of a `rows` check, by currency. `expectation` is the type of the expectation by which
    Great Expectations validated the check too, with the same count; empty where only the compiled check ran.
    """

    check: str
    severity: Severity
    passed: bool
    observed: str
    unexpected_count: int
    sample: list[dict[str, Any]]
    title: str
    figures: list[dict[str, Any]] = field(default_factory=list)
    totals: dict[str, str] = field(default_factory=dict)
    expectation: str = ""


def validate(
    engine: Engine, table: str, contract: Contract, sample: int = 5, gate: Gate | None = None
) -> tuple[list[CheckResult], Counted]:
    """One result for each check of the contract, in its order, and what was counted on the way.

    `table` is the name of the view to check. Where its columns differ from the contract's, no other check is run and
    only rows are counted: each fails as not checked. Raises CheckError when a check cannot be computed, SourceError
    when a file is damaged.
    """
    differing = _differing_columns(engine, table, contract)
    if differing:
        return [_columns_differ(check, differing, sample) for check in contract.checks], counted(engine, table, [])
    checks = [check for check in contract.checks if check.kind != "columns"]
    try:
        scan, counts = _counts(engine, table, contract, checks)
    except EngineError:
        scan = counted(engine, table, _columns(contract))
        counts = {check.name: _count(engine, table, contract, check) for check in checks}
    expectations = _agreed(table, counts, gate(table, checks)) if gate else {}
    results = [_result(check, 0) for check in contract.checks if check.kind == "columns"]
    shown = contract.key or tuple(column.name for column in contract.columns)
    for check in checks:
        failing = f"select * from ({failing_rows(check, table, shown)}) as failing"
        order = "order by all " if is_query(check) else ""
        rows = engine.rows(f"{failing} {order}limit {sample}") if counts[check.name] else []
        shows = check.shows.format(batch=f'"{table}"')
        figures = engine.rows(f"{shows} limit {FIGURES}") if shows else []
        totals = _totals(engine, table, check, rows)
        results.append(_result(check, counts[check.name], rows, figures, totals, expectations.get(check.name, "")))
    return results, scan


def _columns(contract: Contract) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in contract.columns]


def _counts(engine: Engine, table: str, contract: Contract, checks: Sequence[Check]) -> tuple[Counted, dict[str, int]]:
    """What a scan of the table counts and, by the name of each check, the rows that fail it."""
    queries = [check for check in checks if is_query(check)]
    scan = counted(engine, table, _columns(contract), conditions(checks))
    # Every key of an empty table, and of one row, is unique, but a query may find that rows are missing.
    counted_queries = queries if scan.row_count > 1 else [check for check in queries if check.kind == "rows"]
    is_large = scan.row_count > _LARGE
    statements = [[check] for check in counted_queries] if is_large or not counted_queries else [counted_queries]
    found = [row for part in statements for row in engine.rows(query_counts(part, table, is_large))]
    failing = {row["check_name"]: row["row_count"] for row in found}
    return scan, dict.fromkeys((check.name for check in queries), 0) | scan.failing | failing


def _count(engine: Engine, table: str, contract: Contract, check: Check) -> int:
    """The rows that fail one check, which may be the one that cannot be computed."""
    try:
        return _counts(engine, table, contract, [check])[1][check.name]
    except EngineError as error:
        reason = str(error).removeprefix("DuckDB: ")
        raise CheckError(
            f"The check {check.name} of {contract.table} cannot be computed ({reason}); fix it in "
            f"expectations/{contract.table}.yml."
        ) from None


def _agreed(table: str, counts: Mapping[str, int], validated: Mapping[str, Validated]) -> dict[str, str]:
    """The expectation of each validated check; CheckError where the gate counts another number of failing rows."""
    for name, (_, count) in validated.items():
        if count != counts[name]:
            raise CheckError(
                f"The check {name} of {table} fails for {counts[name]} rows in SQL, for {count} in Great Expectations; "
                'report this as a bug. `gate = "none"` under [warehouse] builds without Great Expectations.'
            )
    return {name: expectation for name, (expectation, _) in validated.items()}


def _totals(engine: Engine, table: str, check: Check, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """By currency, the sum of the first amount that the failing rows of a `rows` check show."""
    names = list(rows[0]) if rows and check.kind == "rows" else []
    amount = next((name for name in names if name.endswith("_usd")), None)
    if amount is None:
        return {}
    currency = next((name for name in CURRENCIES if name in names), "'USD'")
    summed = engine.rows(
        f"select coalesce({currency}, 'USD') as currency, cast(sum({amount}) as decimal(38, 10)) as total "
        f"from ({failing_rows(check, table)}) as failing group by 1 having sum({amount}) is not null order by 1"
    )
    return {row["currency"]: f"{row['total']:f}" for row in summed}


def _differing_columns(engine: Engine, table: str, contract: Contract) -> list[dict[str, Any]]:
    """Columns whose name or type differs between the table and the contract."""
    found = engine.types(table)
    wanted = {column.name: column.type for column in contract.columns}
    return [
        {"column": name, "wanted": wanted.get(name), "found": found.get(name)}
        for name in {**wanted, **found}
        if wanted.get(name) != found.get(name)
    ]


def _columns_differ(check: Check, differing: list[dict[str, Any]], sample: int) -> CheckResult:
    if check.kind == "columns":
        return _result(check, len(differing), differing[:sample])
    return CheckResult(check.name, check.severity, False, "not checked: the columns differ", 0, [], check.title)


def _result(
    check: Check,
    count: int,
    rows: Sequence[Mapping[str, Any]] = (),
    figures: Sequence[Mapping[str, Any]] = (),
    totals: Mapping[str, str] | None = None,
    expectation: str = "",
) -> CheckResult:
    counted = {"unique": "repeated keys", "columns": "differing columns"}.get(check.kind, "failing rows")
    return CheckResult(
        check=check.name,
        severity=check.severity,
        passed=count == 0,
        observed=f"{counted}: {count}",
        unexpected_count=count,
        sample=_rows_as_json(rows),
        title=check.title,
        figures=_rows_as_json(figures),
        totals=dict(totals or {}),
        expectation=expectation,
    )


def _rows_as_json(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: _json_safe(value) for name, value in row.items()} for row in rows]


def _json_safe(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
