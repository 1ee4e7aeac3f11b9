"""FOCUS 1.0 and 1.2 exports into the raw store: both formats, spellings and layouts AWS delivers them in."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from support.cur_exports import bill, csv_text, packed, stored
from support.focus_exports import focus_export, focus_lines, focus_parquet, in_lower_case

from pipelines.base.errors import SourceError
from pipelines.config.sources import BillingSource
from pipelines.ingest.billing.columns import FOCUS
from pipelines.ingest.billing.exports import list_deliveries

# An hour under a Savings Plan, and its tags.
LINE = {
    "ChargePeriodStart": "2026-07-01T00:00:00Z",
    "ChargePeriodEnd": "2026-07-01T01:00:00Z",
    "BilledCost": "0.1234567891",
    "EffectiveCost": "30",
    "ListCost": "55.04",
    "ConsumedQuantity": "1",
    "ResourceId": "arn:aws:ec2:us-west-2:000033334444:instance/i-0a",
    "SkuMeter": "USW2-BoxUsage:p5.48xlarge",
    "SkuPriceDetails": json.dumps({"InstanceType": "p5.48xlarge"}),
    "Tags": json.dumps({"user:RunId": "r-1", " Team": "nlp"}),
    "x_Discounts": json.dumps({"edp_discount": -3.0}),
}
READ = (
    "select billed_cost, effective_cost, list_cost, charge_period_start, billing_account_id, coalesce(x_usage_type,"
    " sku_meter), tag_run_id, tag_team, x_discounts like '%edp_discount%-3.0%', source_row from aws_focus_line_item"
)
EXPECTED = (
    Decimal("0.1234567891"),
    Decimal("30"),
    Decimal("55.04"),
    datetime(2026, 7, 1),
    "000011112222",
    "USW2-BoxUsage:p5.48xlarge",
    "r-1",
    "nlp",
    True,
    0,
)


@pytest.mark.parametrize("version", ["1.0", "1.2"])
@pytest.mark.parametrize("form", ["csv", "Parquet", "Parquet under Glue's names"])
@pytest.mark.parametrize("partition", ["billing_period", "BILLING_PERIOD"])
def test_a_line_is_read_alike_however_it_is_delivered(tmp_path: Path, version: str, form: str, partition: str) -> None:
    lines = focus_lines([LINE], version=version)
    lines = in_lower_case(lines) if "Glue" in form else lines
    files = {"f-00001.csv.gz": packed(csv_text(lines))} if form == "csv" else {"f.parquet": focus_parquet(lines)}
    raws = stored(focus_export(tmp_path, files, lines[0], partition=partition), tmp_path / "raw")
    assert [(raw.delivery.kind, raw.focus_versions) for raw in raws] == [("focus", {version})]
    assert raws[0].billed_total == Decimal("0.1234567891")
    assert bill(raws, READ) == [EXPECTED]


def test_tags_as_json_text_in_parquet(tmp_path: Path) -> None:
    """As our own FOCUS export writes them: the columns of maps are JSON text."""
    lines = focus_lines([LINE, {**LINE, "Tags": "{"}], version="1.2")
    written = focus_parquet(lines, {"Tags": pa.string(), "SkuPriceDetails": pa.string()})
    root = focus_export(tmp_path, {"f.parquet": written}, lines[0])
    raws = stored(root, tmp_path / "raw")
    assert bill(raws, f"{READ} order by source_row")[0] == EXPECTED
    assert [warning for warning in raws[0].warnings if "Tags" in warning] == [
        f"{raws[0].files[0].key}: 1 value is no JSON in Tags; read as missing. Have the file delivered again."
    ]
    assert stored(root, tmp_path / "raw")[0].folder == raws[0].folder


def test_only_what_the_current_manifest_names_counts(tmp_path: Path) -> None:
    """Create-new keeps every execution below data/: all of them together would count the month twice."""
    lines = focus_lines([LINE, LINE])
    for number, count in enumerate((1, 2), start=1):
        files = {"f-00001.csv.gz": packed(csv_text(lines[:count]))}
        root = focus_export(tmp_path, files, lines[0], execution=f"2026-08-0{number}T00:00:00.000Z-exec-{number}")
    assert len(list((root / "data").rglob("*.csv.gz"))) == 2
    (raw,) = stored(root, tmp_path / "raw")
    assert (raw.delivery.delivery_id, raw.line_count) == ("2026-08-02T00:00:00.000Z-exec-2", 2)


def test_an_overwritten_month_is_read_again(tmp_path: Path) -> None:
    for cost in ("1", "2"):
        lines = focus_lines([{**LINE, "BilledCost": cost}])
        files = {"f-00001.csv.gz": packed(csv_text(lines))}
        root = focus_export(tmp_path, files, lines[0], overwrite=True, execution=f"execution-{cost}")
        (raw,) = stored(root, tmp_path / "raw")
        assert bill([raw], "select billed_cost from aws_focus_line_item") == [(Decimal(cost),)]


def test_a_manifest_without_columns_is_of_the_kind_of_its_files(tmp_path: Path) -> None:
    lines = focus_lines([LINE])
    root = focus_export(tmp_path, {"f.parquet": focus_parquet(lines)}, ())
    assert bill(stored(root, tmp_path / "raw"), READ) == [EXPECTED]
    with pytest.raises(SourceError, match=r'another kind of bill \(FOCUS export\); write kind = "auto"'):
        list_deliveries(BillingSource(name="b", location=str(root), kind="cur2"), tmp_path / "other")


def test_a_report_declared_as_focus_is_refused(tmp_path: Path) -> None:
    files = {"f-00001.csv.gz": packed(csv_text([{"bill_payer_account_id": "1", "line_item_unblended_cost": "1"}]))}
    with pytest.raises(
        SourceError, match=r"f-00001\.csv\.gz has the columns of another kind of bill \(AWS cost and usage report\)"
    ):
        stored(focus_export(tmp_path, files, ()), tmp_path / "raw", kind="focus")


@pytest.mark.parametrize("name", [column.name for column in FOCUS.columns if column.required])
def test_a_required_column_that_is_absent_is_named(tmp_path: Path, name: str) -> None:
    header = {column.lower(): column for column in focus_lines([LINE])[0]}[name.replace("_", "")]
    lines = [{column: value for column, value in focus_lines([LINE])[0].items() if column != header}]
    root = focus_export(tmp_path, {"f.csv.gz": packed(csv_text(lines))}, ["BilledCost"])
    with pytest.raises(SourceError, match=rf"f\.csv\.gz has no column {name};"):
        stored(root, tmp_path / "raw")


def test_words_for_nothing_are_nothing(tmp_path: Path) -> None:
    """The FOCUS sample of real bills writes NULL, the specification's examples write null."""
    lines = focus_lines([{**LINE, "ConsumedQuantity": "NULL", "ResourceId": "null", "Tags": "NULL"}])
    raws = stored(focus_export(tmp_path, {"f.csv.gz": packed(csv_text(lines))}, lines[0]), tmp_path / "raw")
    read = "select consumed_quantity, resource_id, tag_run_id from aws_focus_line_item"
    assert bill(raws, read) == [(None, None, None)]


def test_one_month_in_files_of_both_versions(tmp_path: Path) -> None:
    """An export moved from 1.0 to 1.2 within the month: what a file lacks is null, not a fault, but both are named."""
    old, new = focus_lines([LINE], version="1.0"), focus_lines([LINE])
    files = {"f-00001.parquet": focus_parquet(old), "f-00002.parquet": focus_parquet(new)}
    raws = stored(focus_export(tmp_path, files, new[0]), tmp_path / "raw")
    read = "select x_usage_type is null, sku_meter is null, invoice_id from aws_focus_line_item order by source_file"
    assert bill(raws, read) == [(False, True, None), (True, False, "INV-1")]
    assert any("has files of FOCUS 1.0 and 1.2" in warning for raw in raws for warning in raw.warnings)
