"""Turns a contract into a Great Expectations suite.

Each check becomes one expectation that carries the check's name in its metadata and its severity as Great
Expectations names it. Checks of one column are computed together in a single scan; a `rows` check and the
uniqueness of a key are queries of their own. Great Expectations takes seconds to import, so it is imported
when a suite is made and never before.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipelines.quality.checks import Check

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuite
    from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
    from great_expectations.expectations.expectation import Expectation

GX_SEVERITIES = {"error": "critical", "warn": "warning"}


@cache
def great_expectations() -> ModuleType:
    """The library, imported without the warnings other packages print on the way."""
    with warnings.catch_warnings(), _spark_out_of_sight():
        warnings.simplefilter("ignore")
        import great_expectations
        import great_expectations.expectations
    return great_expectations


@cache
def quiet_project() -> AbstractDataContext:
    """A Great Expectations project that lives as long as the process and draws no progress bars."""
    project = great_expectations().get_context(mode="ephemeral")
    project.variables.progress_bars = {"globally": False}
    return project


@contextmanager
def _spark_out_of_sight() -> Iterator[None]:
    """Great Expectations imports Spark where it finds it, which takes seconds and is of no use to us.

    Worse, Spark Connect takes a process without a main file, such as a Dagster run, for its own tests and ends it.
    """
    hidden = [name for name in ("pyspark", "pyspark.sql.connect") if name not in sys.modules]
    # None makes an import fail as if the module were not installed.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def suite(table: str, checks: Iterable[Check]) -> ExpectationSuite:
    """The suite of a table: one expectation for each check but `columns`, which needs no data."""
    expectations = [_expectation(check) for check in checks if check.kind != "columns"]
    return great_expectations().ExpectationSuite(name=table, expectations=expectations)


def nowhere_null(checks: Sequence[Check]) -> list[Check]:
    """One check that holds where all these `not_null` checks do; none where there are none."""
    if not checks:
        return []
    columns = [column for check in checks for column in check.columns]
    any_null = " or ".join(f'"{column}" is null' for column in columns)
    title = f"{', '.join(columns)} are never null"
    return [Check("nowhere_null", title, "rows", "error", query=f"select 1 from {{batch}} where {any_null}")]


def query_of(check: Check) -> str:
    """The SELECT whose rows fail a `rows` or `unique` check, `{batch}` standing for the table."""
    if check.kind == "rows":
        return check.query
    columns = ", ".join(f'"{column}"' for column in check.columns)
    # Grouping by a hash takes half the time and memory; only keys whose hashes meet are then compared.
    return (
        f"select {columns}, count(*) as row_count from {{batch}} where hash({columns}) in "
        f"(select hash({columns}) from {{batch}} group by hash({columns}) having count(*) > 1) "
        f"group by {columns} having count(*) > 1"
    )


def _expectation(check: Check) -> Expectation:
    known = great_expectations().expectations
    named: dict[str, Any] = {"meta": {"check": check.name}, "severity": GX_SEVERITIES[check.severity]}
    if check.kind in ("rows", "unique"):
        # SQLAlchemy would take a colon before a word for a parameter.
        query = re.sub(r"(?<![:\w]):(?=\w)", r"\:", query_of(check))
        return _failing_rows()(unexpected_rows_query=query, **named)
    named["column"] = check.columns[0]
    if check.kind == "not_null":
        return known.ExpectColumnValuesToNotBeNull(**named)
    if check.kind == "in_set":
        return known.ExpectColumnValuesToBeInSet(value_set=list(check.values), **named)
    low, high = (0, None) if check.kind == "not_negative" else map(_bound, check.values)
    return known.ExpectColumnValuesToBeBetween(min_value=low, max_value=high, **named)


def _bound(value: Any) -> Any:
    """Dates and times travel as text, which every SQL dialect compares with a time alike."""
    return value.isoformat() if hasattr(value, "isoformat") else value


@cache
def _failing_rows() -> Callable[..., Expectation]:
    """Great Expectations' UnexpectedRowsExpectation, counting the rows only.

    The original also fetches the rows, which runs every query twice.
    """
    original = great_expectations().expectations.UnexpectedRowsExpectation

    class CountedRowsExpectation(original):
        metric_dependencies = ("unexpected_rows_query.row_count",)

        def _validate(
            self, metrics: dict[str, Any], runtime_configuration: Any = None, execution_engine: Any = None
        ) -> dict[str, Any]:
            count = metrics["unexpected_rows_query.row_count"]
            return {"success": count == 0, "result": {"unexpected_count": count}}

    return CountedRowsExpectation
