"""Bugs of others who read bills: partitions spelled otherwise, columns that drift, twins, days taken for hours."""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.cur_exports import CUR2_LINE, LEGACY_LINE, bill, csv_text, legacy_export, packed, parquet, stored, write
from support.ledgers import ask, lazy_warehouse
from support.spoiled import run_events

MONTH = "2026-07"
COST = "lineItem/UnblendedCost"
LEGACY_NAMES = {name: value for name, value in CUR2_LINE.items() if name != "bill_payer_account_name"}


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("partition", ["year=2026/month=7", "year=2026/month=07", "YEAR=2026/MONTH=7"])
def test_a_legacy_parquet_report_is_read_where_aws_puts_it(tmp_path: Path, partition: str, above: bool) -> None:
    """Pitfall 9. Manifest in <report>/20260701-20260801/, file in <report>/<report>/year=2026/month=7/ (facts 1.1)."""
    files = {"ml-cur-00001.snappy.parquet": parquet([LEGACY_NAMES] * 3)}
    root = legacy_export(tmp_path / "bucket", files, folder=f"ml-cur/{partition}")
    assert (root / "20260701-20260801/ml-cur-Manifest.json").is_file()
    (raw,) = stored(root.parent if above else root, tmp_path / "raw")
    assert (raw.delivery.kind, raw.delivery.billing_period, raw.line_count) == ("cur", MONTH, 3)
    assert raw.billed_total == 3 * Decimal("55.04")


def test_a_prefix_of_an_account_is_matched_by_the_export_below_it(tmp_path: Path) -> None:
    """Pitfall 9. The manifest has AccountId=..., the copy lies under accountid=...: its own folders count."""
    files = {"a-1.csv.gz": packed(csv_text([LEGACY_LINE]))}
    root = legacy_export(tmp_path / "accountid=000011112222", files, prefix="AccountId=000011112222")
    (raw,) = stored(root, tmp_path / "raw")
    assert raw.line_count == 1


@pytest.mark.parametrize("partition", ["billing_period=2026-07", "BILLING_PERIOD=2026-07", "Billing_Period=2026-07"])
def test_a_partition_is_one_however_it_is_spelled(tmp_path: Path, partition: str) -> None:
    """Pitfall 9. CUR 2.0 writes it in capitals, FOCUS does not."""
    name = f"s3://b/p/x/data/{partition}/20260801T000000Z-e/x-1.csv.gz"
    write(
        tmp_path / "x",
        {
            f"metadata/{partition}/x-Manifest.json": f'{{"executionId": "e", "dataFiles": ["{name}"]}}',
            f"data/{partition}/20260801T000000Z-e/x-1.csv.gz": packed(csv_text([CUR2_LINE])),
            # An older execution that no manifest names.
            f"data/{partition}/20260731T000000Z-d/x-1.csv.gz": packed(csv_text([CUR2_LINE] * 5)),
        },
    )
    (raw,) = stored(tmp_path / "x", tmp_path / "raw")
    assert (raw.delivery.billing_period, raw.line_count) == (MONTH, 1)


def test_months_of_different_columns_are_one_bill(tmp_path: Path) -> None:
    """Facts 1.1: a legacy month leaves out columns without data. June knows no plans; July has them, sorted.

    June 55.04 as it is billed; July covered at 30.00 of its 55.04, negated: only the plan's rate is effective.
    """
    june = {name: value.replace("2026-07", "2026-06") for name, value in LEGACY_LINE.items()}
    covered = {
        **LEGACY_LINE,
        "lineItem/LineItemType": "SavingsPlanCoveredUsage",
        "savingsPlan/SavingsPlanEffectiveCost": "30.00",
        "savingsPlan/SavingsPlanARN": "arn:aws:savingsplans::1:savingsplan/sp-1",
        "pricing/publicOnDemandCost": "55.04",
    }
    negation = {**covered, "lineItem/LineItemType": "SavingsPlanNegation", COST: "-55.04"}
    ordered = [{name: line[name] for name in sorted(line, reverse=True)} for line in (covered, negation)]
    legacy_export(tmp_path, {"a.csv.gz": packed(csv_text([june]))}, month="20260601-20260701")
    root = legacy_export(tmp_path, {"a.csv.gz": packed(csv_text(ordered))})
    builder = lazy_warehouse(write_config(tmp_path, billing=root))
    by_month = "select strftime(billing_month, '%Y-%m'), {} from mart_cost_ledger_daily group by 1 order by 1"
    assert ask(builder, by_month.format("sum(effective_cost_usd), sum(billed_cost_usd)")).rows() == [
        ("2026-06", Decimal("55.04"), Decimal("55.04")),
        ("2026-07", Decimal("30"), Decimal(0)),
    ]


def test_a_column_delivered_twice_is_read_once_and_reported(tmp_path: Path) -> None:
    """Facts 1.1: headers that differ by case are one Athena name. Each line takes the first that is filled."""
    header, line = csv_text([LEGACY_LINE]).decode().splitlines()
    twice = f"{header},LineItem/UnblendedCost\n{line},1.00\n{line.replace('55.04', '')},2.00\n"
    root = legacy_export(tmp_path, {"a.csv": twice.encode()})
    (raw,) = stored(root, tmp_path / "raw")
    rows = bill([raw], "select line_item_unblended_cost from aws_cur_line_item order by source_row")
    assert rows == [(Decimal("55.04"),), (Decimal("2.00"),)]
    columns, dollars = raw.warnings
    assert "the columns lineItem/UnblendedCost and LineItem/UnblendedCost are one column" in columns
    assert "1 line bills 55.04 with another value in LineItem/UnblendedCost" in dollars


def test_cells_that_only_break_their_reader_are_missing_and_counted(tmp_path: Path) -> None:
    """Facts 1.3: in a csv a map is JSON text; here of brackets without end."""
    hostile = {**CUR2_LINE, "resource_tags": "[" * 50_000, "tags": '{"user_team": ' * 20_000}
    root = legacy_export(tmp_path, {"a.csv": csv_text([hostile])})
    (raw,) = stored(root, tmp_path / "raw")
    assert bill([raw], "select tag_team from aws_cur_line_item") == [(None,)]
    assert [warning.split(" of ")[1].split(" ")[0] for warning in raw.warnings] == ["resource_tags", "tags"]


def test_the_word_null_and_leading_zeros_stay_what_they_are(tmp_path: Path) -> None:
    """Pitfall 17. Account and invoice are text; the words tools write for nothing are nothing."""
    line = {**LEGACY_LINE, "bill/InvoiceId": "0001", "lineItem/ResourceId": "NULL", "lineItem/UsageAccountId": "007"}
    root = legacy_export(tmp_path, {"a.csv": csv_text([line, {**line, COST: "NULL"}])})
    builder = lazy_warehouse(write_config(tmp_path, billing=root))
    rows = ask(
        builder,
        "select payer_account_id, account_id, invoice_id, resource_id, sum(billed_cost_usd) "
        "from fct_ledger group by all",
    ).rows()
    assert rows == [("000011112222", "007", "0001", None, Decimal("55.04"))]
    (failing,) = builder.failing_rows("lines_without_a_cost_counted_as_zero")
    assert failing["line_without_cost_count"] == 1


def test_lines_of_another_month_stay_in_their_month_and_are_reported(tmp_path: Path) -> None:
    """A report of July that still holds a line of June's bill: each in its own month, and the stray one named."""
    june = {**LEGACY_LINE, COST: "7.00", "bill/BillingPeriodStartDate": "2026-06-01T00:00:00Z"}
    root = legacy_export(tmp_path, {"a.csv": csv_text([LEGACY_LINE, june])})
    builder = lazy_warehouse(write_config(tmp_path, billing=root))
    by_month = "select strftime(billing_month, '%Y-%m'), billed_cost_usd from mart_invoice_reconciliation_monthly"
    assert sorted(ask(builder, by_month).rows()) == [("2026-06", Decimal(7)), ("2026-07", Decimal("55.04"))]
    (failing,) = builder.failing_rows("line_of_another_month_in_this_delivery")
    assert (failing["billing_period"], Decimal(failing["billed_cost_usd"])) == (MONTH, Decimal(7))


def test_runs_of_every_month_of_a_file_without_a_manifest_have_their_cost(tmp_path: Path) -> None:
    """One csv of July and August: a run from 23:00 of 31 July takes an hour of each, 110.08, and none is missing."""
    hours = {at[:7]: [instance_hour(at, "i-1", "p5.48xlarge", "55.04")] for at in ("2026-07-31T23", "2026-08-01T00")}
    (tmp_path / "bill").mkdir()
    files = sorted(write_export(tmp_path / "whole", hours).rglob("*.csv.gz"))
    july, august = (gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True) for file in files)
    (tmp_path / "bill/quarter.csv").write_text("".join([*july, *august[1:]]).replace("line-0", "line-1", 1))
    run = one_attempt("r", ["i-1"], "p5.48xlarge", datetime(2026, 7, 31, 23), timedelta(hours=2))
    config = write_config(tmp_path, billing="bill", runs=write_events(tmp_path / "runs", run))
    config.write_text(config.read_text().replace('"payer"', '"payer"\nfiles = "*.csv"', 1))
    builder = lazy_warehouse(config)
    assert ask(builder, "select effective_cost_usd from mart_run_cost").rows() == [(Decimal("110.08"),)]
    assert ask(builder, "select * from detail_claim_gap_monthly").is_empty()


def test_an_unknown_hour_of_a_run_stops_no_bill(tmp_path: Path) -> None:
    """One line of three has no cost, and one a type that is on no list: the run's cost and hours are unknown.

    Its checkpoint of 10:30 and its tail cut it at other moments than its phases, so their known parts do not agree.
    """
    start, lasts = datetime(2026, 7, 1, 10), timedelta(hours=3)
    lines = [instance_hour(f"{MONTH}-01T{hour}", "i-1", "p5.48xlarge", "55.04") for hour in (10, 11)]
    lines[1]["line_item_unblended_cost"] = ""
    lines.append(instance_hour(f"{MONTH}-01T12", "i-1", "p99.48xlarge", "55.04"))
    at = {"checkpoint": "2026-07-01T10:30:00Z", "phase": "2026-07-01T10:15:00Z"}
    inside = [
        {"event": "phase_started", "phase": "train", "at": at["phase"]},
        {"event": "checkpoint_saved", "at": at["checkpoint"], "step": 1, "uri": "s3://models/r"},
    ]
    run = one_attempt("r", ["i-1"], "p5.48xlarge", start, lasts, inside)
    write_export(tmp_path, {MONTH: lines})
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs=write_events(tmp_path / "runs", run)))
    assert ask(builder, "select count(*) from fct_interval_cost where effective_cost_usd is null").rows() == [(2,)]
    assert ask(builder, "select accelerator_hours, effective_cost_usd from mart_run_cost").rows() == [(None, None)]
    (failing,) = builder.failing_rows("accelerator_hours_of_listed_types_are_unknown")
    assert failing["run_id"] == "r"


@pytest.mark.parametrize("until", ["2026-07-02", "2026-08-01"])
def test_a_day_is_not_taken_for_its_hours(tmp_path: Path, until: str) -> None:
    """Facts 4.3. A node billed by the day or month at 24 x 55.04 = 1320.96: no run gets any; a warning has dollars."""
    daily = instance_hour(f"{MONTH}-01T00", "i-1", "p5.48xlarge", "55.04", "24")
    daily["line_item_usage_end_date"] = f"{until}T00:00:00.000Z"
    krone = {**daily, "line_item_resource_id": "i-2", "line_item_currency_code": "NOK"}
    hourly = instance_hour(f"{MONTH}-01T00", "i-3", "p5.48xlarge", "55.04")
    write_export(tmp_path, {MONTH: [daily, krone, hourly]})
    write_events(tmp_path / "runs", run_events())
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs="runs"))
    assert ask(builder, "select effective_cost_usd from mart_run_cost").rows() == [(None,)]
    failing = builder.failing_rows("accelerator_time_billed_by_the_day_or_month_stays_unattributed")
    assert {row["billing_currency"]: Decimal(row["unresolved_cost_usd"]) for row in failing} == {
        "NOK": Decimal("1320.96"),
        "USD": Decimal("1320.96"),
    }


def test_a_line_without_a_service_stops_no_bill(tmp_path: Path) -> None:
    """AWS fills the product code of every row in practice (facts 1.3); the other tables need none."""
    tax = {"line_item_line_item_type": "Tax", "line_item_product_code": "", "line_item_unblended_cost": "1.00"}
    export = write_export(tmp_path, {MONTH: [instance_hour(f"{MONTH}-01T10", "i-1", "p5.48xlarge", "55.04") | tax]})
    builder = lazy_warehouse(write_config(tmp_path, billing=export))
    rows = ask(
        builder, "select service, untaggable_cost_usd from detail_tag_coverage_monthly where tag = 'team'"
    ).rows()
    assert rows == [("", Decimal(1))]
