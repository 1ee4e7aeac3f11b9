"""Workers of a standalone cluster that die while they write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from support.cluster import another_worker, cluster, workers_of

pytestmark = pytest.mark.spark

# A million rows of a few seconds.
LONG = """
import sys
from pathlib import Path
from pipelines.config.spark import Spark
from pipelines.engine.spark import SparkEngine

with SparkEngine(Spark(master=sys.argv[1], conf={"spark.sql.shuffle.partitions": "8"})) as engine:
    engine.view("number", [Path(sys.argv[2])])
    wide = "select a.n * 1000 + b.n as id, sum(b.n) over (partition by a.n order by b.n) as so_far "
    engine.write(f"{wide} from number as a, number as b order by id", Path(sys.argv[3]))
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A thousand numbers."""
    pytest.importorskip("pyspark")
    file = tmp_path / "number.parquet"
    pl.DataFrame({"n": pl.int_range(1000, eager=True)}).write_parquet(file)
    return file


def test_a_worker_that_dies_within_a_stage_changes_no_row(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "table.parquet"
    with cluster(tmp_path, workers=2) as url:
        writing = started(url, source, out)
        os.kill(workers_of(os.getpid())[0], signal.SIGKILL)
        assert writing.wait(timeout=240) == 0
    table = pl.read_parquet(out).sort("id")
    n = pl.int_range(1000, eager=True)
    assert table["id"].to_list() == list(range(1_000_000))
    assert table["so_far"].to_list() == [*n.cum_sum()] * 1000


def test_a_cluster_without_workers_is_stated_and_waited_for(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "table.parquet"
    with cluster(tmp_path, workers=2) as url:
        writing = started(url, source, out)
        for worker in workers_of(os.getpid()):
            os.kill(worker, signal.SIGKILL)
        assert writing.stderr
        assert writing.stderr.readline() == (
            f"No executor of {url} has answered for 60 seconds; start workers or free some. "
            "The build waits and then continues.\n"
        )
        with another_worker(url, tmp_path):
            assert writing.wait(timeout=240) == 0
    assert pl.read_parquet(out).height == 1_000_000


def started(url: str, source: Path, out: Path) -> subprocess.Popen[str]:
    """A process that is in the middle of writing the rows."""
    command = [sys.executable, "-c", LONG, url, str(source), str(out)]
    writing = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while writing.poll() is None and not (out / "_temporary").exists():
        time.sleep(0.05)
    assert writing.poll() is None
    return writing
