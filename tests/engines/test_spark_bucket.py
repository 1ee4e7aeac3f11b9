"""A build by executors that share no disk with the driver: bill, tables and records lie in a bucket alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.cluster import Request, cluster, recorded_store, s3a_jar
from support.ledgers import build_warehouse
from support.small_company import AUGUST, JULY, Company, found

from pipelines.models.catalog import load_catalog
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.storage_local import LocalStore
from pipelines.warehouse.stores import open_store

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "example-billing"
# A mart, and what it is made from beginning with the bill; a build of all tables takes several times as long.
MART = "mart_commitment_coverage_daily"
# A build as far as one table; without a name, as far as the deliveries of every month.
BUILD = """
import sys
from pathlib import Path
from pipelines.config.settings import load_settings
from pipelines.models.build import Builder
from pipelines.models.publish import plan
from pipelines.models.refresh import read_bill, refresh
from pipelines.models.warehouse import Warehouse

warehouse = Warehouse(load_settings(Path(sys.argv[-1])))
with warehouse.lake.lock():
    builder, planned = Builder(warehouse), plan(warehouse)
    if only := sys.argv[1:-1]:
        refresh(builder, planned, only=only)
    else:
        read_bill(builder, planned, planned.months)
"""


@dataclass
class Place:
    """A company whose bill and warehouse lie in a bucket, the machine of the driver, and the requests to the bucket."""

    company: Company
    driver: Path
    bucket: Any
    endpoint: str
    requests: list[Request]
    master: str
    jar: Path

    def deliver(self) -> None:
        """Bring the bucket to the state of the company's folders."""
        for folder in (self.company.export, self.company.events):
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                self.bucket.upload_file(str(path), BUCKET, path.relative_to(self.company.root).as_posix())

    def build(self, machine: str, *only: str) -> None:
        """Build on a machine of this name, which knows what an earlier call on it left."""
        reach = f'endpoint_url = "{self.endpoint}"\nregion = "us-east-1"\n'
        config = self.driver / "trainledger.toml"
        config.write_text(
            f'[warehouse]\nlocation = "s3://{BUCKET}/ledger"\nengine = "spark"\n{reach}'
            f'[warehouse.spark]\nmaster = "{self.master}"\njars = ["{self.jar}"]\n'
            f'[warehouse.spark.conf]\n"spark.hadoop.fs.s3a.impl" = "ObjectStore"\n'
            f'"spark.driver.memory" = "1g"\n"spark.executor.memory" = "800m"\n"spark.sql.shuffle.partitions" = "4"\n'
            f'[[billing]]\nname = "payer"\nlocation = "s3://{BUCKET}/export"\n{reach}'
            f'[[runs]]\nname = "jobs"\nkind = "events"\nlocation = "s3://{BUCKET}/events"\n{reach}'
        )
        folders = {"HOME": self.driver / machine / "home", "TMPDIR": self.driver / machine / "tmp"}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        variables = {**os.environ, **keys("driver"), **{name: str(folder) for name, folder in folders.items()}}
        command = [sys.executable, "-c", BUILD, *only, str(config)]
        done = subprocess.run(command, env=variables, cwd=self.driver, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]

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
    with (
        recorded_store() as (endpoint, requests),
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
        here = Place(company, driver, bucket, endpoint, requests, master, s3a_jar(driver))
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
    place.build("first", MART)
    return place


def test_tables_are_those_that_duckdb_makes(built: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in keys("lab").items():
        monkeypatch.setenv(name, value)
    reference = found_in_july(tmp_path)
    build_warehouse(reference.config)
    ours = Lake(LocalStore(str(reference.warehouse)), tmp_path / "cache")
    store = open_store(f"s3://{BUCKET}/ledger", endpoint_url=built.endpoint, region="us-east-1")
    theirs = Lake(store, tmp_path / "theirs")
    built_keys = [model.key for model in load_catalog().ordered if theirs.files(model.key)]
    assert {f"marts/{MART}", "staging/stg_aws__cur_combination", "reference/ref_region"} <= {*built_keys}
    for key in built_keys:
        frames = [pl.read_parquet(lake.files(key)) for lake in (ours, theirs)]
        assert_frame_equal(*frames, check_row_order=False, check_exact=True)


def test_the_driver_reads_no_line_of_the_bill(built: Place) -> None:
    large = ("/export/data/", "/ledger/raw/payer/2026", "/ledger/tables/staging/")
    files = [one for one in built.read() if any(part in one.path for part in large) and "/_delta_log/" not in one.path]
    lines = [one for one in files if not one.path.endswith(".json")]
    assert {part for one in lines if one.owner == "executor" for part in large if part in one.path} == {*large}
    assert [one.path for one in lines if one.owner == "driver"] == []


def test_a_fresh_machine_reads_nothing_of_an_unchanged_month(built: Place) -> None:
    built.company.deliver(AUGUST, "21.50")
    built.deliver()
    start = len(built.requests)
    built.build("second")
    read = [one.path for one in built.read(start) if "/export/" in one.path]
    assert [path for path in read if JULY in path] == []
    assert [path for path in read if AUGUST in path] != []
