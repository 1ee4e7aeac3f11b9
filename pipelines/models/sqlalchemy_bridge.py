"""A SQLAlchemy dialect through which Great Expectations reaches Parquet files by DuckDB.

Great Expectations (1.24) has no DuckDB engine of its own and fails on the public DuckDB dialect, which
keeps one cursor for all statements. This dialect speaks PostgreSQL's SQL, which DuckDB understands, so
that every check is computed inside DuckDB and only its answer travels. Great Expectations accepts a
database only as a URL; `lend` makes a connection known under one. To be dropped when Great Expectations
ships a DuckDB engine.
"""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy import URL
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import ReflectedColumn, ReflectedPrimaryKeyConstraint
from sqlalchemy.pool import Pool, StaticPool
from sqlalchemy.types import UserDefinedType

from pipelines.engine import dbapi

SCHEME = "trainledger"

_lent: WeakValueDictionary[str, dbapi.Connection] = WeakValueDictionary()
_numbers = itertools.count(1)


def lend(connection: dbapi.Connection) -> str:
    """The URL of a connection, known as long as the connection is kept."""
    number = str(next(_numbers))
    _lent[number] = connection
    return f"{SCHEME}:///{number}"


class NamedType(UserDefinedType[Any]):
    """A column type known by DuckDB's name for it; values pass through as DuckDB gives them."""

    cache_ok = True

    def __init__(self, spec: str):
        self.spec = spec

    def get_col_spec(self, **kw: Any) -> str:
        return self.spec


class Dialect(PGDialect):
    """PostgreSQL's SQL over a lent DuckDB connection."""

    # Great Expectations picks its SQL by this name.
    name = "postgresql"
    driver = SCHEME
    default_paramstyle = dbapi.paramstyle
    supports_statement_cache = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[Pool]:
        return StaticPool

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        return [url.database], {}

    def connect(self, *cargs: Any, **cparams: Any) -> Any:
        return _lent[cargs[0]]

    def initialize(self, connection: Connection) -> None:
        self.default_schema_name = "main"

    def do_close(self, dbapi_connection: Any) -> None:
        """The connection is only lent."""

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
        return [{"name": row[0], "type": NamedType(row[1]), "nullable": True, "default": None} for row in found]

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        return {"constrained_columns": [], "name": None}


# SQLAlchemy finds a dialect in a module by name; Great Expectations asks that module for `dialect`.
dialect = Dialect
registry.register(SCHEME, __name__, "Dialect")
