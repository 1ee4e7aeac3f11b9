"""A bill of millions of lines on executors of 1 GB: what passes the driver, what spills, and all figures of DuckDB.

`SPARK_LINES="1000000 4000000 20000000"` sets the sizes; each is built once by DuckDB and once on the cluster.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.cluster import cluster

from pipelines.bench.bill import write_bench_bill
from pipelines.bench.runs import Shape
from pipelines.models.catalog import load_catalog
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.storage_local import LocalStore

pytestmark = pytest.mark.spark

SIZES = [int(size) for size in os.environ.get("SPARK_LINES", "1000000").split()]
# The runs of the company, whatever the size of its bill; with them grow the tables that the driver holds.
RUNS = 200
MOST_RESULT_BYTES = 50_000_000
FEWEST_THAT_SPILL = 4_000_000
# A stage of more rows than these is to have more than one task.
MOST_ROWS_OF_A_TASK = 1_000_000
# It grew by 14 % from 1 to 20 million lines while the driver read the bill itself, and by 8 % since.
DRIVER_PEAK_MAY_GROW = 1.10
PEAKS: dict[str, float] = {}


@dataclass
class Built:
    """A bill of so many lines built on a cluster: where, how long, and the most MiB of each process of the driver."""

    lines: int
    place: Path
    seconds: float
    peaks: dict[str, float]

    def events(self, kind: str) -> Iterator[dict[str, Any]]:
        """The events of this kind that the application logged."""
        for path in sorted(path for path in (self.place / "log").rglob("*") if path.is_file()):
            for line in path.open(encoding="utf-8"):
                event = json.loads(line)
                if event.get("Event") == f"SparkListener{kind}":
                    yield event

    def tasks(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The stage and the metrics of every task."""
        for event in self.events("TaskEnd"):
            if event.get("Task Metrics"):
                yield event["Stage ID"], event["Task Metrics"]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster on loopback with two workers of one core and 1 GB."""
    pytest.importorskip("pyspark")
    with cluster(tmp_path_factory.mktemp("cluster"), workers=2) as url:
        yield url


@pytest.fixture(scope="module", params=SIZES)
def built(request: pytest.FixtureRequest, master: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    place = tmp_path_factory.mktemp("large")
    millions = request.param / 1_000_000
    data = write_bench_bill(place, request.param, shape=Shape(0.03 / millions, round(RUNS / millions), (3, 8)))
    (place / "log").mkdir()
    conf = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "8",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (place / "log").as_uri(),
        "spark.eventLog.compress": "false",
    }
    cluster_settings = {"LOCATION": "spark", "ENGINE": "spark", "SPARK__MASTER": master, "SPARK__MEMORY": "1g"}
    cluster_settings["SPARK__CONF"] = json.dumps(conf)
    _build(data.config, {"LOCATION": "duckdb"})
    started = time.monotonic()
    peaks = _build(data.config, cluster_settings)
    yield Built(request.param, place, time.monotonic() - started, peaks)
    shutil.rmtree(place)


def _build(config: Path, settings: dict[str, str]) -> dict[str, float]:
    """Build with these settings of the warehouse; returns MiB that its processes took at most, by name."""
    variables = {f"TRAINLEDGER_WAREHOUSE__{name}": value for name, value in settings.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines", "build", "--config", str(config)],
        env={**os.environ, **variables},
        cwd=config.parent,
        stdout=subprocess.DEVNULL,
    )
    peaks: dict[str, float] = defaultdict(float)
    while process.poll() is None:
        for number in _family(process.pid):
            try:
                status = dict(line.split(":", 1) for line in Path(f"/proc/{number}/status").read_text().splitlines())
            except FileNotFoundError:
                continue
            if "VmHWM" in status:
                name = status["Name"].strip()
                peaks[name] = max(peaks[name], int(status["VmHWM"].split()[0]) / 1024)
        time.sleep(1)
    assert process.returncode == 0
    return peaks


def _family(process: int) -> Iterator[int]:
    """A process and those that it started."""
    yield process
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = file.read_text().split()
        except FileNotFoundError:
            continue
        for child in children:
            yield from _family(int(child))


def test_every_table_has_the_rows_of_duckdb(built: Built) -> None:
    sides = [_contents(built.place / name) for name in ("duckdb", "spark")]
    assert sides[0].keys() == {model.key for model in load_catalog().ordered if model.stored}
    assert sides[0] == sides[1]


def _contents(warehouse: Path) -> dict[str, tuple[Any, ...]]:
    """The number of rows of each published table and the sum of their hashes, which the order of rows leaves alone."""
    lake = Lake(LocalStore(str(warehouse)), warehouse / "cache")
    published = lake.publications.newest()
    assert published
    contents = {}
    with duckdb.connect() as connection:
        for key, table in published.tables.items():
            files = [str(path) for path in lake.named_files(key, table["files"])]
            rows = connection.read_parquet(files) if files else None
            if rows is None:
                contents[key] = (0, None)
                continue
            columns = ", ".join(f'"{name}"' for name in sorted(rows.columns))
            found = rows.aggregate(f"count(*), sum(hash({columns})::hugeint)").fetchone()
            contents[key] = found or ()
    return contents


def test_results_that_the_driver_collects_are_small(built: Built, record_property: Callable[..., None]) -> None:
    collected = sum(task["Result Size"] for _, task in built.tasks())
    record_property("campaign", f"{built.lines:,} lines on Spark: {collected / 1e6:.1f} MB collected")
    assert collected <= MOST_RESULT_BYTES


def test_what_does_not_fit_into_executors_is_spilled(built: Built, record_property: Callable[..., None]) -> None:
    spilled = sum(task["Disk Bytes Spilled"] for _, task in built.tasks())
    record_property("campaign", f"{built.lines:,} lines on Spark: {spilled / 1e6:,.1f} MB spilled")
    assert spilled > 0 or built.lines < FEWEST_THAT_SPILL


def test_no_stage_of_many_rows_has_one_task(built: Built) -> None:
    rows: dict[int, int] = defaultdict(int)
    for stage, task in built.tasks():
        rows[stage] += task["Input Metrics"]["Records Read"] + task["Shuffle Read Metrics"]["Total Records Read"]
    stages = (event["Stage Info"] for event in built.events("StageCompleted"))
    alone = {stage["Stage ID"]: stage["Stage Name"] for stage in stages if stage["Number of Tasks"] == 1}
    assert {name: rows[stage] for stage, name in alone.items() if rows[stage] > MOST_ROWS_OF_A_TASK} == {}


def test_the_driver_needs_no_more_memory_for_more_lines(built: Built, record_property: Callable[..., None]) -> None:
    # A process that Java starts looks as large as Java until it is another program.
    needed = built.peaks["python"] + built.peaks["java"]
    record_property(
        "campaign", f"{built.lines:,} lines on Spark: {needed:,.0f} MiB of the driver, {built.seconds:.0f} s"
    )
    assert needed <= PEAKS.setdefault("of the first size", needed) * DRIVER_PEAK_MAY_GROW
