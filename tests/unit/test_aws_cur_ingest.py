"""Delivered files into the raw store: in each form a bill has, whole or not at all; bad ones are refused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
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
    zipped,
)

from pipelines.base.errors import SourceError
from pipelines.ingest.billing import exports

COST = "lineItem/UnblendedCost"
THREE = [{**LEGACY_LINE, COST: cost} for cost in ("1.25", "2.5", "0.00000000005")]
LEGACY_CSV = csv_text(THREE)
CUR2_THREE = [{**CUR2_LINE, "line_item_unblended_cost": cost} for cost in ("1.25", "2.5", "0.00000000005")]

# The same three lines in every form a bill is delivered in.
FORMS: dict[str, Callable[[Path], Path]] = {
    "legacy csv.gz": lambda root: legacy_export(root, {"ml-cur-1.csv.gz": packed(LEGACY_CSV)}),
    "legacy zip": lambda root: legacy_export(root, {"ml-cur-1.zip": zipped({"ml-cur-1.csv": LEGACY_CSV})}),
    "legacy csv": lambda root: legacy_export(root, {"ml-cur-1.csv": LEGACY_CSV}),
    "legacy csv with a byte order mark": lambda root: legacy_export(root, {"a.csv": b"\xef\xbb\xbf" + LEGACY_CSV}),
    "legacy parquet": lambda root: legacy_export(
        root,
        {
            "ml-cur-00001.snappy.parquet": parquet(
                [{k: v for k, v in line.items() if "name" not in k} for line in CUR2_THREE]
            )
        },
        folder="ml-cur/year=2026/month=7",
    ),
    "cur2 csv.gz": lambda root: cur2_export(root, {"ml-cur2-00001.csv.gz": packed(csv_text(CUR2_THREE))}),
    "cur2 parquet": lambda root: cur2_export(root, {"ml-cur2-00001.snappy.parquet": parquet(CUR2_THREE)}),
    "two files": lambda root: cur2_export(
        root, {"a-1.csv.gz": packed(csv_text(CUR2_THREE[:1])), "a-2.snappy.parquet": parquet(CUR2_THREE[1:])}
    ),
}


def refusal(root: Path, tmp_path: Path) -> str:
    """The one sentence an export is refused with; nothing of it may be left in the raw store."""
    with pytest.raises(SourceError) as raised:
        stored(root, tmp_path / "raw")
    assert list((tmp_path / "raw").rglob("*.parquet")) == []
    assert list((tmp_path / "raw").rglob("delivery.json")) == []
    assert str(root) in str(raised.value)
    return str(raised.value).replace(str(root), "ROOT")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_lines(tmp_path: Path, form: str) -> None:
    (raw,) = stored(FORMS[form](tmp_path / "bucket"), tmp_path / "raw")
    assert raw.line_count == 3
    assert raw.warnings == []
    rows = bill(
        [raw],
        "select source_name, billing_period, line_item_unblended_cost, line_item_usage_amount,"
        " bill_payer_account_id, line_item_usage_start_date, line_item_net_unblended_cost"
        " from aws_cur_line_item order by source_file, source_row",
    )
    costs = [Decimal("1.25"), Decimal("2.5"), Decimal("0.0000000001")]
    start = datetime(2026, 7, 1)
    assert rows == [("payer", "2026-07", cost, Decimal(1), "000011112222", start, None) for cost in costs]


def test_the_total_of_a_csv_keeps_every_delivered_digit(tmp_path: Path) -> None:
    (raw,) = stored(FORMS["legacy csv.gz"](tmp_path), tmp_path / "raw")
    assert raw.billed_total == Decimal("3.75000000005")


def test_every_line_knows_its_file_and_row(tmp_path: Path) -> None:
    (raw,) = stored(FORMS["two files"](tmp_path), tmp_path / "raw")
    folder = "data/BILLING_PERIOD=2026-07/20260801T000000Z-exec-1"
    rows = bill([raw], "select source_file, source_row from aws_cur_line_item order by all")
    assert rows == [
        (f"{folder}/a-1.csv.gz", 0),
        (f"{folder}/a-2.snappy.parquet", 0),
        (f"{folder}/a-2.snappy.parquet", 1),
    ]


def test_parquet_is_kept_to_the_byte(tmp_path: Path) -> None:
    content = parquet(CUR2_THREE)
    (raw,) = stored(cur2_export(tmp_path, {"x.snappy.parquet": content}), tmp_path / "raw")
    assert (raw.folder / raw.files[0].name).read_bytes() == content


def test_missing_words_are_null_and_odd_list_prices_are_counted(tmp_path: Path) -> None:
    odd = {
        "pricing/publicOnDemandCost": "convertible",
        "lineItem/ResourceId": "None",
        "savingsPlan/SavingsPlanEffectiveCost": "None",
    }
    lines = [{**LEGACY_LINE, **odd}, {**LEGACY_LINE, **odd, "lineItem/ResourceId": "NULL"}, LEGACY_LINE]
    (raw,) = stored(legacy_export(tmp_path, {"a.csv.gz": packed(csv_text(lines))}), tmp_path / "raw")
    rows = bill(
        [raw],
        "select distinct line_item_resource_id, pricing_public_on_demand_cost,"
        " savings_plan_savings_plan_effective_cost from aws_cur_line_item",
    )
    assert rows == [(None, None, None)]
    assert raw.warnings == [
        "20260701-20260801/asm-1/a.csv.gz: 2 values of pricing/publicOnDemandCost cannot be "
        "read (first 'convertible' in row 2); read as missing. Have the file delivered again if that matters."
    ]


def test_a_newline_inside_a_value_is_no_new_line(tmp_path: Path) -> None:
    lines = [{**LEGACY_LINE, "lineItem/LineItemDescription": 'two\nlines, "quoted"'}, LEGACY_LINE]
    (raw,) = stored(legacy_export(tmp_path, {"a.csv.gz": packed(csv_text(lines))}), tmp_path / "raw")
    rows = bill([raw], "select line_item_line_item_description from aws_cur_line_item order by source_row")
    assert rows == [('two\nlines, "quoted"',), (None,)]


def test_a_bill_without_lines_has_the_columns(tmp_path: Path) -> None:
    header = csv_text([LEGACY_LINE]).splitlines()[0]
    files = {"a.csv.gz": packed(header), "b.csv": header + b"\n\n"}
    (raw,) = stored(legacy_export(tmp_path, files), tmp_path / "raw")
    assert (raw.line_count, raw.billed_total) == (0, 0)
    assert bill([raw], "select count(*), sum(line_item_unblended_cost) from aws_cur_line_item") == [(0, None)]


def test_a_new_month_without_files_is_an_empty_bill(tmp_path: Path) -> None:
    (raw,) = stored(cur2_export(tmp_path, {}), tmp_path / "raw")
    (full,) = stored(FORMS["cur2 csv.gz"](tmp_path / "other"), tmp_path / "raw")
    empty = bill([raw], "select * from aws_cur_line_item")
    assert empty == []
    assert bill([raw, full], "select count(*) from aws_cur_line_item") == [(3,)]


def test_a_second_ingest_does_nothing(tmp_path: Path) -> None:
    root = FORMS["cur2 parquet"](tmp_path / "bucket")
    (first,) = stored(root, tmp_path / "raw")
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "raw").rglob("*") if path.is_file()}
    # Not even the delivered files are needed any more.
    next(root.glob("data/*/*/*.parquet")).unlink()
    (again,) = stored(root, tmp_path / "raw")
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "raw").rglob("*") if path.is_file()} == written


def test_a_file_replaced_under_its_manifest_is_read_again(tmp_path: Path) -> None:
    """A copy that brings the manifest before the files: 55.04 first, then twice that; the second stays as it is."""
    totals, seals = [], []
    for lines in ([CUR2_LINE], [CUR2_LINE] * 2, [CUR2_LINE] * 2):
        root = cur2_export(tmp_path / "bucket", {"a.csv.gz": packed(csv_text(lines))}, overwrite=True)
        (raw,) = stored(root, tmp_path / "raw")
        totals.append(raw.billed_total)
        seals.append(raw.delivery.fingerprint)
    assert totals == [Decimal("55.04"), Decimal("110.08"), Decimal("110.08")]
    assert seals[1] == seals[2] != seals[0]
    # Superseded deliveries are removed; what is left goes on to be known.
    shutil.rmtree(next(path for path in (tmp_path / "raw").rglob(f"{seals[0][:16]}*")))
    (raw,) = stored(root, tmp_path / "raw")
    assert raw.delivery.fingerprint == seals[1]


def test_two_manifests_of_like_fingerprints_are_two_deliveries(tmp_path: Path) -> None:
    """A stored delivery is looked up by 32 bits of its manifest's fingerprint, which another may share by chance."""
    root = FORMS["cur2 csv.gz"](tmp_path / "bucket")
    (before,) = stored(root, tmp_path / "raw")
    files = {"x.csv.gz": packed(csv_text(CUR2_THREE[:1]))}
    cur2_export(tmp_path / "bucket", files, execution="20260802T000000Z-exec-2")
    (restated,) = exports.list_deliveries(source(root), tmp_path / "elsewhere")
    # The delivery before, as if the first digits of its fingerprint were those of the one that replaces it.
    alike = restated.fingerprint[:8] + before.delivery.fingerprint[8:]
    folder = before.folder.rename(before.folder.with_name(alike[:16]))
    record = folder / "delivery.json"
    record.write_text(record.read_text().replace(before.delivery.fingerprint, alike))
    (after,) = stored(root, tmp_path / "raw")
    assert (after.delivery.fingerprint, after.line_count) == (restated.fingerprint, 1)


def test_a_restated_month_lies_next_to_the_one_before(tmp_path: Path) -> None:
    root = FORMS["cur2 csv.gz"](tmp_path / "bucket")
    (before,) = stored(root, tmp_path / "raw")
    cur2_export(
        tmp_path / "bucket",
        {"x.csv.gz": packed(csv_text(CUR2_THREE[:1]))},
        execution="20260802T000000Z-exec-2",
    )
    (after,) = stored(root, tmp_path / "raw")
    assert (before.line_count, after.line_count) == (3, 1)
    assert before.folder != after.folder and before.folder.is_dir()


def test_a_killed_ingest_leaves_nothing_that_counts(tmp_path: Path) -> None:
    root = FORMS["cur2 parquet"](tmp_path / "bucket")
    (delivery,) = exports.list_deliveries(source(root), tmp_path / "raw")
    folder = delivery.folder(tmp_path / "raw")
    # A process id that no process can have.
    left = folder.with_name(f".{folder.name}.{2**22 + 1}.tmp")
    left.mkdir(parents=True)
    (left / "part-1.parquet").write_bytes(b"half a fi")
    alive = folder.with_name(f".other.{os.getppid()}.tmp")
    alive.mkdir()
    assert exports.ingest(delivery, source(root), tmp_path / "raw").line_count == 3
    assert not left.exists() and alive.exists()


def test_progress_ends_at_all_bytes(tmp_path: Path) -> None:
    root = FORMS["two files"](tmp_path)
    (delivery,) = exports.list_deliveries(source(root), tmp_path / "raw")
    heard: list[tuple[int, int, str]] = []
    exports.ingest(delivery, source(root), tmp_path / "raw", lambda *progress: heard.append(progress))
    total = sum(item.size for item in delivery.objects)
    assert heard[-1] == (total, total, "payer 2026-07")
    assert [done for done, _, _ in heard] == sorted(done for done, _, _ in heard)


def spoilt(cost: str) -> bytes:
    return packed(csv_text([*THREE, {**LEGACY_LINE, COST: cost}]))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv.gz", b"", "is empty"),
        ("a.csv.gz", packed(b""), "is empty, without even a header"),
        ("a.csv.gz", packed(LEGACY_CSV)[:-9], "is cut short or damaged"),
        ("a.csv.gz", packed(LEGACY_CSV)[:-5] + b"xxxxx", "is cut short or damaged"),
        ("a.csv.gz", packed(LEGACY_CSV)[:40], "is cut short or damaged"),
        ("a.zip", zipped({}), "holds 0 files where a bill holds one"),
        ("a.zip", zipped({"a.csv": LEGACY_CSV, "b.csv": LEGACY_CSV}), "holds 2 files (a.csv, b.csv) where"),
        ("a.zip", zipped({"a.csv": LEGACY_CSV})[:-30], "is cut short or damaged"),
        ("a.csv", b"hello", "has no column bill_payer_account_id"),
        ("a.csv", LEGACY_CSV + b"1,2\n", "row 5 (the header is row 1): 2 values under 11 columns"),
        (
            "a.csv",
            LEGACY_CSV.replace(b"2.5\n", b"2.5,9\n"),
            "row 3 (the header is row 1): 12 values under 11 columns",
        ),
        ("a.csv", LEGACY_CSV.replace(b"AmazonEC2", b"\xff\xfe"), "is not a CSV"),
        (
            "a.csv.gz",
            spoilt("12,50"),
            "row 5 (the header is row 1), column lineItem/UnblendedCost: '12,50' is not a number",
        ),
        ("a.csv.gz", spoilt("10000000000"), "'10000000000' is not a number below 10 billion"),
        (
            "a.csv",
            LEGACY_CSV.replace(b"2026-07-01T01:00:00Z", b"soon"),
            "row 2 (the header is row 1), column lineItem/UsageEndDate: 'soon' is not an ISO timestamp",
        ),
        ("a.parquet", parquet(CUR2_THREE)[:-20], "is not a complete Parquet file"),
        ("a.parquet", b"PAR1", "is not a complete Parquet file"),
        ("a.parquet", LEGACY_CSV, "is not a complete Parquet file"),
        (
            "a.parquet",
            parquet(CUR2_THREE, {"line_item_usage_amount": pa.string()}),
            "column line_item_usage_amount is string, not a number",
        ),
        (
            "a.parquet",
            parquet([*CUR2_THREE, {**CUR2_LINE, "line_item_unblended_cost": "nan"}]),
            "row 4, column line_item_unblended_cost: nan is not a number",
        ),
        (
            "a.parquet",
            parquet([{key: value for key, value in CUR2_LINE.items() if key != "line_item_currency_code"}]),
            "has no column line_item_currency_code",
        ),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    error = refusal(legacy_export(tmp_path / "bucket", {"good.csv.gz": packed(LEGACY_CSV), name: content}), tmp_path)
    assert error.startswith(f"ROOT/20260701-20260801/asm-1/{name}")
    assert message in error
    assert error.count("\n") == 0 and error.endswith(".")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    root = FORMS["cur2 csv.gz"](tmp_path / "bucket")
    next(root.glob("data/*/*/*.gz")).unlink()
    error = refusal(root, tmp_path)
    assert error == (
        "ROOT/metadata/BILLING_PERIOD=2026-07/ml-cur2-Manifest.json names "
        "ROOT/data/BILLING_PERIOD=2026-07/20260801T000000Z-exec-1/ml-cur2-00001.csv.gz, which is not there; "
        "wait for the delivery to finish or have it delivered again."
    )
