"""Real bills, line by line. Every expected figure is read here from the delivered files by csv or pyarrow."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.cur_exports import bill, legacy_export, source, stored

from pipelines.base.errors import SourceError
from pipelines.config.settings import STANDARD_TAGS
from pipelines.ingest.billing import exports
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.ingest.billing.select import raw_select

WORKSHOP = {
    "20181001-20181101": "Oct2018-WorkshopCUR-00001.snappy.parquet",
    "20181101-20181201": "Nov2018-WorkshopCUR-00001.snappy.parquet",
}
TEN_PLACES = Decimal("1e-10")


def rounded(value: str | float) -> Decimal:
    """As the bill keeps a number: 10 places, halves away from zero."""
    return Decimal(str(value)).quantize(TEN_PLACES, ROUND_HALF_UP)


def csv_lines(path: Path) -> Iterator[dict[str, str]]:
    """The lines of a csv.gz; headers that differ by case stay apart."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        yield from csv.DictReader(text)


@pytest.fixture(scope="module")
def raw_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("raw")


@pytest.fixture(scope="module")
def nise(billing: Path, raw_root: Path) -> list[RawDelivery]:
    return stored(billing / "nise_small/acme-cur-bucket/billing/hourly-cur", raw_root / "nise")


@pytest.fixture(scope="module")
def nise_lines(billing: Path) -> list[tuple[str, dict[str, str]]]:
    """Billing month and line of the assemblies the month-level manifests name."""
    bucket = billing / "nise_small/acme-cur-bucket"
    lines = []
    for manifest in sorted(bucket.glob("billing/hourly-cur/*/hourly-cur-Manifest.json")):
        for key in json.loads(manifest.read_text())["reportKeys"]:
            month = f"{manifest.parent.name[:4]}-{manifest.parent.name[4:6]}"
            lines += [(month, line) for line in csv_lines(bucket / key)]
    return lines


@pytest.fixture(scope="module")
def workshop(billing: Path, raw_root: Path) -> list[RawDelivery]:
    """The two Parquet months, with the manifests AWS would have written next to them."""
    for month, name in WORKSHOP.items():
        content = (billing / "cur_workshop_2018" / name).read_bytes()
        folder = f"WorkshopCUR/year={month[:4]}/month={int(month[4:6])}"
        legacy_export(raw_root / "bucket", {name: content}, name="WorkshopCUR", month=month, folder=folder)
    return stored(raw_root / "bucket/WorkshopCUR", raw_root / "workshop")


def workshop_columns(billing: Path, names: Sequence[str]) -> Iterator[tuple]:
    for name in WORKSHOP.values():
        table = pq.read_table(billing / "cur_workshop_2018" / name, columns=list(names))
        yield from zip(*(table.column(column).to_pylist() for column in names), strict=True)


def test_nise_by_month_and_type(nise: list[RawDelivery], nise_lines: list) -> None:
    expected: dict = defaultdict(lambda: [0, Decimal(0)])
    for month, line in nise_lines:
        sums = expected[month, line["lineItem/LineItemType"]]
        sums[0] += 1
        sums[1] += rounded(line["lineItem/UnblendedCost"])
    rows = bill(
        nise,
        "select billing_period, line_item_line_item_type, count(*), sum(line_item_unblended_cost) "
        "from aws_cur_line_item group by all",
    )
    assert {(month, kind): [count, cost] for month, kind, count, cost in rows} == dict(expected)
    # The data's own README states these two.
    assert [raw.billed_total for raw in nise] == [Decimal("11990.604855176"), Decimal("37959.9484129248")]


def test_nise_line_by_line(nise: list[RawDelivery], nise_lines: list) -> None:
    def text(value: str) -> str | None:
        return None if value in ("", "None") else value

    def at(value: str) -> datetime:
        return datetime.fromisoformat(value.replace("Z", "+00:00")).replace(tzinfo=None)

    expected = [
        (
            month,
            text(line["lineItem/ResourceId"]),
            line["lineItem/UsageAccountId"],
            rounded(line["lineItem/UnblendedCost"]),
            rounded(line["lineItem/UsageAmount"]),
            at(line["lineItem/UsageStartDate"]),
            at(line["lineItem/UsageEndDate"]),
            text(line["product/regionCode"]) or text(line["product/region"]),
            text(line["resourceTags/user:Run_ID"]) or text(line["resourceTags/user:run_id"]),
            text(line["resourceTags/user:team"]),
            effective
            if (effective := text(line["savingsPlan/SavingsPlanEffectiveCost"])) is None
            else rounded(effective),
        )
        for month, line in nise_lines
    ]
    rows = bill(
        nise,
        "select billing_period, line_item_resource_id, line_item_usage_account_id, line_item_unblended_cost,"
        " line_item_usage_amount, line_item_usage_start_date, line_item_usage_end_date, product_region_code,"
        " tag_run_id, tag_team, savings_plan_savings_plan_effective_cost"
        " from aws_cur_line_item order by billing_period, source_file, source_row",
    )
    assert rows == expected


def test_what_is_odd_in_nise_is_reported(nise: list[RawDelivery], nise_lines: list) -> None:
    words = sum(line["pricing/publicOnDemandCost"] == "convertible" for _, line in nise_lines)
    (warning,) = (warning for raw in nise for warning in raw.warnings)
    assert f": {words} values of pricing/publicOnDemandCost" in warning and "'convertible'" in warning
    twins = [
        sentence for sentence in raw_select(nise, STANDARD_TAGS).warnings if "user:Run_ID and user:run_id" in sentence
    ]
    assert len(twins) == len(nise)


def test_the_folder_above_gives_the_same_bill(billing: Path, raw_root: Path, nise: list[RawDelivery]) -> None:
    above = stored(billing / "nise_small/acme-cur-bucket/billing", raw_root / "above")
    assert [raw.billed_total for raw in above] == [raw.billed_total for raw in nise]


def test_workshop_by_type_with_reservations(billing: Path, workshop: list[RawDelivery]) -> None:
    money = (
        "line_item_unblended_cost",
        "line_item_usage_amount",
        "pricing_public_on_demand_cost",
        "reservation_effective_cost",
        "reservation_unused_recurring_fee",
        "reservation_amortized_upfront_fee_for_billing_period",
    )
    expected: dict = defaultdict(lambda: [0] + [Decimal(0)] * len(money))
    for start, kind, *values in workshop_columns(
        billing, ("bill_billing_period_start_date", "line_item_line_item_type", *money)
    ):
        sums = expected[start.replace(tzinfo=None), kind]
        sums[0] += 1
        for place, value in enumerate(values, 1):
            sums[place] += 0 if value is None else rounded(value)
    listed = ", ".join(f"coalesce(sum({name}), 0)" for name in money)
    rows = bill(
        workshop,
        f"select bill_billing_period_start_date, line_item_line_item_type, count(*), {listed} "
        "from aws_cur_line_item group by all",
    )
    assert {(start, kind): list(sums) for start, kind, *sums in rows} == dict(expected)
    assert sum(sums[0] for sums in expected.values()) == 119_307 + 124_340


def test_workshop_line_by_line(billing: Path, workshop: list[RawDelivery]) -> None:
    columns = (
        "line_item_usage_account_id",
        "line_item_resource_id",
        "line_item_usage_type",
        "line_item_usage_start_date",
        "line_item_usage_end_date",
        "product_region",
        "resource_tags_user_department",
    )
    expected = [
        (
            account,
            resource or None,
            usage,
            start.replace(tzinfo=None),
            end.replace(tzinfo=None),
            region or None,
            tag or None,
        )
        for account, resource, usage, start, end, region, tag in workshop_columns(billing, columns)
    ]
    rows = bill(
        workshop,
        "select line_item_usage_account_id, line_item_resource_id, line_item_usage_type,"
        " line_item_usage_start_date, line_item_usage_end_date, product_region_code, tag_team"
        " from aws_cur_line_item order by billing_period, source_row",
        {"team": ("Department",)},
    )
    assert rows == expected
    assert "011254002932" in {row[0] for row in rows}


def test_workshop_parquet_is_kept_as_delivered(billing: Path, workshop: list[RawDelivery]) -> None:
    for raw, name in zip(workshop, WORKSHOP.values(), strict=True):
        (file,) = raw.files
        assert (raw.folder / file.name).read_bytes() == (billing / "cur_workshop_2018" / name).read_bytes()
        assert file.line_count == pq.read_metadata(raw.folder / file.name).num_rows


def test_keboola_cur2(billing: Path, raw_root: Path) -> None:
    bucket = billing / "cur2_data_export/keboola_mock-cur-v2-bucket"
    lines = [line for path in bucket.glob("data/*/*.csv.gz") for line in csv_lines(path)]
    (raw,) = stored(bucket, raw_root / "keboola")
    assert (raw.delivery.kind, raw.delivery.billing_period) == ("cur2", "2024-09")
    rows = bill(
        [raw],
        "select line_item_resource_id, line_item_unblended_cost, line_item_usage_start_date,"
        " bill_payer_account_id, product_product_name from aws_cur_line_item order by source_row",
    )
    assert rows == [
        (
            line["line_item_resource_id"] or None,
            rounded(line["line_item_unblended_cost"]),
            datetime.fromisoformat(line["line_item_usage_start_date"]).replace(tzinfo=None),
            line["bill_payer_account_id"],
            line["product_product_name"],
        )
        for line in lines
    ]


@pytest.mark.parametrize("location", ["koku_local_bucket/koku-local", "koku_local_bucket"])
def test_koku_three_periods_in_one_folder(billing: Path, raw_root: Path, location: str) -> None:
    expected: dict = defaultdict(lambda: [0, Decimal(0)])
    (path,) = (billing / "cur_legacy/koku_local_bucket").rglob("*.csv.gz")
    total = Decimal(0)
    for line in csv_lines(path):
        sums = expected[datetime.fromisoformat(line["bill/BillingPeriodStartDate"]).replace(tzinfo=None)]
        sums[0] += 1
        sums[1] += rounded(line["lineItem/UnblendedCost"])
        total += Decimal(line["lineItem/UnblendedCost"])
    (raw,) = stored(billing / "cur_legacy" / location, raw_root / location.replace("/", "-"))
    rows = bill(
        [raw],
        "select bill_billing_period_start_date, count(*), sum(line_item_unblended_cost)"
        " from aws_cur_line_item group by all",
    )
    assert {start: [count, cost] for start, count, cost in rows} == dict(expected)
    assert raw.billed_total == total


def test_the_ragged_koku_csv_is_refused_by_its_row(billing: Path, tmp_path: Path) -> None:
    content = (billing / "cur_legacy/koku_test_cur.csv").read_bytes()
    lines = list(csv.reader(io.StringIO(content.decode(), newline="")))
    row = next(number for number, line in enumerate(lines, 1) if len(line) != len(lines[0]))
    root = legacy_export(tmp_path, {"test_cur.csv": content}, month="20180601-20180701")
    with pytest.raises(SourceError) as raised:
        stored(root, tmp_path / "raw")
    message = f"{len(lines[row - 1])} values under {len(lines[0])} columns"
    assert f"test_cur.csv, row {row} (the header is row 1): {message}" in str(raised.value)


def test_a_krone_bill_keeps_zeros_and_currency(billing: Path, tmp_path: Path) -> None:
    content = (billing / "cur_legacy/koku_2023-06-01.csv").read_bytes()
    root = legacy_export(tmp_path, {"day.csv": content}, month="20230601-20230701")
    raws = stored(root, tmp_path / "raw")
    lines = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    rows = bill(
        raws,
        "select bill_payer_account_id, line_item_currency_code, line_item_unblended_cost,"
        " savings_plan_savings_plan_a_r_n, savings_plan_savings_plan_effective_cost, line_item_usage_end_date"
        " from aws_cur_line_item order by source_row",
    )
    assert rows == [
        (
            line["bill/PayerAccountId"],
            line["lineItem/CurrencyCode"],
            rounded(line["lineItem/UnblendedCost"]),
            line["savingsPlan/SavingsPlanArn"] or None,
            rounded(line["savingsPlan/SavingsPlanEffectiveCost"])
            if line["savingsPlan/SavingsPlanEffectiveCost"]
            else None,
            datetime.fromisoformat(line["lineItem/UsageEndDate"]),
        )
        for line in lines
    ]
    assert {row[0] for row in rows} == {"0099999999999"}


def test_a_header_without_lines_is_a_bill_of_nothing(billing: Path, tmp_path: Path) -> None:
    content = (billing / "cur_legacy/koku_empty_frame.csv").read_bytes()
    (raw,) = stored(legacy_export(tmp_path, {"empty.csv": content}), tmp_path / "raw")
    assert (raw.line_count, raw.billed_total) == (0, 0)
    assert raw.warnings == [
        "20260701-20260801/ml-cur-Manifest.json contains no line; the month is empty. Check the export if it was used."
    ]


@pytest.mark.parametrize(
    "name", ["cur_legacy/sbroenne_sample-legacy-csv.csv", "cur2_data_export/sbroenne_sample-cur20.csv"]
)
def test_a_bill_without_line_item_types_is_refused(billing: Path, tmp_path: Path, name: str) -> None:
    root = legacy_export(tmp_path, {"sample.csv": (billing / name).read_bytes()}, month="20250101-20250201")
    with pytest.raises(SourceError, match=r"sample\.csv has no column line_item_currency_code"):
        stored(root, tmp_path / "raw")


def test_ice_manifests_without_files_are_empty_months(billing: Path, tmp_path: Path) -> None:
    manifest = (billing / "manifests/ice_manifest-2019-12.json").read_text()
    month = tmp_path / "ice/20191201-20200101"
    month.mkdir(parents=True)
    (month / "ice-Manifest.json").write_text(manifest)
    (delivery,) = exports.list_deliveries(source(tmp_path / "ice"), tmp_path / "raw")
    assert (delivery.kind, delivery.objects, delivery.billing_period) == ("cur", (), "2019-12")


@pytest.mark.spark
def test_spark_reads_the_same_bill(nise: list[RawDelivery]) -> None:
    from pipelines.config.spark import Spark
    from pipelines.engine.spark import SparkEngine

    everything = "select * from aws_cur_line_item order by source_file, source_row"
    shown = raw_select(nise, STANDARD_TAGS)
    with SparkEngine(Spark()) as engine:
        for name, files in shown.views.items():
            engine.scan_files(name, files)
        engine.view_sql("aws_cur_line_item", shown.sql)
        assert engine.query(everything).rows() == bill(nise, everything)
