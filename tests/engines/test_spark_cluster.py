"""The same engine on a standalone cluster, whose executors are processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.cluster import cluster

pytestmark = pytest.mark.spark

# A process has one Spark application, so this one starts in a process of its own.
WORK = """
import sys
from pathlib import Path
from pipelines.config.spark import Spark
from pipelines.engine.spark import SparkEngine

master, source, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
with SparkEngine(Spark(master=master)) as engine:
    engine.scan_files("number", [source])
    engine.write("select n, n * price as cost_usd, filename from number order by n desc", out)
    assert engine.query("select sum(n) as n from number").rows() == [(499_500,)]
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster on loopback with one worker."""
    pytest.importorskip("pyspark")
    with cluster(tmp_path) as url:
        yield url


def test_a_cluster_writes_the_same_file(master: str, tmp_path: Path) -> None:
    source, out = tmp_path / "number.parquet", tmp_path / "out" / "table.parquet"
    n = pl.int_range(1000, eager=True)
    pl.DataFrame({"n": n, "price": pl.repeat(1, 1000, dtype=pl.Decimal(20, 10), eager=True)}).write_parquet(source)
    done = subprocess.run(
        [sys.executable, "-c", WORK, master, str(source), str(out)], capture_output=True, text=True, timeout=120
    )
    # Nothing on the console but what a program prints itself.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    table = pl.read_parquet(out)
    assert table["n"].to_list() == list(range(999, -1, -1))
    assert table["filename"].unique().to_list() == [str(source)]
    assert [path.name for path in out.parent.iterdir()] == ["table.parquet"]
    assert [path.suffix for path in out.iterdir()] == [".parquet"]
