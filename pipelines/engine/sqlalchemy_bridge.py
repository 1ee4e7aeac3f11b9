"""A SQLAlchemy engine through which Great Expectations reaches Parquet files by DuckDB.

Great Expectations (1.24) has no DuckDB engine of its own and fails on the public DuckDB dialect, which keeps one
cursor for all statements. This dialect speaks PostgreSQL's SQL, which DuckDB understands, so that every check is
computed inside DuckDB and only its answer travels. To be dropped when Great Expectations ships a DuckDB engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
from sqlalchemy import URL
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.interfaces import ReflectedColumn, ReflectedPrimaryKeyConstraint
from sqlalchemy.pool import StaticPool
from sqlalchemy.types import UserDefinedType

from pipelines.engine.duckdb import DuckDBEngine


def database_of(engine: DuckDBEngine) -> Engine:
    """The views of an engine as a database; nothing is written through it, and the engine closes its connection."""
    dialect = _Dialect(dbapi=duckdb)  # type: ignore[arg-type]
    lent: Any = _Connection(engine)
    return Engine(StaticPool(lambda: lent, dialect=dialect), dialect, URL.create("duckdb"))


class _Connection:
    def __init__(self, engine: DuckDBEngine):
        self._engine = engine

    def cursor(self) -> _Cursor:
        return _Cursor(self._engine)


class _Cursor:
    """A result, fetched when it is executed; every query must bound its rows.

    Great Expectations closes a connection before it reads the result, and DuckDB 2 refuses further work on a
    connection whose result is unread.
    """

    arraysize = 1

    def __init__(self, engine: DuckDBEngine):
        self._engine = engine
        self._rows: list[tuple[Any, ...]] = []
        self.description: list[tuple[Any, ...]] = []
        self.rowcount = -1

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        result = self._engine.connection.execute(sql, list(parameters))
        self.description, self._rows = list(result.description or []), result.fetchall()

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        taken, self._rows = self._rows[:size], self._rows[size:]
        return taken

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows))

    def close(self) -> None:
        self._rows = []


class _Named(UserDefinedType[Any]):
    """A column type known by DuckDB's name for it; values pass through as DuckDB gives them."""

    cache_ok = True

    def __init__(self, spec: str):
        self.spec = spec

    def get_col_spec(self, **kw: Any) -> str:
        return self.spec


class _Dialect(PGDialect):
    # Great Expectations picks its SQL by this name.
    name = "postgresql"
    driver = "duckdb"
    default_schema_name = "main"
    supports_statement_cache = False

    def _nothing(self, dbapi_connection: Any) -> None:
        """Nothing is written, and the connection is only lent."""

    do_begin = do_commit = do_rollback = do_close = do_terminate = _nothing

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        return table_name in self.get_view_names(connection)

    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        found = connection.exec_driver_sql(
            "select view_name from duckdb_views() where not internal and database_name = current_database()"
        )
        return [row[0] for row in found.fetchall()]

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedColumn]:
        found = connection.exec_driver_sql(f'describe "{table_name}"').fetchall()
        return [{"name": row[0], "type": _Named(row[1]), "nullable": True, "default": None} for row in found]

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        return {"constrained_columns": [], "name": None}
