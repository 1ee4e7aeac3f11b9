"""Sessions that others started, sessions that do not start, and what a signal ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.ports import free_port

pytestmark = pytest.mark.spark

# A process has one Spark application, so each starts in a process of its own, as the command line does.
WORK = """
import signal, sys
from pathlib import Path
from pipelines.config.spark import Spark
from pipelines.engine.spark import SparkEngine

signal.signal(signal.SIGTERM, signal.default_int_handler)
master, source, sql = sys.argv[1:]
with SparkEngine(Spark(master=master)) as engine:
    engine.view("number", [Path(source)])
    print("begun", flush=True)
    print(engine.query(sql).rows())
"""
SUM = "select sum(n) as n from number"
# 10^12 rows.
ENDLESS = "select sum(a.n * b.n % 7 + c.n + d.n) as n from number as a, number as b, number as c, number as d"


def spark_submit() -> Path:
    return Path(pytest.importorskip("pyspark").__file__).parent / "bin" / "spark-submit"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    pl.DataFrame({"n": range(1000)}).write_parquet(tmp_path / "number.parquet")
    return tmp_path / "number.parquet"


def work(master: str, source: Path, sql: str) -> subprocess.Popen:
    words = [sys.executable, "-c", WORK, master, str(source), sql]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[str]:
    """A Spark Connect server on loopback with one processor."""
    pytest.importorskip("grpc_status", reason="needs the spark extra")
    port = free_port()
    log = tmp_path / "connect.log"
    words = [spark_submit(), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    words += ["--master", "local[1]", "--driver-memory", "1g", "--conf", "spark.ui.enabled=false"]
    words += ["--conf", f"spark.connect.grpc.binding.port={port}"]
    with log.open("wb") as output:
        server = subprocess.Popen(words, stdout=output, stderr=output, env=os.environ | {"SPARK_CONNECT_MODE": "0"})
        try:
            for _ in range(600):
                if "Spark Connect server started" in log.read_text(errors="replace"):
                    break
                time.sleep(0.2)
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=60)


def test_a_connect_server_runs_the_models_and_forgets_a_stopped_build(connect: str, source: Path) -> None:
    stopped = work(connect, source, ENDLESS)
    assert stopped.stdout is not None and stopped.stdout.readline() == "begun\n"
    time.sleep(5)
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=120)
    # The server has one processor, which the first query would keep.
    out, error = work(connect, source, SUM).communicate(timeout=300)
    assert (out, error) == ("begun\n[(499500,)]\n", "")


def test_a_stopped_build_ends_its_application(source: Path) -> None:
    stopped = work("local[1]", source, ENDLESS)
    assert stopped.stdout is not None and stopped.stdout.readline() == "begun\n"
    (java,) = subprocess.run(["pgrep", "-P", str(stopped.pid)], capture_output=True, text=True).stdout.split()
    time.sleep(5)
    stopped.send_signal(signal.SIGTERM)
    _, error = stopped.communicate(timeout=120)
    assert error.splitlines()[-1] == "KeyboardInterrupt"
    assert "while sending command" not in error
    for _ in range(300):
        if not Path(f"/proc/{java}").exists():
            break
        time.sleep(0.1)
    assert not Path(f"/proc/{java}").exists()


@pytest.mark.parametrize(
    "master, message",
    [
        ("sc://127.0.0.1:1", "Spark Connect does not answer at sc://127.0.0.1:1 "),
        ("session", "This process has no Spark session; start it by spark-submit"),
        ("spark://127.0.0.1:1", "Spark did not start on spark://127.0.0.1:1 "),
    ],
)
def test_a_session_that_does_not_start_is_one_sentence(master: str, message: str, source: Path) -> None:
    _, error = work(master, source, SUM).communicate(timeout=300)
    assert f"EngineError: {message}" in error.splitlines()[-1]


def test_spark_submit_gives_the_session(source: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(WORK)
    words = [spark_submit(), "--master", "local[1]", job, "session", source, SUM]
    done = subprocess.run(
        words, env=os.environ | {"PYSPARK_PYTHON": sys.executable}, capture_output=True, text=True, timeout=300
    )
    assert "[(499500,)]" in done.stdout
