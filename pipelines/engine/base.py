"""The one seam between DuckDB and Spark: views over Parquet files in, Parquet files out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import polars as pl

Item = TypeVar("Item")
Made = TypeVar("Made")


class Engine(ABC):
    """A place where SELECTs in DuckDB's dialect run over named views.

    All data is in files and an engine has only views, so closing one loses nothing.
    """

    follows: bool
    """Whether a view shows the new rows once a view that it reads is replaced; if not, it must be created again."""

    is_reproducible: bool
    """Whether the same rows in the same order always make the same bytes of a file."""

    @abstractmethod
    def view(self, name: str, files: Sequence[Path | str]) -> None:
        """Name a set of our own Parquet files of one schema, by path or, where the engine reads a store, by URI."""

    @abstractmethod
    def scan_files(self, name: str, files: Sequence[Path | str]) -> None:
        """Name delivered files: instants as naive UTC, each row with its `filename` and `file_row_number` (from 0)."""

    @abstractmethod
    def view_sql(self, name: str, sql: str) -> None:
        """Name a SELECT (`name` or `schema.name`); nothing is computed until it is read."""

    @abstractmethod
    def write(self, sql: str, out: Path | str) -> None:
        """Run a SELECT and leave its rows as a Parquet file, or as a folder of `part-*.parquet`, each in its order."""

    @abstractmethod
    def query(self, sql: str) -> pl.DataFrame:
        """Run a SELECT and return its rows; for small results."""

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a small SELECT by column name, values as Python objects (DECIMAL as Decimal)."""
        return self.query(sql).to_dicts()

    def map(self, function: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
        """What a function makes of each item, in their order; on a cluster each is a task of an executor.

        An error of ours that it raises is raised here.
        """
        return [function(item) for item in items]

    @abstractmethod
    def types(self, relation: str) -> dict[str, str]:
        """DuckDB's type of each column of a view."""

    @abstractmethod
    def close(self) -> None:
        """Release memory and files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
