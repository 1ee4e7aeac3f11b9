"""Errors of DuckDB as one sentence: a damaged file by its name, else DuckDB's message."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from pipelines.base.errors import EngineError, SourceError, TrainledgerError

# The statement or the machine is at fault: no file needs to be checked.
_NOT_OF_A_FILE = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.InterruptException,
    duckdb.OutOfMemoryException,
    duckdb.ParserException,
    duckdb.PermissionException,
)


def explained(error: duckdb.Error, files: Iterable[Path]) -> TrainledgerError:
    """The error to raise for one of DuckDB's: SourceError where one of the Parquet `files` cannot be read."""
    if not isinstance(error, _NOT_OF_A_FILE):
        # DuckDB does not always name the file, so each is tried.
        for file in sorted(set(files), key=lambda file: str(file) not in str(error)):
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
    connection = duckdb.connect(":memory:")
    try:
        name = str(file).replace("'", "''")
        connection.execute(f"select max(hash(held)) from read_parquet(['{name}'], hive_partitioning = false) as held")
        connection.fetchall()
    except duckdb.Error as error:
        reason = message_of(error).replace(f" '{file}'", "").rstrip(".")
        return f"is damaged ({reason})"
    finally:
        connection.close()
    return ""


def _fix(file: Path) -> str:
    # A delivery is kept or fetched as a whole.
    wanted = f"its folder {file.parent}" if (file.parent / "delivery.json").is_file() else "it"
    return f"remove {wanted} if it is there and run `trainledger build`, which makes it again"
