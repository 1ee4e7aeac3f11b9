"""Checks the staged files of a table against its contract, before anybody can see them.

Great Expectations runs in a context that lives as long as the call: nothing is written, no page is made, no
network is reached. The checks of columns cost one scan together; only those that fail are run again, to
name rows.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.engine.dbapi import Connection, dbapi_connect
from pipelines.errors import CheckError, UsageError
from pipelines.quality.bridge import serve
from pipelines.quality.checks import Check, Severity
from pipelines.quality.contract import Contract
from pipelines.quality.suite import nowhere_null, query_of, quiet_project, suite

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.validator.validator import Validator

# Rows of figures kept with a check: enough for the identities of a dozen months.
FIGURES = 60


@dataclass(frozen=True)
class CheckResult:
    """How one check came out; every value is fit for JSON.

    `unexpected_count` counts failing rows: repeated keys for `key_unique`, columns for `columns_as_typed`.
    `sample` shows the first of them by column name: the key and the column checked, or what the query of a
    `rows` check selects; decimals are text, times ISO 8601. `title` is the check in words. `figures` are what the
    check is about, where it shows any, whether it passed or not.
    """

    check: str
    severity: Severity
    passed: bool
    observed: str
    unexpected_count: int
    sample: list[dict[str, Any]]
    title: str
    figures: list[dict[str, Any]] = field(default_factory=list)


def validate(
    table: str,
    files: Sequence[Path],
    contract: Contract,
    sample: int = 5,
    *,
    extra: Mapping[str, Sequence[Path] | str] | None = None,
    memory_limit: str = "2GB",
    threads: int | None = None,
    spill: Path | None = None,
) -> list[CheckResult]:
    """One result for each check of the contract, in its order.

    `files` are the Parquet files of the table `layer/name`, `extra` those of the other tables that its
    `rows` checks read, by bare name (`contract.reads`); for a view its SELECT, after what it reads. When the
    columns differ no other check is run: each fails as not checked. Raises UsageError when `extra` lacks a
    table, SourceError when a file is not Parquet, CheckError when a check cannot be computed.
    """
    view = table.rpartition("/")[2]
    views = {**(extra or {}), view: files}
    for name in contract.reads:
        if name not in views:
            raise UsageError(f"The checks of {table} read {name}, whose files were not given; build it first.")
    connection = dbapi_connect(views, memory_limit=memory_limit, threads=threads, spill=spill)
    with serve(connection) as url:
        differing = _differing_columns(connection, view, contract)
        if differing:
            return [_columns_differ(check, differing, sample) for check in contract.checks]
        return _Run(connection, url, table, contract, sample).results()


class _Run:
    """Great Expectations at work on one view."""

    def __init__(self, connection: Connection, url: str, table: str, contract: Contract, sample: int):
        self._connection = connection
        self._table = table
        self._view = table.rpartition("/")[2]
        self._contract = contract
        self._sample = sample
        self._url = url

    def results(self) -> list[CheckResult]:
        checks = self._contract.checks
        # Of no row every check of rows holds; only a query may find that some are missing.
        is_empty = self._connection.rows(f'select count(*) as row_count from "{self._view}"')[0]["row_count"] == 0
        asked = [check for check in checks if check.kind == "rows"] if is_empty else checks
        failed = self._failed(asked)
        rows = self._failing_rows(failed)
        shown = {check.name: self._shown(check.shows) for check in checks if check.shows}
        return [
            _result(check, check not in failed, *rows.get(check.name, (0, [])), shown.get(check.name, []))
            for check in checks
        ]

    def _failed(self, asked: Sequence[Check]) -> list[Check]:
        """The checks that do not hold. Most promise no nulls and do: asked as one, they take a fourth of the time."""
        filled = [check for check in asked if check.kind == "not_null"]
        together = nowhere_null(filled)
        single = [check for check in asked if check not in filled]
        form = {"result_format": "BOOLEAN_ONLY"}
        outcomes = self._outcomes([*single, *together], form)
        if not all(outcomes[check.name].success for check in together):
            outcomes |= self._outcomes(filled, form)
        return [check for check in asked if check.name in outcomes and not outcomes[check.name].success]

    def _shown(self, query: str) -> list[dict[str, Any]]:
        """The first of the figures a check is about."""
        query = query.format(batch=f'"{self._view}"')
        return self._connection.rows(f"select * from ({query}) as shown limit {FIGURES}")

    def _failing_rows(self, failed: Sequence[Check]) -> dict[str, tuple[int, list[dict[str, Any]]]]:
        """How many rows fail each check, and the first of them."""
        by_query = [check for check in failed if check.kind in ("rows", "unique")]
        rows = {check.name: self._queried(query_of(check)) for check in by_query}
        by_column = [check for check in failed if check not in by_query]
        shown = self._contract.key or tuple(column.name for column in self._contract.columns)
        form = {
            "result_format": "SUMMARY",
            "unexpected_index_column_names": list(shown),
            "partial_unexpected_count": self._sample,
        }
        for name, outcome in self._outcomes(by_column, form).items():
            rows[name] = (
                outcome.result["unexpected_count"],
                outcome.result.get("partial_unexpected_index_list") or [],
            )
        return rows

    def _queried(self, query: str) -> tuple[int, list[dict[str, Any]]]:
        query = query.format(batch=f'"{self._view}"')
        count = self._connection.rows(f"select count(*) as row_count from ({query}) as failing")
        first = self._connection.rows(f"select * from ({query}) as failing order by all limit {self._sample}")
        return count[0]["row_count"], first

    def _outcomes(self, checks: Iterable[Check], form: dict[str, Any]) -> dict[str, ExpectationValidationResult]:
        """What Great Expectations says of each check, by its name."""
        asked = suite(self._view, checks)
        if not asked.expectations:
            return {}
        outcomes: dict[str, ExpectationValidationResult] = {}
        for outcome in _validator(self._view, self._url).graph_validate(
            asked.expectation_configurations, {"result_format": form}
        ):
            name = _check_name(outcome)
            trouble = _trouble(outcome)
            if trouble:
                raise CheckError(f"The check {name} of {self._table} cannot be computed ({trouble}); mend it.")
            outcomes[name] = outcome
        return outcomes


def _validator(view: str, url: str) -> Validator:
    """Great Expectations on one view; making it a data source of a project first takes longer than most checks."""
    project = quiet_project()
    from great_expectations.core.batch import Batch
    from great_expectations.execution_engine.sqlalchemy_batch_data import SqlAlchemyBatchData
    from great_expectations.execution_engine.sqlalchemy_execution_engine import SqlAlchemyExecutionEngine
    from great_expectations.validator.validator import Validator

    engine = SqlAlchemyExecutionEngine(connection_string=url)
    rows: Any = SqlAlchemyBatchData(engine, table_name=view)
    return Validator(engine, data_context=project, batches=[Batch(data=rows)])


def _check_name(outcome: ExpectationValidationResult) -> str:
    configuration = outcome.expectation_config
    assert configuration is not None and configuration.meta is not None
    return configuration.meta["check"]


def _trouble(outcome: ExpectationValidationResult) -> str | None:
    """Why a check could not be computed, in the words of the database."""
    information = outcome.exception_info
    parts = [information] if "raised_exception" in information else list(information.values())
    for part in parts:
        if part["raised_exception"]:
            # SQLAlchemy puts the driver's class in front.
            return re.sub(r"^\([\w.]+\) ", "", str(part["exception_message"]).splitlines()[0])
    return None


def _differing_columns(connection: Connection, view: str, contract: Contract) -> list[dict[str, Any]]:
    """Columns that the files and the contract do not have alike."""
    found = {row["column_name"]: row["column_type"] for row in connection.rows(f'describe "{view}"')}
    wanted = {column.name: column.type for column in contract.columns}
    return [
        {"column": name, "wanted": wanted.get(name), "found": found.get(name)}
        for name in {**wanted, **found}
        if wanted.get(name) != found.get(name)
    ]


def _columns_differ(check: Check, differing: list[dict[str, Any]], sample: int) -> CheckResult:
    if check.kind == "columns":
        words = f"differing columns: {len(differing)}"
        return CheckResult(check.name, check.severity, False, words, len(differing), differing[:sample], check.title)
    words = "not checked: the columns differ"
    return CheckResult(check.name, check.severity, False, words, 0, [], check.title)


def _result(
    check: Check, passed: bool, count: int, rows: list[dict[str, Any]], shown: list[dict[str, Any]]
) -> CheckResult:
    counted = {"unique": "repeated keys", "columns": "differing columns"}.get(check.kind, "failing rows")
    return CheckResult(
        check=check.name,
        severity=check.severity,
        passed=passed,
        observed=f"{counted}: {count}",
        unexpected_count=count,
        sample=_rows_as_json(rows),
        title=check.title,
        figures=_rows_as_json(shown),
    )


def _rows_as_json(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: _json_safe(value) for name, value in row.items()} for row in rows]


def _json_safe(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
