"""A SQLAlchemy engine through which Great Expectations reaches Parquet files by DuckDB.

Great Expectations (1.24) has no DuckDB engine of its own and fails on the public DuckDB dialect, which keeps one
cursor for all statements. This dialect speaks PostgreSQL's SQL, which DuckDB understands, so that every check is
computed inside DuckDB and only its answer travels. To be dropped when Great Expectations ships a DuckDB engine.
"""

from __future__ import annotations

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
    # Each statement gets a cursor of its own: Great Expectations closes a connection before it reads the result, and
    # DuckDB 2 refuses further work on a connection whose result is unread.
    lent: Any = engine.connection
    return Engine(StaticPool(lambda: lent, dialect=dialect), dialect, URL.create("duckdb"))


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
