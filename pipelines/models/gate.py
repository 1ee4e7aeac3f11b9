"""The gate of the public marts: their contracts as Great Expectations suites, validated inside DuckDB.

Each check becomes one expectation that carries the check's name in its metadata and its severity as Great
Expectations names it. The library takes seconds to import, so it is imported when the first suite is validated and
never before. Nothing is written, no page is made, no network is reached.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipelines.base.errors import CheckError
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.checks import Check, is_query, query_of
from pipelines.models.validate import Validated

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
    from great_expectations.execution_engine.sqlalchemy_execution_engine import SqlAlchemyExecutionEngine
    from great_expectations.expectations.expectation import Expectation

GX_SEVERITIES = {"error": "critical", "warn": "warning"}
# Great Expectations compares numbers as DOUBLE, which keeps the ten decimals of an amount up to this size apart.
_APART = 100_000
_NOWHERE_NULL = "nowhere_null"
_VERDICT_ONLY = {"result_format": "BOOLEAN_ONLY"}


class ExpectationsGate:
    """Great Expectations over the views of one engine: one context and one connection for all suites of a build."""

    def __init__(self, engine: DuckDBEngine):
        self._engine = engine

    def __call__(self, table: str, checks: Sequence[Check]) -> dict[str, Validated]:
        """The result of each check, by its name. CheckError where an expectation cannot be computed.

        Most checks promise that a column has no nulls, and most pass: validated as one they take a fourth of the time.
        """
        filled = [check for check in checks if check.kind == "not_null" and check.severity == "error"]
        outcomes = self.outcomes(table, [check for check in checks if check not in filled] + _nowhere_null(filled))
        together = outcomes.pop(_NOWHERE_NULL, None)
        if together and together.success:
            outcomes |= dict.fromkeys((check.name for check in filled), together)
        else:
            outcomes |= self.outcomes(table, filled)
        # Failing rows take more queries to count, so only those of failed checks are counted.
        failed = [check for check in checks if not outcomes[check.name].success]
        outcomes |= self.outcomes(table, failed, {"result_format": "BASIC"})
        return {name: _validated(outcome) for name, outcome in outcomes.items()}

    def outcomes(
        self, table: str, checks: Iterable[Check], result_format: Mapping[str, Any] = _VERDICT_ONLY
    ) -> dict[str, ExpectationValidationResult]:
        """The validation result of each check, by its name, with as much in it as the result format asks for."""
        expectations = [_expectation(check) for check in checks if check.kind != "columns"]
        if not expectations:
            return {}
        wanted = great_expectations().ExpectationSuite(name=table, expectations=expectations)
        from great_expectations.core.batch import Batch
        from great_expectations.execution_engine.sqlalchemy_batch_data import SqlAlchemyBatchData
        from great_expectations.validator.validator import Validator

        # Making the view a data source of the project first takes longer than most checks.
        rows: Any = SqlAlchemyBatchData(self._database, table_name=table)
        validator = Validator(self._database, data_context=quiet_project(), batches=[Batch(data=rows)])
        outcomes: dict[str, ExpectationValidationResult] = {}
        for outcome in validator.graph_validate(
            wanted.expectation_configurations, {"result_format": dict(result_format)}
        ):
            configuration = outcome.expectation_config
            assert configuration is not None and configuration.meta is not None
            name = configuration.meta["check"]
            if trouble := _trouble(outcome):
                raise CheckError(
                    f"Great Expectations cannot compute the check {name} of {table} ({trouble}); fix it in "
                    f"expectations/marts/{table}.yml."
                )
            outcomes[name] = outcome
        return outcomes

    @cached_property
    def _database(self) -> SqlAlchemyExecutionEngine:
        great_expectations()
        from great_expectations.execution_engine.sqlalchemy_execution_engine import SqlAlchemyExecutionEngine

        from pipelines.engine.sqlalchemy_bridge import database_of

        return SqlAlchemyExecutionEngine(engine=database_of(self._engine))


# One thread at a time changes what can be imported.
_IMPORTING = Lock()


@cache
def great_expectations() -> ModuleType:
    """The library, imported without the warnings other packages print on the way."""
    with _IMPORTING, warnings.catch_warnings(), _out_of_sight():
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
def _out_of_sight() -> Iterator[None]:
    """Great Expectations imports Spark where it finds it, and SciPy for checks of distributions, which no contract has.

    Each takes a second or more. Worse, Spark Connect takes a process without a main file, such as a Dagster run, for
    its own tests and ends it. In the place of SciPy stands an empty module, so that it need not be installed.
    """
    scipy, stats = (module_from_spec(ModuleSpec(name, None)) for name in ("scipy", "scipy.stats"))
    vars(scipy)["stats"] = stats
    # None makes an import fail as if the module were not installed.
    replaced = {"pyspark": None, "pyspark.sql.connect": None, "scipy": scipy, "scipy.stats": stats}
    hidden = {name: module for name, module in replaced.items() if name not in sys.modules}
    sys.modules.update(hidden)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)


def _nowhere_null(checks: Sequence[Check]) -> list[Check]:
    """One check that passes if all these `not_null` checks do; an empty list if there are no such checks."""
    if not checks:
        return []
    columns = [column for check in checks for column in check.columns]
    any_null = " or ".join(f'"{column}" is null' for column in columns)
    title = f"{', '.join(columns)} are never null"
    return [Check(_NOWHERE_NULL, title, "rows", "error", query=f"select 1 from {{batch}} where {any_null}")]


def _expectation(check: Check) -> Expectation:
    known = great_expectations().expectations
    named: dict[str, Any] = {"meta": {"check": check.name}, "severity": GX_SEVERITIES[check.severity]}
    if is_query(check) or any(isinstance(value, int | float) and abs(value) > _APART for value in check.values):
        # SQLAlchemy would take a colon before a word for a parameter.
        query = re.sub(r"(?<![:\w]):(?=\w)", r"\:", query_of(check))
        return _failing_rows_expectation()(unexpected_rows_query=query, **named)
    named["column"] = check.columns[0]
    if check.kind == "not_null":
        return known.ExpectColumnValuesToNotBeNull(**named)
    if check.kind == "in_set":
        return known.ExpectColumnValuesToBeInSet(value_set=list(check.values), **named)
    low, high = (0, None) if check.kind == "not_negative" else check.values
    return known.ExpectColumnValuesToBeBetween(min_value=low, max_value=high, **named)


def _validated(outcome: ExpectationValidationResult) -> Validated:
    configuration = outcome.expectation_config
    assert configuration is not None
    return Validated(configuration.type, 0 if outcome.success else outcome.result["unexpected_count"])


def _trouble(outcome: ExpectationValidationResult) -> str | None:
    """Why a check could not be computed, as the database reports it."""
    information = outcome.exception_info
    parts = [information] if "raised_exception" in information else list(information.values())
    for part in parts:
        if part["raised_exception"]:
            # SQLAlchemy puts the driver's class in front.
            return re.sub(r"^\([\w.]+\) ", "", str(part["exception_message"]).splitlines()[0])
    return None


@cache
def _failing_rows_expectation() -> Callable[..., Expectation]:
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
