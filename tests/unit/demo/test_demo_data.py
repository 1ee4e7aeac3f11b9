"""The generated demo bill must be as AWS would write it, whatever the pipeline makes of it."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.demo_bill import EXPORT, amortized, is_instance, read_month, total

from pipelines.config.settings import load_settings
from pipelines.demo import bucket
from pipelines.demo.write import write_demo


def test_manifest_is_that_of_data_exports(root, demo):
    manifest = json.loads((demo.export / "metadata/BILLING_PERIOD=2026-07/ml-cur2-Manifest.json").read_text())
    assert set(manifest) == {"executionId", "exportArn", "columns", "dataFiles", "additionalOutputFiles"}
    columns = {column["name"]: column["type"] for column in manifest["columns"]}
    file = pq.ParquetFile(root / EXPORT / manifest["dataFiles"][0].split("/ml-cur2/", 1)[1])
    kinds = {pa.string(): "string", pa.float64(): "double", pa.timestamp("ms"): "timestamp"}
    assert columns == {field.name: kinds.get(field.type, "map") for field in file.schema_arrow}
    assert columns["line_item_unblended_cost"] == "double"
    assert columns["line_item_unblended_rate"] == columns["reservation_total_reserved_units"] == "string"
    assert columns["resource_tags"] == columns["product"] == "map"


def test_july_was_delivered_twice_and_the_manifest_names_the_second(demo):
    folders = sorted(path.name for path in (demo.export / "data/BILLING_PERIOD=2026-07").iterdir())
    manifest = json.loads((demo.export / "metadata/BILLING_PERIOD=2026-07/ml-cur2-Manifest.json").read_text())
    assert len(folders) == 2
    assert all(f"/{folders[1]}/" in uri for uri in manifest["dataFiles"])
    assert folders[1].endswith(manifest["executionId"])
    assert len(list((demo.export / "data/BILLING_PERIOD=2026-06").iterdir())) == 1


def bytes_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def generated_once(monkeypatch):
    """What this test has generated for one file is the same when it is written again."""

    def remember(name, key):
        kept, plain = {}, getattr(bucket, name)

        def remembered(*about):
            if key(*about) not in kept:
                kept[key(*about)] = plain(*about)
            return kept[key(*about)]

        monkeypatch.setattr(bucket, name, remembered)

    remember("month_lines", lambda month, stays: month)
    remember("_data_file", lambda delivery, lines, offset: (delivery, offset))


@pytest.mark.usefixtures("generated_once")
def test_first_delivery_then_the_restatement_to_the_same_bytes(root, demo, bill, tmp_path):
    first = write_demo(tmp_path, restated=False)
    assert len(list((first.export / "data/BILLING_PERIOD=2026-07").iterdir())) == 1
    opened = read_month(tmp_path, "2026-07")
    assert {line["bill_invoice_id"] for line in opened} == {""}
    known = {line["line_item_usage_start_date"] for line in opened if is_instance(line)}
    assert max(known) == datetime(2026, 7, 31, 5)
    assert not {"Tax", "Credit", "Refund"} & {line["line_item_line_item_type"] for line in opened}
    assert total(opened, "line_item_unblended_cost") < total(bill["2026-07"], "line_item_unblended_cost")
    # The two new data files and the manifest; nothing else is touched, and then nothing at all.
    assert write_demo(tmp_path).files_written == 3
    assert write_demo(tmp_path).files_written == 0
    # As when it is written at once.
    assert bytes_of(tmp_path) == bytes_of(root)
    assert demo.files_written == len(bytes_of(root))


def test_configuration_is_read(demo):
    settings = load_settings(demo.config)
    assert settings.billing[0].location == str(demo.export.resolve())
    assert settings.runs[0].location == str(demo.events.resolve())


@pytest.mark.parametrize("month", ["2026-06", "2026-07"])
def test_lines_belong_to_their_month_and_invoice(bill, month):
    lines = bill[month]
    assert len({line["identity_line_item_id"] for line in lines}) == len(lines)
    assert {line["bill_payer_account_id"] for line in lines} == {"111122223333"}
    assert {f"{line['bill_billing_period_start_date']:%Y-%m}" for line in lines} == {month}
    invoices = {(line["bill_billing_entity"], line["bill_bill_type"]): line["bill_invoice_id"] for line in lines}
    assert all(invoices.values()) and len(set(invoices.values())) == len(invoices) == 3
    late = [line for line in lines if f"{line['line_item_usage_start_date']:%Y-%m}" != month]
    assert [line["line_item_line_item_type"] for line in late] == (["Refund"] if month == "2026-07" else [])


@pytest.mark.parametrize("month", ["2026-06", "2026-07"])
def test_unblended_and_amortized_tie(bill, month):
    lines = bill[month]
    upfront = total(lines, "reservation_amortized_upfront_fee_for_billing_period", "RIFee")
    spread = total(lines, "savings_plan_amortized_upfront_commitment_for_billing_period")
    bought = sum(
        line["line_item_unblended_cost"]
        for line in lines
        if line["line_item_line_item_type"] == "Fee"
        and line["reservation_reservation_a_r_n"]
        and "CapacityBlockFee" not in line["line_item_usage_type"]
    )
    assert bought == (990.0 if month == "2026-06" else 0.0)
    unblended = total(lines, "line_item_unblended_cost")
    assert unblended == pytest.approx(sum(map(amortized, lines)) - upfront - spread + bought, abs=1e-5)
    # Without the one purchase that was paid in part upfront, nothing is spread: the two are equal.
    rest = [line for line in lines if line["line_item_product_code"] != "AmazonRDS"]
    assert total(rest, "line_item_unblended_cost") == pytest.approx(sum(map(amortized, rest)), abs=1e-5)


@pytest.mark.parametrize("month", ["2026-06", "2026-07"])
def test_savings_plan_hours_add_up(bill, month):
    used: dict[datetime, float] = defaultdict(float)
    fees = {}
    for line in bill[month]:
        hour = line["line_item_usage_start_date"]
        if line["line_item_line_item_type"] == "SavingsPlanCoveredUsage":
            used[hour] += line["savings_plan_savings_plan_effective_cost"]
        if line["line_item_line_item_type"] == "SavingsPlanRecurringFee":
            fees[hour] = line
    assert len(fees) == (720 if month == "2026-06" else 744)
    for hour, fee in fees.items():
        assert fee["savings_plan_used_commitment"] == pytest.approx(used[hour], abs=1e-9)
        assert fee["savings_plan_used_commitment"] <= fee["savings_plan_total_commitment_to_date"] == 0.75
    assert 0 < sum(used.values()) < 0.75 * len(fees)
    covered = total(bill[month], "line_item_unblended_cost", "SavingsPlanCoveredUsage")
    negated = total(bill[month], "line_item_unblended_cost", "SavingsPlanNegation")
    assert covered > 0 and covered + negated == pytest.approx(0, abs=1e-6)


def test_pod_rows_repeat_the_shared_node_and_cost_nothing(bill):
    pods = [line for line in bill["2026-07"] if line["line_item_operation"] == "EKSPod-EC2"]
    parent, hours = pods[0]["split_line_item_parent_resource_id"], defaultdict(float)
    assert {line["split_line_item_parent_resource_id"] for line in pods} == {parent}
    assert total(pods, "line_item_unblended_cost") == 0
    for pod in pods:
        split = pod["split_line_item_split_cost"] + pod["split_line_item_unused_cost"]
        hours[pod["line_item_usage_start_date"]] += split
    for hour, split in hours.items():
        cost = sum(
            amortized(line)
            for line in bill["2026-07"]
            if is_instance(line)
            and (line["line_item_resource_id"], line["line_item_usage_start_date"]) == (parent, hour)
        )
        assert split == pytest.approx(cost, abs=1e-9)
