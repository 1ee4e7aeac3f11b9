"""A build small enough to watch, run twice at once and kill: `python -m support.lake_builds` (see `main`).

Every row carries the number of its build, so a reader knows whether what it sees is of one build.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from pathlib import Path

import polars as pl

from pipelines.warehouse.lake import Lake
from pipelines.warehouse.part import file_name, month_of, source_of
from pipelines.warehouse.stores import open_store

MONTHS = ("2026-01", "2026-02")
MONTHLY, WHOLE = "core/fct_small", "marts/mart_small"
PUBLISHED = (MONTHLY, WHOLE)


def open_lake(location: str, cache: Path, endpoint: str | None = None) -> Lake:
    return Lake(open_store(location, endpoint_url=endpoint), cache / "cache")


def seal(*made_of: object) -> str:
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]


def staged(folder: Path, number: int, month: str | None = None, rows: int = 3) -> Path:
    """A file of `rows` rows of build `number`, of a month or of one source's, as the builder stages it."""
    frame = pl.DataFrame(
        {"build": [number] * rows, "row": list(range(rows))}, schema={"build": pl.Int64, "row": pl.Int64}
    )
    if month:
        frame = frame.with_columns(billing_period=pl.lit(month_of(month)))
    if month and source_of(month):
        frame = frame.with_columns(source_name=pl.lit(source_of(month)))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{file_name(month or 'whole')}.parquet"
    frame.write_parquet(path)
    return path


def build(lake: Lake, folder: Path, number: int) -> None:
    """What is up to date is left alone, the rest staged and committed, and all of it published."""
    with lake.lock():
        for table, month in [*((MONTHLY, month) for month in MONTHS), (WHOLE, None)]:
            fingerprint = seal(table, month, number)
            if lake.fingerprint(table, month) != fingerprint:
                lake.commit(table, [staged(folder, number, month)], fingerprint, month)
        publish(lake, number)


def publish(lake: Lake, number: int) -> None:
    tables = {table: lake.record(table) for table in PUBLISHED}
    lake.publish(
        {"code_revision": str(number), "inputs": {"deliveries": [], "tags": {}}, "tables": tables, "checks": []}
    )


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_at(moment: str) -> None:
    """Have this process killed at the last table's commit, or between the commits and the publication."""
    import deltalake

    if moment == "publish":
        Lake.publish = _die  # type: ignore[method-assign]
    elif moment == "commit":
        commit = deltalake.DeltaTable.create_write_transaction

        def commit_or_die(self: deltalake.DeltaTable, *arguments: object, **options: object) -> None:
            if WHOLE in self.table_uri:
                _die()
            commit(self, *arguments, **options)  # type: ignore[arg-type]

        deltalake.DeltaTable.create_write_transaction = commit_or_die  # type: ignore[method-assign]


def main(location: str, cache: str, first: str, last: str, moment: str = "", endpoint: str = "") -> None:
    """Run the builds `first` to `last`, dying in the first of them at `moment`."""
    _die_at(moment)
    lake = open_lake(location, Path(cache), endpoint or None)
    for number in range(int(first), int(last) + 1):
        build(lake, Path(cache) / "staging", number)


if __name__ == "__main__":
    main(*sys.argv[1:])
