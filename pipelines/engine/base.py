"""The one seam between DuckDB and Spark: views over Parquet files in, one Parquet file out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl


class Engine(ABC):
    """A place where SELECTs in DuckDB's dialect run over named views.

    All data is in files and an engine has only views, so closing one loses nothing.
    """

    follows: bool
    """Whether a view shows the new rows once a view that it reads is replaced; if not, it must be created again."""

    @abstractmethod
    def view(self, name: str, files: Sequence[Path]) -> None:
        """Name a set of our own Parquet files of one schema."""

    @abstractmethod
    def scan_files(self, name: str, files: Sequence[Path]) -> None:
        """Name delivered files: instants as naive UTC, each row with its `filename` and `file_row_number` (from 0)."""

    @abstractmethod
    def view_sql(self, name: str, sql: str) -> None:
        """Name a SELECT (`name` or `schema.name`); nothing is computed until it is read."""

    @abstractmethod
    def write(self, sql: str, out: Path) -> None:
        """Run a SELECT and leave its rows, in its order, as one Parquet file."""

    @abstractmethod
    def query(self, sql: str) -> pl.DataFrame:
        """Run a SELECT and return its rows; for small results."""

    @abstractmethod
    def close(self) -> None:
        """Release memory and files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
