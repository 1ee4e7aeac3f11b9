"""DuckDB in memory: the default engine. Data rests in Parquet files, in DuckDB tables only what a reader may see."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import polars as pl

from pipelines.base.errors import EngineError, SourceError, TrainledgerError, UsageError
from pipelines.base.sql import identifier, quoted
from pipelines.engine.base import Engine

# Row groups of this many rows keep the writer's buffers small at any number of lines.
ROW_GROUP_ROWS = 122_880
# Below this many bytes of input, more threads cost more than they gain.
_SMALL_BYTES = 8 << 20

_SESSION = (
    "set timezone = 'UTC'",
    "set enable_progress_bar = false",
    # It computes a window over grouped lines by grouping them once more: a second scan of the bill.
    "set disabled_optimizers = 'window_self_join'",
)
# The words before a statement that show its plan; with ANALYZE the statement runs.
_EXPLAIN = re.compile(r"\A\s*explain\b\s*+(analyze\b\s*+)?+(\([\w\s,]*\)\s*+)?+(?!\()", re.IGNORECASE)
# Days since 1970 of the first and the last day of the calendar.
_CALENDAR = (date.min.toordinal() - date(1970, 1, 1).toordinal(), date.max.toordinal() - date(1970, 1, 1).toordinal())


def file_list(files: Sequence[Path | str]) -> str:
    """A SQL list literal of file paths."""
    if not files:
        raise ValueError("a view needs at least one file")
    return "[" + ", ".join(quoted(file) for file in files) + "]"


def rows_of(files: Sequence[Path | str], *columns: str) -> str:
    """The rows of Parquet files as a relation, with what `columns` has DuckDB add to them."""
    return f"read_parquet({', '.join([file_list(files), *columns, 'hive_partitioning = false'])})"


def connect(
    *, memory_limit: str | None = None, threads: int | None = None, spill: Path | None = None
) -> duckdb.DuckDBPyConnection:
    """An in-memory connection that never reaches for the network and spills below `spill`."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "true",
    }
    if memory_limit:
        config["memory_limit"] = memory_limit
    if threads:
        config["threads"] = threads
    if spill:
        config["temp_directory"] = str(spill)
    connection = duckdb.connect(":memory:", config=config)
    for setting in _SESSION:
        connection.execute(setting)
    return connection


class DuckDBEngine(Engine):
    """Engine over DuckDB in memory. A view follows the views it reads when those are replaced."""

    follows = True
    is_reproducible = True

    def __init__(self, *, memory_limit: str = "2GB", threads: int | None = None, spill: Path | None = None):
        self.connection = connect(memory_limit=memory_limit, threads=threads, spill=spill)
        self._files: list[Path] = []
        self._schemas = [""]
        self._views: dict[str, str] = {}
        # What each view of files reads, and the bytes of it.
        self._relations: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        # Bytes of the files named since rows were last written, and the threads that wrote them.
        self._bytes = 0
        self._all_threads = self._threads = int(self.rows("select current_setting('threads') as threads")[0]["threads"])

    def view(self, name: str, files: Sequence[Path | str]) -> None:
        relation = rows_of(files)
        if not self._reads(name, relation, files):
            self.view_sql(name, f"from {relation}")
            self._relations[name] = relation

    def scan_files(self, name: str, files: Sequence[Path | str]) -> None:
        relation = rows_of(files, "filename = true", "file_row_number = true")
        if self._reads(name, relation, files):
            return
        # AWS writes times as instants; as naive UTC they need no time zone library, which costs more than the scan.
        types = self.types(relation).items()
        instants = [identifier(column) for column, kind in types if kind == "TIMESTAMP WITH TIME ZONE"]
        naive = ", ".join(f"make_timestamp(epoch_us({column})) as {column}" for column in instants)
        self.view_sql(name, f"select * {f'replace ({naive}) ' if naive else ''}from {relation}")
        self._relations[name] = relation

    def view_sql(self, name: str, sql: str) -> None:
        # A view of the same text is the same view.
        if self._views.get(name) == sql:
            return
        self._relations.pop(name, None)
        self._run(f"create or replace view {self._path(name)} as {sql}")
        self._views[name] = sql

    def keep(self, name: str, sql: str) -> None:
        """Create a table of the rows of a SELECT, which then needs neither files nor views."""
        self._run(f"create table {self._path(name)} as {sql}")

    def forget(self, schema: str) -> None:
        """Drop a schema of views; from now on no file of any view counts as named."""
        self._schemas.remove(schema)
        self._search()
        self._run(f'drop schema "{schema}" cascade')
        self._files = []

    def _path(self, name: str) -> str:
        """The quoted path of a new view or table; its schema is made where it is missing."""
        schema, _, table = name.rpartition(".")
        if schema not in self._schemas:
            # Its tables are then also found by their bare names.
            self._run(f'create schema "{schema}"')
            self._schemas.append(schema)
            self._search()
        return f'"{schema}"."{table}"' if schema else f'"{table}"'

    def _search(self) -> None:
        self._run(f"set search_path = {quoted('main' + ','.join(self._schemas))}")

    def types(self, relation: str) -> dict[str, str]:
        return {str(row[0]): str(row[1]) for row in self._run(f"describe select * from {relation}")}

    def rows(self, sql: str) -> list[dict[str, Any]]:
        with self._running():
            result = self.connection.execute(sql)
            names = [column[0] for column in result.description or []]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def write(self, sql: str, out: Path | str) -> None:
        out = Path(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        self._use_threads(1 if self._bytes < _SMALL_BYTES else self._all_threads)
        self._bytes = 0
        how = f"format parquet, compression snappy, row_group_size {ROW_GROUP_ROWS}"
        self._run(f"copy ({sql}) to {quoted(out)} ({how})")

    def write_csv(self, sql: str, out: Path) -> None:
        """Run a SELECT and leave its rows as a csv with a header, null as nothing between two commas."""
        self._run(f"copy ({sql}) to {quoted(out)} (format csv, header)")

    def query(self, sql: str, values: Mapping[str, object] | None = None) -> pl.DataFrame:
        """Run a SELECT; `values` stand for the names that follow a dollar sign in the SELECT."""
        try:
            with self._running():
                if not self._is_one_select(sql):
                    raise EngineError("That is not one SELECT; write one SELECT.")
                # DuckDB 2 makes no Polars frame itself.
                table = self.connection.execute(sql, values or None).to_arrow_table()
            return _in_the_calendar(pl.DataFrame(table.rename_columns(_distinct(table.column_names))))
        except pl.exceptions.PolarsError as error:
            raise EngineError(f"A column cannot be shown ({error}); cast it to varchar.") from error

    def close_off(self) -> None:
        """From now on read only the files already named, and write or install nothing."""
        self._run(f"set allowed_paths = {file_list(self._files)}" if self._files else "select 1")
        for setting in ("enable_external_access = false", "lock_configuration = true"):
            self._run(f"set {setting}")

    def close(self) -> None:
        self.connection.close()

    def _reads(self, name: str, relation: str, files: Sequence[Path | str]) -> bool:
        """Whether a view already reads exactly these files, whose bytes are counted as input either way."""
        is_known = self._relations.get(name) == relation
        if not is_known:
            paths = [Path(file) for file in files]
            self._files += paths
            self._sizes[name] = _size(paths)
        self._bytes += self._sizes[name]
        return is_known

    def _use_threads(self, count: int) -> None:
        if count != self._threads:
            self._run(f"set threads = {count}")
            self._threads = count

    def _is_one_select(self, sql: str) -> bool:
        statements = self.connection.extract_statements(sql)
        # A PIVOT becomes two, of which neither has a text.
        written = [statement for statement in statements if statement.query]
        if not statements or len(written) > 1:
            return False
        if statements[-1].type == duckdb.StatementType.EXPLAIN:
            explained = _EXPLAIN.sub("", sql)
            return explained != sql and self._is_one_select(explained)
        return statements[-1].type == duckdb.StatementType.SELECT

    def _run(self, statement: str) -> list[tuple[object, ...]]:
        # Always fetched: DuckDB 2 refuses the connection while a result is open.
        with self._running():
            return self.connection.execute(statement).fetchall()

    @contextmanager
    def _running(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise explained(error, self._files) from error
        except RuntimeError:
            # A signal. Its threads would go on, and closing the connection may wait for them without end.
            self.connection.interrupt()
            raise


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of columns, a repeated one with a number as DuckDB's clients show it: run_id, run_id_1."""
    found: list[str] = []
    for name in names:
        own = name
        for number in count(1):
            if own not in found and (own == name or own not in names):
                break
            own = f"{name}_{number}"
        found.append(own)
    return found


def _in_the_calendar(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame; EngineError for a day outside of Python's calendar, which Polars cannot print."""
    for name in [column for column, kind in frame.schema.items() if kind == pl.Date]:
        days = frame[name].to_physical()
        if not days.is_between(*_CALENDAR).all():
            raise EngineError(f"{name} contains a day outside the years 1 to 9999; cast it to varchar.")
    return frame


def write_database(
    path: Path, tables: Mapping[str, Sequence[Path]], before: Mapping[str, Collection[str]] = MappingProxyType({})
) -> None:
    """Make `path` a DuckDB file of `tables` (`schema.name` to Parquet files) that clients since 1.2 can open.

    `before` names the files that the tables there were made from. Of a table with some of its files in `before`, each
    file holds a `billing_period`. SourceError names a file that cannot be read.
    """
    if not before:
        path.unlink(missing_ok=True)
    try:
        # Two threads that write one table wait for each other more than they write; more memory makes it no faster.
        with connect(threads=1, memory_limit="256MB") as connection:
            # The file is no smaller with these; trying them takes a fifth of the time.
            connection.execute("set disabled_compression_methods = 'alp,alprd,fsst,zstd'")
            connection.execute(f"attach {quoted(path)} as copy (storage_version 'v1.2.0')")
            connection.execute("begin")
            for schema in sorted({name.partition(".")[0] for name in tables}):
                connection.execute(f"create schema if not exists copy.{schema}")
            for name in sorted(before.keys() - tables.keys()):
                connection.execute(f"drop table copy.{name}")
            for name, files in tables.items():
                had = before.get(name, ())
                if {file.name for file in files} != {*had}:
                    for statement in _replacing(f"copy.{name}", files, had):
                        connection.execute(statement)
            connection.execute("commit")
            connection.execute("detach copy")
    except duckdb.Error as error:
        if before:
            # It is damaged, or somebody changed it.
            return write_database(path, tables)
        raise explained(error, [file for files in tables.values() for file in files]) from error


def _replacing(table: str, files: Sequence[Path], had: Collection[str]) -> Iterator[str]:
    """The statements that leave the rows of `files` in a table made from the files named `had`, if from any."""
    kept = [file for file in files if file.name in had]
    added = [file for file in files if file.name not in had]
    if not kept:
        yield f"create or replace table {table} as from {rows_of(files)}"
        return
    yield f"delete from {table} where billing_period not in (select billing_period from {rows_of(kept)})"
    if added:
        yield f"insert into {table} from {rows_of(added)}"


def _size(files: Sequence[Path]) -> int:
    """The bytes of files; a missing one is reported by the statement that reads it."""
    return sum(file.stat().st_size for file in files if file.is_file())


# The statement or the machine is at fault: no file needs to be checked.
_NOT_OF_A_FILE = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.InterruptException,
    duckdb.OutOfRangeException,
    duckdb.ParserException,
    duckdb.PermissionException,
)


_NO_MEMORY = (
    "DuckDB needs more than `memory_limit` allows; raise it under [warehouse], to half of the machine's memory at "
    "most, and run it again: it continues from here."
)


def explained(error: duckdb.Error, files: Iterable[Path]) -> TrainledgerError:
    """The error to raise for one of DuckDB's: SourceError where one of the Parquet `files` cannot be read.

    UsageError where `memory_limit` is too low for the bill.
    """
    if isinstance(error, duckdb.OutOfMemoryException):
        return UsageError(_NO_MEMORY)
    if not isinstance(error, _NOT_OF_A_FILE):
        # DuckDB does not always name the file, so each is tried; one that is gone and not named was moved since.
        for file in sorted(set(files), key=lambda file: (str(file) not in str(error), not file.is_file())):
            if reason := _damage(file):
                return SourceError(f"{file} {reason}; {_fix(file)}.")
    return EngineError(f"DuckDB: {message_of(error)}")


def message_of(error: duckdb.Error) -> str:
    """DuckDB's message with the names it suggests, without the statement it repeats."""
    first, *others = str(error).splitlines()
    return " ".join([first, *(line for line in others if line.startswith(("Did you mean", "Candidate")))])


def _damage(file: Path) -> str:
    """Why a file cannot be read; empty where it can."""
    if not file.is_file():
        return "is missing"
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"select max(hash(held)) from {rows_of([file])} as held").fetchall()
    except duckdb.Error as error:
        reason = message_of(error).replace(f" '{file}'", "").rstrip(".")
        return f"is damaged ({reason})"
    return ""


def _fix(file: Path) -> str:
    # A delivery is kept or fetched as a whole.
    wanted = f"its folder {file.parent}" if (file.parent / "delivery.json").is_file() else "it"
    return f"remove {wanted} if it is there and run `trainledger build`, which makes it again"
