"""DuckDB as a DB-API module, for libraries that reach a database through SQLAlchemy.

A connection sees Parquet files as views and nothing else. A cursor fetches when it executes: Great
Expectations closes a connection before it reads the result, and DuckDB 2 refuses further work on a
connection whose result is unread. So whoever asks must bound the rows of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from pipelines.engine.damage import explained
from pipelines.engine.duckdb import Room, file_list

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"
Error = duckdb.Error


def dbapi_connect(
    views: Mapping[str, Sequence[Path] | str],
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    spill: Path | None = None,
) -> Connection:
    """A connection that names each list of Parquet files (of one schema), or SELECT over those before it, as a view.

    Raises SourceError when a file is not readable Parquet.
    """
    room = Room(memory_limit=memory_limit, threads=threads, spill=spill)
    named: list[Path] = []
    for name, select in views.items():
        if not isinstance(select, str):
            named += select
            select = f"from read_parquet({file_list(select)}, hive_partitioning = false)"
        try:
            room.connection.execute(f'create view "{name}" as {select}').fetchall()
        except duckdb.Error as error:
            room.close()
            raise explained(error, named) from None
    return Connection(room, named)


class Connection:
    """One in-memory catalog; nothing is ever written, so commit and rollback have nothing to do."""

    def __init__(self, room: Room, files: Sequence[Path] = ()):
        self._room = room
        self._files = files

    def cursor(self) -> Cursor:
        return Cursor(self._room.connection)

    def commit(self) -> None:
        """Nothing to keep."""

    def rollback(self) -> None:
        """Nothing to undo."""

    def close(self) -> None:
        self._room.close()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a SELECT by column name, values as Python has them (DECIMAL as Decimal).

        Raises EngineError when DuckDB cannot run it, SourceError naming a file that cannot be read.
        """
        cursor = self.cursor()
        try:
            cursor.execute(sql)
        except duckdb.Error as error:
            raise explained(error, self._files) from error
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


class Cursor:
    """A result, wholly in hand once executed."""

    arraysize = 1

    def __init__(self, connection: duckdb.DuckDBPyConnection):
        self._connection = connection
        self._rows: list[tuple[Any, ...]] = []
        self.description: list[tuple[Any, ...]] = []

    @property
    def rowcount(self) -> int:
        return len(self._rows)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        result = self._connection.execute(sql, list(parameters))
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
