"""The whole product on S3, a server on loopback: bill, run events and warehouse in buckets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from support.cluster import recorded_store
from support.ledgers import build_with
from support.s3_company import BUCKET, LOCATION, deliver, settings
from support.small_company import AUGUST, JULY, Company, found

from pipelines.base.console import Console
from pipelines.evidence.pack import write_pack
from pipelines.evidence.verify import verify
from pipelines.models.command import build_marts
from pipelines.models.warehouse import Warehouse
from pipelines.query.command import query
from pipelines.report.command import write_report
from pipelines.warehouse.lock import BuildBusy

SUM = "select sum(effective_cost_usd) as cost from mart_run_cost"


@pytest.fixture
def company(tmp_path: Path) -> Company:
    return found(tmp_path / "company")


def keys(s3: Any) -> dict[str, str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="ledger/")
    return {item["Key"]: item["ETag"] for page in pages for item in page.get("Contents", ())}


@pytest.mark.slow
def test_a_ledger_on_s3_is_the_ledger_in_a_folder(
    company: Company,
    built_company: Company,
    s3: Any,
    s3_endpoint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    deliver(company, s3)
    config = settings(company, s3_endpoint)
    assert build_marts(config, Console()) is True

    record = json.loads(s3.get_object(Bucket=BUCKET, Key="ledger/publications/000001.json")["Body"].read())
    in_folder = json.loads((built_company.warehouse / "publications" / "000001.json").read_text())
    # Files are named by their content, so the same names are the same bytes.
    assert record["tables"] == in_folder["tables"]
    for key, table in record["tables"].items():
        assert {f"ledger/tables/{key}/{name}" for name in table["files"]} <= set(keys(s3))

    s3.download_file(BUCKET, "ledger/marts.duckdb", str(tmp_path / "copy"))
    with duckdb.connect(tmp_path / "copy", read_only=True) as copy:
        assert str(copy.sql(SUM.replace("mart_run", "mart.mart_run")).fetchone()[0]) == "196.0800000000"
    options = {"aws_endpoint_url": s3_endpoint, "aws_allow_http": "true", "aws_region": "us-east-1"}
    delta = pl.scan_delta(f"{LOCATION}/tables/marts/mart_run_cost", storage_options=options).collect()
    assert str(delta["effective_cost_usd"].sum()) == "196.0800000000"

    # Built again, nothing is written.
    before = keys(s3)
    assert build_marts(config, Console()) is False
    assert keys(s3) == before

    # Another machine, which has never seen the ledger, reads it.
    monkeypatch.setenv("HOME", str(tmp_path / "another"))
    capsys.readouterr()
    query(SUM, company.config, as_csv=True)
    assert capsys.readouterr().out == "cost\n196.0800000000\n"
    write_report(config, tmp_path / "report.html", Console())
    assert "<html" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_a_ledger_on_s3_is_verified_and_goes_on(
    company: Company,
    s3: Any,
    s3_endpoint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deliver(company, s3)
    config = settings(company, s3_endpoint)
    assert build_marts(config, Console()) is True

    # Whoever has the pack recomputes it from the bucket, without a configuration.
    write_pack(config, tmp_path / "evidence.zip", Console(), as_of=None, bundle=False)
    verify(tmp_path / "evidence.zip", None, Console())
    assert "VERIFIED" in capsys.readouterr().out

    # A restated month is built onto it.
    company.deliver(AUGUST, "20.00")
    deliver(company, s3)
    build_with(config)
    capsys.readouterr()
    query(SUM, company.config, as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"cost": "190.0800000000"}]
    with Warehouse(config).lake.lock():
        # Whoever built has let go.
        pass

    # The delivery that was replaced lies in the bucket still: its pack is the same again, from a fresh machine too.
    monkeypatch.setenv("HOME", str(tmp_path / "fresh"))
    first, _ = Warehouse(config).lake.publications.all()
    write_pack(config, tmp_path / "again.zip", Console(), as_of=str(first.published_at), bundle=False)
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "evidence.zip").read_bytes()


@pytest.mark.slow
def test_a_fresh_machine_reads_nothing_of_an_unchanged_month(
    company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deliveries lie in the bucket: a month that its export no longer has stays."""
    import boto3

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with recorded_store() as (endpoint, requests):
        bucket = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        bucket.create_bucket(Bucket=BUCKET)
        deliver(company, bucket)
        config = settings(company, endpoint)
        monkeypatch.setenv("HOME", str(tmp_path / "one"))
        assert build_marts(config, Console()) is True

        company.deliver(AUGUST, "20.00")
        deliver(company, bucket)
        july = bucket.list_objects_v2(Bucket=BUCKET, Prefix=f"export/metadata/BILLING_PERIOD={JULY}/")["Contents"]
        monkeypatch.setenv("HOME", str(tmp_path / "two"))
        for is_gone in (False, True):
            if is_gone:
                bucket.delete_object(Bucket=BUCKET, Key=july[0]["Key"])
                monkeypatch.setenv("HOME", str(tmp_path / "three"))
            requests.clear()
            assert build_marts(config, Console()) is True
            read = [one.path for one in requests if one.method == "GET" and JULY in one.path]
            assert [path for path in read if "/export/" in path or path.endswith(".parquet")] == []
            capsys.readouterr()
            # 110.08 of July and 4 hours at 20.00 of August.
            query(SUM, company.config, as_csv=True)
            assert capsys.readouterr().out == "cost\n190.0800000000\n"
        # Its lines are in the bucket, for a table that has to be made again.
        bill = Warehouse(config).bill
        (raw,) = bill.ingest(JULY)
        assert not raw.is_here
        bill.bring(raw)
        assert raw.is_here


def test_a_second_machine_is_refused_with_who_builds(company: Company, s3: Any, s3_endpoint: str) -> None:
    deliver(company, s3)
    config = settings(company, s3_endpoint)
    with (
        Warehouse(config).lake.lock(),
        pytest.raises(BuildBusy, match=rf"{LOCATION} is being built by process \d+ on "),
    ):
        build_marts(config, Console())
    assert not any(key.startswith("ledger/publications/") for key in keys(s3))
