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

# A thousand texts of 10 MB, joined by one task.
TOO_MUCH = """
import sys
from pathlib import Path
from pipelines.config.spark import Spark
from pipelines.engine.spark import SparkEngine

with SparkEngine(Spark(master=sys.argv[1], memory="500m")) as engine:
    engine.view("number", [Path(sys.argv[2])])
    engine.query("select length(string_agg(repeat('x', 10000000), '')) as size from number")
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster on loopback with one worker."""
    pytest.importorskip("pyspark")
    with cluster(tmp_path) as url:
        yield url


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A thousand numbers, each at a price of one."""
    file = tmp_path / "number.parquet"
    n = pl.int_range(1000, eager=True)
    pl.DataFrame({"n": n, "price": pl.repeat(1, 1000, dtype=pl.Decimal(20, 10), eager=True)}).write_parquet(file)
    return file


def test_a_cluster_writes_the_same_file(master: str, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "table.parquet"
    done = run(WORK, master, str(source), str(out))
    # Nothing on the console but what a program prints itself.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    table = pl.read_parquet(out)
    assert table["n"].to_list() == list(range(999, -1, -1))
    assert table["filename"].unique().to_list() == [str(source)]
    assert [path.name for path in out.parent.iterdir()] == ["table.parquet"]
    assert [path.suffix for path in out.iterdir()] == [".parquet"]


def test_executors_out_of_memory_are_one_sentence_with_the_fix(master: str, source: Path) -> None:
    done = run(TOO_MUCH, master, str(source))
    last = done.stderr.splitlines()[-1]
    assert last.startswith("pipelines.base.errors.UsageError: The executors ran out of memory; raise `memory`")


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=240)
