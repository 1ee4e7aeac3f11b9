"""Exports read from an S3-compatible server over HTTP, with the requests counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cur_exports import (
    CUR2_LINE,
    LEGACY_LINE,
    bill,
    csv_text,
    cur2_export,
    legacy_export,
    packed,
    parquet,
    source,
    stored,
)

from pipelines.base.errors import SourceError
from pipelines.ingest.billing import exports
from pipelines.warehouse.stores import open_store


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every HTTP request boto sends: method and what follows the host."""
    from botocore.httpsession import URLLib3Session

    sent: list[str] = []
    plain = URLLib3Session.send

    def counted(self, request):
        sent.append(f"{request.method} /{request.url.split('/', 3)[3]}")
        return plain(self, request)

    monkeypatch.setattr(URLLib3Session, "send", counted)
    yield sent


def upload(root: Path, bucket: str, prefix: str, endpoint: str) -> str:
    """Copy a folder to a new bucket; returns its s3:// location."""
    import boto3

    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket=bucket)
    location = f"s3://{bucket}/{prefix}"
    store = open_store(location, endpoint_url=endpoint)
    for path in root.rglob("*"):
        if path.is_file():
            store.upload(path, path.relative_to(root).as_posix())
    return location


def test_cur2_from_s3(tmp_path: Path, s3_endpoint: str) -> None:
    second = parquet([{**CUR2_LINE, "line_item_unblended_cost": "5"}])
    files = {"a-1.snappy.parquet": parquet([CUR2_LINE]), "a-2.snappy.parquet": second}
    cur2_export(tmp_path / "b", {"old.snappy.parquet": parquet([CUR2_LINE])}, execution="20260731T000000Z-old")
    root = cur2_export(tmp_path / "b", files)
    location = upload(root, "example-billing", "cur2/ml-cur2", s3_endpoint)
    raws = stored(location, tmp_path / "raw", endpoint_url=s3_endpoint)
    assert bill(raws, "select count(*), sum(line_item_unblended_cost) from aws_cur_line_item")[0][0] == 2


@pytest.mark.parametrize("prefix", ["cur/ml-cur", "cur"])
def test_legacy_from_s3_by_its_root_or_the_folder_above(tmp_path: Path, s3_endpoint: str, prefix: str) -> None:
    root = legacy_export(tmp_path / "b", {"a-1.csv.gz": packed(csv_text([LEGACY_LINE] * 3))})
    upload(root, "example-billing", "cur/ml-cur", s3_endpoint)
    (raw,) = stored(f"s3://example-billing/{prefix}", tmp_path / "raw", endpoint_url=s3_endpoint)
    assert raw.line_count == 3
    assert raw.files[0].key.endswith("20260701-20260801/asm-1/a-1.csv.gz")


def test_an_unchanged_manifest_costs_one_listing(tmp_path: Path, s3_endpoint: str, requests: list[str]) -> None:
    root = cur2_export(tmp_path / "b", {"a-1.snappy.parquet": parquet([CUR2_LINE])})
    location = upload(root, "example-billing", "cur2/ml-cur2", s3_endpoint)
    requests.clear()
    first = stored(location, tmp_path / "raw", endpoint_url=s3_endpoint)
    paths = [request.split("?")[0] for request in requests]
    # One listing, one manifest; boto asks for a file's size before it fetches it.
    assert paths[0] == "GET /example-billing"
    assert [request for request in paths if request.endswith("Manifest.json")] == [
        "GET /example-billing/cur2/ml-cur2/metadata/BILLING_PERIOD%3D2026-07/ml-cur2-Manifest.json"
    ]
    requests.clear()
    assert stored(location, tmp_path / "raw", endpoint_url=s3_endpoint) == first
    assert [request.split("?")[0] for request in requests] == ["GET /example-billing"]


def test_a_changed_manifest_is_read_again(tmp_path: Path, s3_endpoint: str, requests: list[str]) -> None:
    root = cur2_export(tmp_path / "b", {"a-1.snappy.parquet": parquet([CUR2_LINE])})
    location = upload(root, "example-billing", "cur2/ml-cur2", s3_endpoint)
    stored(location, tmp_path / "raw", endpoint_url=s3_endpoint)
    cur2_export(tmp_path / "b", {"a-1.snappy.parquet": parquet([CUR2_LINE] * 2)}, execution="20260802T000000Z-exec-2")
    store = open_store(location, endpoint_url=s3_endpoint)
    for path in root.rglob("*"):
        if path.is_file():
            store.upload(path, path.relative_to(root).as_posix())
    (raw,) = stored(location, tmp_path / "raw", endpoint_url=s3_endpoint)
    assert raw.line_count == 2


@pytest.mark.parametrize(
    ("bucket", "prefix", "message"),
    [
        ("another-bucket", "cur2", "which is in bucket another-bucket"),
        ("example-billing", "elsewhere", "which is not below it"),
    ],
)
def test_manifests_may_not_point_elsewhere(
    tmp_path: Path, s3_endpoint: str, bucket: str, prefix: str, message: str
) -> None:
    root = cur2_export(tmp_path / "b", {"a-1.snappy.parquet": parquet([CUR2_LINE])}, bucket=bucket, prefix=prefix)
    location = upload(root, "example-billing", "cur2/ml-cur2", s3_endpoint)
    with pytest.raises(SourceError, match=message) as raised:
        exports.list_deliveries(source(location, endpoint_url=s3_endpoint), tmp_path / "raw")
    assert f"nothing outside {location} is read" in str(raised.value)


def test_a_missing_bucket_is_named(tmp_path: Path, s3_endpoint: str) -> None:
    with pytest.raises(SourceError, match="s3://no-such-bucket/cur"):
        exports.list_deliveries(source("s3://no-such-bucket/cur", endpoint_url=s3_endpoint), tmp_path / "raw")
