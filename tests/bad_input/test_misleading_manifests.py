"""Manifests that point out of their own export, whatever way they spell it: refused by name, and nothing is read."""

from __future__ import annotations

import gzip
import json
import os
from decimal import Decimal
from pathlib import Path

import pytest
from support.cur_exports import CUR2_LINE, LEGACY_LINE, csv_text, cur2_export, legacy_export, packed, source, stored
from support.spoiled import MONTH, Ledger

from pipelines.base.errors import SourceError
from pipelines.ingest.billing import exports
from pipelines.warehouse.stores import open_store

FILES = {"ml-cur2-00001.csv.gz": packed(csv_text([CUR2_LINE]))}
OURS = "s3://example-billing/cur2/ml-cur2"
PLACE = "data/BILLING_PERIOD=2026-07"


def named(root: Path, *names: str, month: str = MONTH) -> Path:
    """Have the month's manifest name these files; gives the manifest."""
    path = root / f"metadata/BILLING_PERIOD={month}/ml-cur2-Manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dataFiles": list(names)}))
    return path


def refusal(location: Path | str, raw_root: Path, **more: str) -> str:
    with pytest.raises(SourceError) as raised:
        stored(location, raw_root, **more)
    assert not list(raw_root.rglob("*.parquet"))
    return str(raised.value)


WAYS_OUT = [
    "../secret.csv.gz",
    f"{PLACE}/../../../secret.csv.gz",
    f"{PLACE}/./x.csv.gz",
    f"{PLACE}//x.csv.gz",
    f"{PLACE}/%2e%2e/%2e%2e/%2e%2e/secret.csv.gz",
    f"{PLACE}/%2E./secret.csv.gz",
    f"{PLACE}/%252e%252e/secret.csv.gz",
    f"{PLACE}/%2e%2e%2fsecret.csv.gz",
    f"{PLACE}/x%{'25' * 50}.csv.gz",
    f"{PLACE}/..\\..\\secret.csv.gz",
    f"{PLACE}/%5c%5cserver/share.csv.gz",
    f"{PLACE}/x.csv.gz\x00.txt",
    f"{PLACE}/x\n.csv.gz",
    f"{PLACE}/x%00.csv.gz",
    f"{PLACE}/x\u202e.csv.gz",
]


@pytest.mark.parametrize("way", WAYS_OUT)
def test_a_path_that_leads_out_is_refused_in_a_folder(tmp_path: Path, way: str) -> None:
    root = cur2_export(tmp_path, FILES)
    (tmp_path / "secret.csv.gz").write_bytes(FILES["ml-cur2-00001.csv.gz"])
    manifest = named(root, f"{OURS}/{way}")
    error = refusal(root, tmp_path / "raw")
    assert error.startswith(f"{manifest} names {OURS}/{way}, which is not a plain path; nothing outside {root} is read")


@pytest.fixture
def bucket(tmp_path: Path, s3_endpoint: str) -> str:
    """The address of a store with one export in its bucket, one month of it."""
    import boto3

    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="example-billing")
    root = cur2_export(tmp_path / "b", FILES)
    store = open_store(OURS, endpoint_url=s3_endpoint)
    for path in root.rglob("*.*"):
        if path.is_file():
            store.upload(path, path.relative_to(root).as_posix())
    return s3_endpoint


def respell(endpoint: str, **changes: object) -> None:
    store = open_store(OURS, endpoint_url=endpoint)
    key = f"metadata/BILLING_PERIOD={MONTH}/ml-cur2-Manifest.json"
    store.write(key, json.dumps(json.loads(store.read(key)) | changes).encode())


def test_a_path_that_leads_out_is_refused_in_a_bucket(tmp_path: Path, bucket: str) -> None:
    for way in (WAYS_OUT[1], WAYS_OUT[4], WAYS_OUT[8]):
        respell(bucket, dataFiles=[f"{OURS}/{way}"])
        error = refusal(OURS, tmp_path / "raw", endpoint_url=bucket)
        assert f"names {OURS}/{way}, which is not a plain path; nothing outside" in error


def test_another_export_or_bucket_is_refused(tmp_path: Path, bucket: str) -> None:
    ways_out = {
        f"s3://example-billing/cur2/ml-cur2x/{PLACE}/x.csv.gz": "which is not below it",
        f"s3://example-billing/CUR2/ml-cur2/{PLACE}/x.csv.gz": "which is not below it",
        f"s3://another-bucket/cur2/ml-cur2/{PLACE}/x.csv.gz": "which is in bucket another-bucket",
        "/etc/passwd": "which is not below it",
        f"https://example-billing.s3.amazonaws.com/cur2/ml-cur2/{PLACE}/x.csv.gz": "which is not an S3 address",
    }
    for name, why in ways_out.items():
        respell(bucket, dataFiles=[name])
        error = refusal(OURS, tmp_path / "raw", endpoint_url=bucket)
        assert f"names {name}, {why}; nothing outside {OURS} is read" in error


def test_the_folder_above_lets_no_export_into_another(tmp_path: Path, bucket: str) -> None:
    """Where the location is the folder of several exports, a manifest still names its own export's files alone."""
    name = f"s3://example-billing/cur2/other/{PLACE}/ml-cur2-00001.csv.gz"
    open_store("s3://example-billing", endpoint_url=bucket).write(name.removeprefix("s3://example-billing/"), b"bill")
    respell(bucket, dataFiles=[name])
    error = refusal("s3://example-billing/cur2", tmp_path / "raw", endpoint_url=bucket)
    assert f"names {name}, which is not below it" in error


@pytest.mark.parametrize("of_folder", [False, True])
def test_a_link_that_leads_out_of_a_folder_is_refused(tmp_path: Path, of_folder: bool) -> None:
    root = cur2_export(tmp_path, FILES)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.csv.gz").write_bytes(FILES["ml-cur2-00001.csv.gz"])
    link = root / PLACE / ("linked" if of_folder else "x.csv.gz")
    link.symlink_to(outside if of_folder else outside / "x.csv.gz")
    named(root, f"{OURS}/{PLACE}/{'linked/' if of_folder else ''}x.csv.gz")
    assert refusal(root, tmp_path / "raw").startswith(f"{link} leads outside {root}; rename or replace it")


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    root = cur2_export(tmp_path, FILES)
    link = root / PLACE / "x.csv.gz"
    link.symlink_to(link)
    assert str(link) in refusal(root, tmp_path / "raw")


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """Reading it would wait for somebody who never writes."""
    root = cur2_export(tmp_path, FILES)
    os.mkfifo(root / PLACE / "x.csv.gz")
    named(root, f"{OURS}/{PLACE}/x.csv.gz")
    assert "x.csv.gz, which is not there" in refusal(root, tmp_path / "raw")


def test_a_file_of_two_months_manifests_is_refused(tmp_path: Path) -> None:
    """Each would count its lines; both manifests are named."""
    cur2_export(tmp_path, FILES, month="2026-06")
    root = cur2_export(tmp_path, FILES)
    june, july = (root / f"metadata/BILLING_PERIOD={month}/ml-cur2-Manifest.json" for month in ("2026-06", MONTH))
    named(root, *json.loads(june.read_text())["dataFiles"])
    error = refusal(root, tmp_path / "raw")
    assert f"{july} names data/BILLING_PERIOD=2026-06/" in error and f"and so does {june}" in error


def test_two_spellings_of_a_months_folder_are_refused(tmp_path: Path) -> None:
    """Each delivers the whole of July; nothing shows which of them is the bill."""
    root = cur2_export(tmp_path, FILES)
    (first,) = root.glob("metadata/*/*.json")
    second = root / f"metadata/billing_period={MONTH}" / first.name
    second.parent.mkdir()
    second.write_text(first.read_text())
    error = refusal(root, tmp_path / "raw")
    assert error.startswith(f"{first} and {second} both deliver {MONTH}; keep the one of the export as it is now")


def test_two_legacy_periods_in_one_month_are_refused(tmp_path: Path) -> None:
    files = {"a-1.csv.gz": packed(csv_text([LEGACY_LINE]))}
    legacy_export(tmp_path, files, month="20260715-20260801", assembly="asm-2")
    root = legacy_export(tmp_path, files)
    error = refusal(root, tmp_path / "raw")
    whole, part = (root / f"{period}-20260801/ml-cur-Manifest.json" for period in ("20260701", "20260715"))
    assert error.startswith(f"{whole} and {part} both deliver {MONTH};")


@pytest.mark.parametrize("level", [6, 1])
def test_a_copy_of_a_file_under_another_name_is_refused(tmp_path: Path, level: int) -> None:
    """Its lines would count double, also where it was packed anew."""
    content = csv_text([{**CUR2_LINE, "line_item_resource_id": f"i-{number}"} for number in range(99)])
    copies = {"a-1.csv.gz": packed(content), "a-2.csv.gz": gzip.compress(content, compresslevel=level, mtime=7)}
    root = cur2_export(tmp_path, copies)
    folder = root / PLACE / "20260801T000000Z-exec-1"
    error = refusal(root, tmp_path / "raw")
    assert error.startswith(f"{folder}/a-2.csv.gz has the same content as {folder}/a-1.csv.gz; their lines would count")


def test_empty_parts_are_no_copies(tmp_path: Path) -> None:
    """Two files of a header alone repeat no line."""
    header = packed(csv_text([CUR2_LINE]).splitlines(keepends=True)[0])
    (raw,) = stored(cur2_export(tmp_path, {**FILES, "b-1.csv.gz": header, "b-2.csv.gz": header}), tmp_path / "raw")
    assert raw.line_count == 1


def test_a_manifest_of_gigabytes_is_not_even_read(tmp_path: Path) -> None:
    root = cur2_export(tmp_path, FILES)
    (path,) = root.glob("metadata/*/*.json")
    os.truncate(path, 4 << 30)
    error = refusal(root, tmp_path / "raw")
    assert error.startswith(f"{path} has 4,294,967,296 bytes, a manifest at most 67,108,864;")


@pytest.mark.parametrize("text", ["[" * 500_000, '{"a":' * 100_000, f'{{"executionId": {"9" * 5000}}}'])
def test_json_that_only_breaks_its_reader_is_refused(tmp_path: Path, text: str) -> None:
    root = cur2_export(tmp_path, FILES)
    (path,) = root.glob("metadata/*/*.json")
    path.write_text(text)
    message = "is not JSON (a number has" if "9" in text else "is nested more than 100 levels deep;"
    assert refusal(root, tmp_path / "raw").startswith(f"{path} {message}")


def test_a_manifest_of_very_many_names_takes_no_time_to_refuse(tmp_path: Path) -> None:
    """40 thousand names, of which the first is not there: found by one look at each."""
    root = cur2_export(tmp_path, FILES)
    named(root, *(f"{OURS}/{PLACE}/x-{number}.csv.gz" for number in range(40_000)))
    assert f"{PLACE}/x-0.csv.gz, which is not there" in refusal(root, tmp_path / "raw")


def test_a_copy_under_another_name_keeps_to_itself(tmp_path: Path) -> None:
    """A copied export keeps its layout, not its bucket: what is read lies below the folder, by the same path."""
    root = cur2_export(tmp_path, FILES)
    other = tmp_path / PLACE / "ml-cur2-00001.csv.gz"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"not to be read")
    named(root, f"s3://elsewhere/Prefix/ml-cur2/{PLACE}/20260801T000000Z-exec-1/ml-cur2-00001.csv.gz")
    (found,) = exports.list_deliveries(source(root), tmp_path / "raw")
    assert [item.key for item in found.objects] == [f"{PLACE}/20260801T000000Z-exec-1/ml-cur2-00001.csv.gz"]


def test_legacy_keys_that_lead_out_are_refused(tmp_path: Path) -> None:
    root = legacy_export(tmp_path, {"a-1.csv.gz": packed(csv_text([LEGACY_LINE]))})
    path = root / "20260701-20260801/ml-cur-Manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"reportKeys": ["cur/ml-cur/../other/x.csv.gz"]}))
    assert "names cur/ml-cur/../other/x.csv.gz, which is not a plain path" in refusal(root, tmp_path / "raw")


def test_a_misleading_manifest_leaves_the_last_publication_as_it_was(ledger: Ledger) -> None:
    name = "s3://example-billing/export/data/%2e%2e/%2e%2e/secret.csv.gz"
    ledger.manifest.write_text(json.dumps({"executionId": "second", "dataFiles": [name]}))
    assert f"names {name}, which is not a plain path; nothing outside" in ledger.refused(3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": 5}, "has `columns` that are not a list of columns"),
        ({"columns": "bill_payer_account_id"}, "has `columns` that are not a list of columns"),
        ({"columns": {"name": "x"}}, "has `columns` that are not a list of columns"),
        ({"columns": [1]}, "has `columns` that are not a list of columns"),
        (
            {"executionId": "half \ud800 of a sign"},
            r"has the delivery id 'half \ud800 of a sign', which is not printable",
        ),
        ({"executionId": "two\nlines"}, r"has the delivery id 'two\nlines', which is not printable"),
        ({"executionId": " "}, "has the delivery id ' ', which is not printable"),
        (
            {"billingPeriod": {"start": "20260701T000000.000Z", "end": "20260601T000000.000Z"}},
            "is for a billing period from 20260701T000000.000Z to 20260601T000000.000Z",
        ),
    ],
)
def test_what_aws_would_not_write_is_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    root = cur2_export(tmp_path, FILES)
    (path,) = root.glob("metadata/*/*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    assert refusal(root, tmp_path / "raw") == f"{path} {message}; fetch it from the export again."


@pytest.mark.parametrize("month", ["2026-13", "2026-00", "0000-01"])
def test_a_folder_of_no_month_is_refused(tmp_path: Path, month: str) -> None:
    root = cur2_export(tmp_path, FILES, month=month)
    error = refusal(root, tmp_path / "raw")
    assert f"BILLING_PERIOD={month}/ml-cur2-Manifest.json is in the folder of {month}, which is not a month;" in error


@pytest.mark.parametrize("tags", ['{"run_id": "\\ud800"}', '{"\\udfff": "x"}'])
def test_half_a_sign_in_a_tag_is_read_as_missing_and_reported(tmp_path: Path, tags: str) -> None:
    """JSON can escape half of a sign of two parts, which is no text; the line's cost stays."""
    lines = [{**CUR2_LINE, "resource_tags": tags}]
    (raw,) = stored(cur2_export(tmp_path, {"a.csv.gz": packed(csv_text(lines))}), tmp_path / "raw")
    (warning,) = raw.warnings
    assert "1 value of resource_tags cannot be read" in warning
    assert raw.billed_total == Decimal("55.04")
