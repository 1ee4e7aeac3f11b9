"""What DuckDB does that a user must not meet.

DuckDB 2.0.0 lost rows without a word: an empty CREATE TABLE AS and a bulk insert in one transaction.
Groups and filters then saw nothing of a million rows that `count(*)` saw. The first version in the allowed range
that does it again must fail here, before it is let near money.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from pipelines.base.errors import UsageError
from pipelines.engine.duckdb import DuckDBEngine, connect

ROWS = 1_000_000
EMPTY = ("limit 0", "where false")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trap") / "src.parquet"
    months = pl.int_range(ROWS, eager=True) % 3 + 1
    pl.DataFrame({"p": "2026-0" + months.cast(pl.String), "n": pl.int_range(ROWS, eager=True)}).write_parquet(path)
    return path


@pytest.mark.parametrize("empty", EMPTY)
def test_rows_inserted_after_an_empty_create_are_all_seen(source: Path, empty: str) -> None:
    # It takes more than one thread.
    connection = connect(threads=2)
    run = lambda sql: connection.execute(sql).fetchall()  # noqa: E731
    run("begin")
    run(f"create table t as select * from '{source}' {empty}")
    run(f"insert into t select * from '{source}'")
    run("commit")
    assert run("select count(*) from t") == [(ROWS,)]
    counts = run("select p, count(*) from t group by 1 order by 1")
    assert counts == [("2026-01", 333_334), ("2026-02", 333_333), ("2026-03", 333_333)]
    assert run("delete from t where p = '2026-02'") == [(333_333,)]
    assert run("select count(*) from t") == [(ROWS - 333_333,)]
    connection.close()


def test_a_bill_that_memory_cannot_hold_names_the_setting() -> None:
    """A sorted list cannot spill: its 400 MB do not fit into 64 MB."""
    engine = DuckDBEngine(memory_limit="64MB", threads=1)
    with engine, pytest.raises(UsageError, match=r"more than `memory_limit` allows; raise it under \[warehouse\]"):
        engine.query("select list(number order by number desc) from range(50_000_000) as numbers(number)")
