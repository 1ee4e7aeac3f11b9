"""A build by executors that share no disk with the driver: bill, tables and records lie in a bucket alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.cluster import Request, cluster, recorded_store, s3a_jar
from support.ledgers import build_warehouse
from support.small_company import AUGUST, GPU_COST, JULY, Company, found

from pipelines.models.catalog import load_catalog
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.storage_local import LocalStore
from pipelines.warehouse.stores import open_store

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "example-billing"
# A JVM of minutes gains nothing from the second compiler.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LARGE = ("/export/data/", "/ledger/raw/payer/2026", "/ledger/tables/staging/")
# All results of tasks together; a bill of this size would need some dozens of bytes.
MOST_RESULT_BYTES = 50 << 20


@dataclass
class Place:
    """A company whose bill and warehouse lie in a bucket, the machine of the driver, and the requests to the bucket."""

    company: Company
    driver: Path
    bucket: Any
    endpoint: str
    requests: list[Request]
    denied: list[Callable[[Request], bool]]
    master: str
    jar: Path

    def deliver(self) -> None:
        """Bring the bucket to the state of the company's folders."""
        for folder in (self.company.export, self.company.events):
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                self.bucket.upload_file(str(path), BUCKET, path.relative_to(self.company.root).as_posix())

    def run(self, machine: str, *command: str, code: int = 0) -> str:
        """What a command that leaves with `code` prints on a machine of this name, which keeps its folder."""
        home = self.driver / machine
        events, config = home / "events", home / "trainledger.toml"
        events.mkdir(parents=True, exist_ok=True)
        reach = f'endpoint_url = "{self.endpoint}"\nregion = "us-east-1"\n'
        config.write_text(
            f'[warehouse]\nlocation = "s3://{BUCKET}/ledger"\nengine = "spark"\n{reach}'
            f'[warehouse.spark]\nmaster = "{self.master}"\njars = ["{self.jar}"]\n'
            f'[warehouse.spark.conf]\n"spark.hadoop.fs.s3a.impl" = "ObjectStore"\n'
            f'"spark.driver.memory" = "1g"\n"spark.executor.memory" = "800m"\n"spark.sql.shuffle.partitions" = "4"\n'
            f'"spark.eventLog.enabled" = "true"\n"spark.eventLog.dir" = "{events.as_uri()}"\n'
            f'"spark.eventLog.compress" = "false"\n'
            f'"spark.driver.extraJavaOptions" = "{SHORT_LIVED}"\n"spark.executor.extraJavaOptions" = "{SHORT_LIVED}"\n'
            f'[[billing]]\nname = "payer"\nlocation = "s3://{BUCKET}/export"\n{reach}'
            f'[[runs]]\nname = "jobs"\nkind = "events"\nlocation = "s3://{BUCKET}/events"\n{reach}'
        )
        variables = {**os.environ, **keys("driver"), "HOME": str(home), "TMPDIR": str(home)}
        command = (sys.executable, "-m", "pipelines", *command, "--config", str(config))
        done = subprocess.run(command, env=variables, cwd=home, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr[-3000:]
        return done.stderr if code else done.stdout

    def tasks(self, machine: str) -> Iterator[dict[str, Any]]:
        """The metrics of every task of an application that this machine started."""
        for path in sorted(path for path in (self.driver / machine / "events").rglob("*") if path.is_file()):
            for line in path.open(encoding="utf-8"):
                event = json.loads(line)
                if event.get("Event") == "SparkListenerTaskEnd":
                    yield event["Task Metrics"]

    @contextmanager
    def denying(self, rule: Callable[[Request], bool]) -> Iterator[None]:
        """The store refuses the requests that a rule chooses."""
        self.denied.append(rule)
        try:
            yield
        finally:
            self.denied.remove(rule)

    def read(self, since: int = 0) -> list[Request]:
        """Requests for content of objects of the bucket."""
        return [one for one in self.requests[since:] if one.method == "GET" and one.path.count("/") > 2]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two workers that see the bucket, and nothing of the driver's folder."""
    pytest.importorskip("pyspark")
    import boto3

    root = tmp_path_factory.mktemp("bucket")
    driver = root / "driver"
    driver.mkdir()
    company = found_in_july(driver / "company")
    denied: list[Callable[[Request], bool]] = []
    with (
        recorded_store(denied) as (endpoint, requests),
        cluster(root, workers=2, hidden=driver, environment=keys("executor")) as master,
    ):
        access = keys("lab")
        bucket = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=access["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=access["AWS_SECRET_ACCESS_KEY"],
        )
        bucket.create_bucket(Bucket=BUCKET)
        here = Place(company, driver, bucket, endpoint, requests, denied, master, s3a_jar(driver))
        here.deliver()
        yield here


def found_in_july(root: Path) -> Company:
    """A company that has delivered no bill but July's."""
    company = found(root)
    for folder in [*company.export.rglob(f"BILLING_PERIOD={AUGUST}")]:
        shutil.rmtree(folder)
    return company


def keys(owner: str) -> dict[str, str]:
    """The environment of a process with access keys of its own."""
    own = {"AWS_ACCESS_KEY_ID": owner, "AWS_SECRET_ACCESS_KEY": owner, "AWS_DEFAULT_REGION": "us-east-1"}
    return {**own, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}


@pytest.fixture(scope="module")
def built(place: Place) -> Place:
    place.run("first", "build")
    return place


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Company:
    """The same company with a bill and a warehouse in folders, built by DuckDB."""
    company = found_in_july(tmp_path_factory.mktemp("reference"))
    build_warehouse(company.config)
    return company


@pytest.fixture
def lake(built: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The tables in the bucket, read as another machine reads them."""
    for name, value in keys("lab").items():
        monkeypatch.setenv(name, value)
    return Lake(open_store(f"s3://{BUCKET}/ledger", endpoint_url=built.endpoint, region="us-east-1"), tmp_path)


def test_every_table_and_check_is_as_on_duckdb(lake: Lake, reference: Company) -> None:
    assert_same(lake, reference)


def test_no_file_is_taken_for_one_that_changed(lake: Lake) -> None:
    published = lake.publications.newest()
    assert published
    assert [file for key, named in published.tables.items() for file in lake.altered(key, named["files"])] == []


def test_a_reader_without_a_cluster_sees_the_marts(built: Place, lake: Lake) -> None:
    sql = "select sum(effective_cost_usd) from mart_run_cost"
    printed = built.run("reader", "query", sql)
    # The two GPU hours of July at 55.04 USD.
    assert str(GPU_COST) in printed
    assert [*built.tasks("reader")] == []


def test_the_driver_reads_no_line_of_the_bill(built: Place) -> None:
    files = [one for one in built.read() if any(part in one.path for part in LARGE) and "/_delta_log/" not in one.path]
    lines = [one for one in files if not one.path.endswith(".json")]
    assert {part for one in lines if one.owner == "executor" for part in LARGE if part in one.path} == {*LARGE}
    assert [one.path for one in lines if one.owner == "driver"] == []


def test_results_that_the_driver_collects_are_small(built: Place) -> None:
    sizes = [task["Result Size"] for task in built.tasks("first")]
    assert len(sizes) > len(load_catalog().ordered)
    assert sum(sizes) <= MOST_RESULT_BYTES


def test_a_second_build_waits_outside(built: Place, lake: Lake) -> None:
    with lake.lock():
        assert "is being built by" in built.run("second", "build", code=4)


@pytest.fixture(scope="module")
def stopped(built: Place) -> tuple[str, int]:
    """What a fresh machine prints that takes in a new month and then may not write its tables; requests before it."""
    built.company.deliver(AUGUST, "21.50")
    built.deliver()
    start = len(built.requests)
    with built.denying(lambda request: request.owner == "executor" and "/ledger/staging/" in request.path):
        return built.run("second", "build", code=3), start


def test_executors_without_access_to_a_part_of_the_bucket(stopped: tuple[str, int]) -> None:
    printed, _ = stopped
    (error,) = [line for line in printed.splitlines() if line.startswith("Error: ")]
    assert error.startswith(f"Error: Executors have no access to s3://{BUCKET}/ledger/staging/")
    assert "Traceback" not in printed


def test_fresh_machines_read_no_line_of_an_unchanged_month(stopped: tuple[str, int], built: Place) -> None:
    _, start = stopped
    built.run("third", "build")
    lines = [one.path for one in built.read(start) if one.path.endswith(".parquet")]
    of_the_bill = [path for path in lines if "/export/" in path or "/raw/payer/" in path]
    assert [path for path in of_the_bill if JULY in path] == []
    assert [path for path in of_the_bill if AUGUST in path] != []


def assert_same(lake: Lake, reference: Company) -> None:
    """Every published table has the rows of DuckDB's, and every check came out the same.

    Checks that read other tables run on the engine alone, so they have no expectation.
    """
    theirs = Lake(LocalStore(str(reference.warehouse)), reference.root / "cache")
    published, expected = lake.publications.newest(), theirs.publications.newest()
    assert published and expected
    assert set(published.tables) == {model.key for model in load_catalog().ordered if model.stored}
    for key in published.tables:
        sides = ((lake, published), (theirs, expected))
        frames = [pl.read_parquet(one.named_files(key, seen.tables[key]["files"])) for one, seen in sides]
        assert_frame_equal(*frames, check_row_order=False, check_exact=True)
    ours, checks = ([{**check, "expectation": ""} for check in one.checks] for one in (published, expected))
    assert ours == checks
