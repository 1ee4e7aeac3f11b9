"""Deliveries are found through current manifests alone, and nothing outside the export's root is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.cur_exports import (
    CUR2_LINE,
    LEGACY_LINE,
    csv_text,
    cur2_export,
    legacy_export,
    packed,
    source,
    write,
)

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.delivery import Delivery
from pipelines.ingest.billing.exports import detect_kind, list_deliveries

LEGACY = {"ml-cur-1.csv.gz": packed(csv_text([LEGACY_LINE]))}
CUR2 = {"ml-cur2-00001.csv.gz": packed(csv_text([CUR2_LINE]))}


def deliveries(location: Path, raw_root: Path) -> list[Delivery]:
    return list_deliveries(source(location), raw_root)


def respell(root: Path, **changes: object) -> Path:
    """Change keys of the export's only current manifest; None removes one."""
    (path,) = root.glob("metadata/*/*.json")
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    return path


def refusal(location: Path, raw_root: Path) -> str:
    with pytest.raises(SourceError) as raised:
        deliveries(location, raw_root)
    return str(raised.value)


@pytest.mark.parametrize("overwrite", [False, True])
def test_cur2_in_both_versioning_modes(tmp_path: Path, overwrite: bool) -> None:
    root = cur2_export(tmp_path, CUR2, overwrite=overwrite)
    (found,) = deliveries(root, tmp_path / "raw")
    assert (found.billing_period, found.kind, found.missing) == ("2026-07", "cur2", ())
    assert found.delivery_id == "20260801T000000Z-exec-1"
    folder = "data/BILLING_PERIOD=2026-07" + ("" if overwrite else "/20260801T000000Z-exec-1")
    assert [item.key for item in found.objects] == [f"{folder}/ml-cur2-00001.csv.gz"]


@pytest.mark.parametrize("folder", [None, "20260701-20260801"])
def test_legacy_in_both_versioning_modes(tmp_path: Path, folder: str | None) -> None:
    root = legacy_export(tmp_path, LEGACY, folder=folder)
    (found,) = deliveries(root, tmp_path / "raw")
    assert (found.billing_period, found.kind, found.delivery_id) == ("2026-07", "cur", "asm-1")
    folder = folder or "20260701-20260801/asm-1"
    assert [item.key for item in found.objects] == [f"{folder}/ml-cur-1.csv.gz"]


def test_legacy_parquet_lies_in_a_folder_of_its_own(tmp_path: Path) -> None:
    root = legacy_export(tmp_path, {"ml-cur-00001.snappy.parquet": b"x"}, folder="ml-cur/year=2026/month=7")
    (found,) = deliveries(root, tmp_path / "raw")
    assert [item.key for item in found.objects] == ["ml-cur/year=2026/month=7/ml-cur-00001.snappy.parquet"]


def test_only_the_newest_execution_counts(tmp_path: Path) -> None:
    cur2_export(tmp_path, CUR2)
    root = cur2_export(tmp_path, CUR2, execution="20260802T000000Z-exec-2")
    (found,) = deliveries(root, tmp_path / "raw")
    assert [item.key.split("/")[2] for item in found.objects] == ["20260802T000000Z-exec-2"]


def test_only_the_newest_assembly_counts(tmp_path: Path) -> None:
    legacy_export(tmp_path, LEGACY)
    root = legacy_export(tmp_path, LEGACY, assembly="asm-2")
    (found,) = deliveries(root, tmp_path / "raw")
    assert [item.key.split("/")[1] for item in found.objects] == ["asm-2"]


def test_months_come_oldest_first_and_the_folder_above_will_do(tmp_path: Path) -> None:
    cur2_export(tmp_path / "bucket", CUR2, month="2026-08")
    cur2_export(tmp_path / "bucket", CUR2, month="2026-07")
    found = deliveries(tmp_path / "bucket", tmp_path / "raw")
    assert [delivery.billing_period for delivery in found] == ["2026-07", "2026-08"]
    assert found[0].objects[0].key.startswith("ml-cur2/data/")


def test_the_prefix_may_be_called_like_the_export(tmp_path: Path) -> None:
    root = legacy_export(tmp_path, LEGACY, prefix="ml-cur")
    (found,) = deliveries(root, tmp_path / "raw")
    assert found.objects[0].key == "20260701-20260801/asm-1/ml-cur-1.csv.gz"


def test_a_lower_case_partition_is_a_partition(tmp_path: Path) -> None:
    text = json.dumps({"executionId": "e", "dataFiles": ["s3://b/p/x/data/billing_period=2026-07/x-1.csv.gz"]})
    write(tmp_path / "x", {"metadata/billing_period=2026-07/x-Manifest.json": text})
    write(tmp_path / "x", {"data/billing_period=2026-07/x-1.csv.gz": CUR2["ml-cur2-00001.csv.gz"]})
    (found,) = deliveries(tmp_path / "x", tmp_path / "raw")
    assert (found.billing_period, len(found.objects)) == ("2026-07", 1)


def test_the_fingerprint_follows_the_manifest_and_the_source(tmp_path: Path) -> None:
    root = cur2_export(tmp_path, CUR2)
    (first,) = deliveries(root, tmp_path / "raw")
    (again,) = deliveries(root, tmp_path / "elsewhere")
    (other,) = list_deliveries(source(root).model_copy(update={"name": "payer-b"}), tmp_path / "raw")
    cur2_export(tmp_path, CUR2, execution="20260802T000000Z-exec-2")
    (changed,) = deliveries(root, tmp_path / "raw")
    assert again.fingerprint == first.fingerprint
    assert len({first.fingerprint, other.fingerprint, changed.fingerprint}) == 3


def test_a_missing_file_is_noted_until_it_is_needed(tmp_path: Path) -> None:
    root = cur2_export(tmp_path, CUR2)
    next(root.glob("data/*/*/*.gz")).unlink()
    (found,) = deliveries(root, tmp_path / "raw")
    assert found.missing == ("data/BILLING_PERIOD=2026-07/20260801T000000Z-exec-1/ml-cur2-00001.csv.gz",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{oops", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("{}", "no list dataFiles or reportKeys"),
        ('{"dataFiles": "x"}', "no list dataFiles or reportKeys"),
        ('{"dataFiles": []}', "neither executionId nor assemblyId"),
    ],
)
def test_a_spoilt_manifest_is_named(tmp_path: Path, text: str, message: str) -> None:
    root = cur2_export(tmp_path, CUR2)
    (path,) = root.glob("metadata/*/*.json")
    path.write_text(text)
    error = refusal(root, tmp_path / "raw")
    assert str(path) in error and message in error


def test_a_manifest_that_is_not_text_is_named(tmp_path: Path) -> None:
    root = cur2_export(tmp_path, CUR2)
    (path,) = root.glob("metadata/*/*.json")
    path.write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in refusal(root, tmp_path / "raw")


@pytest.mark.parametrize(
    "name",
    [
        "s3://example-billing/cur2/ml-cur2/../../secret.csv.gz",
        "s3://example-billing/cur2/other/data/x.csv.gz/../y.csv.gz",
        "s3://example-billing/elsewhere/x.csv.gz",
        "file:///etc/passwd",
        "/etc/passwd",
        "",
    ],
)
def test_nothing_outside_the_root_is_read(tmp_path: Path, name: str) -> None:
    root = cur2_export(tmp_path, CUR2)
    respell(root, dataFiles=[name])
    error = refusal(root, tmp_path / "raw")
    assert f"names {name}, which is" in error and f"nothing outside {root} is read" in error


def test_a_file_named_twice_is_refused(tmp_path: Path) -> None:
    root = cur2_export(tmp_path, CUR2)
    name = "s3://example-billing/cur2/ml-cur2/data/BILLING_PERIOD=2026-07/x.csv.gz"
    respell(root, dataFiles=[name, name])
    assert "names data/BILLING_PERIOD=2026-07/x.csv.gz twice" in refusal(root, tmp_path / "raw")


def test_two_exports_in_one_folder_are_not_added_up(tmp_path: Path) -> None:
    cur2_export(tmp_path / "bucket", CUR2, name="a")
    cur2_export(tmp_path / "bucket", CUR2, name="b")
    error = refusal(tmp_path / "bucket", tmp_path / "raw")
    assert "holds 2 exports (a/a, b/b)" in error and error.endswith("own location, or with its `export` by name.")
    # Copies of one export have one name.
    shutil.copytree(tmp_path / "bucket" / "a", tmp_path / "copies" / "c")
    shutil.copytree(tmp_path / "bucket" / "a", tmp_path / "copies" / "d")
    error = refusal(tmp_path / "copies", tmp_path / "raw")
    assert "holds 2 exports (c/a, d/a)" in error and error.endswith("entry with its own location.")


def test_a_folder_without_manifests_is_refused_with_what_to_point_at(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "holds no billing manifest; point location at" in refusal(tmp_path / "empty", tmp_path / "raw")


def test_a_manifest_in_another_months_folder_is_refused(tmp_path: Path) -> None:
    root = legacy_export(tmp_path, LEGACY)
    (root / "20260701-20260801").rename(root / "20260801-20260901")
    assert "is for the billing period from 20260701T000000.000Z but is in the folder of 2026-08" in refusal(
        root, tmp_path / "raw"
    )


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["lineItem/UnblendedCost"], "cur"),
        (["bill_payer_account_name", "line_item_unblended_cost"], "cur2"),
        (["line_item_unblended_cost"], None),
        (["line_item_unblended_cost", "resource_tags_user_team"], "cur"),
        (["BilledCost", "Tags"], "focus"),
        (["billedcost", "tags"], "focus"),
    ],
)
def test_the_kind_is_known_by_columns(columns: list[str], kind: str | None) -> None:
    assert detect_kind(columns) == kind
