"""DuckDB as a DB-API module, for libraries that reach a database through SQLAlchemy.

A cursor fetches when it executes: Great Expectations closes a connection before it reads the result, and DuckDB 2
refuses further work on a connection whose result is unread. So every query must bound the rows of its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from pipelines.engine.duckdb import DuckDBEngine

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"
Error = duckdb.Error


class Connection:
    """The connection of an engine, which closes it; nothing is written through it."""

    def __init__(self, engine: DuckDBEngine):
        self._engine = engine

    def cursor(self) -> Cursor:
        return Cursor(self._engine)

    def commit(self) -> None:
        """Nothing is written."""

    def rollback(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """The engine closes it."""


class Cursor:
    """A result, fetched when it is executed."""

    arraysize = 1

    def __init__(self, engine: DuckDBEngine):
        self._engine = engine
        self._rows: list[tuple[Any, ...]] = []
        self.description: list[tuple[Any, ...]] = []

    @property
    def rowcount(self) -> int:
        return len(self._rows)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        result = self._engine.connection.execute(sql, list(parameters))
        self.description = list(result.description or [])
        self._rows = result.fetchall()

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        taken, self._rows = self._rows[:size], self._rows[size:]
        return taken

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows))

    def close(self) -> None:
        self._rows = []
