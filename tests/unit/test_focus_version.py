"""FOCUS 1.0 to 1.4: versions of recorded files by their columns, who sells what, and what a later version adds."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from support.cur_exports import csv_text, stored
from support.focus_exports import focus_lines, normalized
from support.lab import Lab

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.columns import FOCUS, Delivered, focus_version, unknown_columns
from pipelines.ingest.billing.convert import refuse_origins

_NAMES = ("host_provider_name", "service_provider_name")


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("focus/focus_1.0_sample_1000.csv", "1.0"),
        ("focus13/fdt_aws_seed42/focus_1_2_cost_and_usage_aws.csv", "1.2"),
        ("focus13/fdt_aws_seed42/focus_1_3_cost_and_usage_aws.csv", "1.3"),
        ("focus13/consolidated_multi_provider_1_3.csv", "1.3"),
        ("focus14/fdt_aws_seed42/focus_1_4_cost_and_usage.csv", "1.4"),
    ],
)
def test_recorded_files_are_of_the_version_they_are_called(shared_data: Path, file: str, version: str) -> None:
    with (shared_data / "billing" / file).open(encoding="utf-8-sig", newline="") as lines:
        columns = next(csv.reader(lines))
    assert focus_version(columns) == version
    assert unknown_columns(columns) == []


def test_a_file_without_its_optional_columns_is_of_the_version_that_removed_what_it_lacks() -> None:
    assert focus_version(["BilledCost", "ServiceProviderName", "HostProviderName"]) == "1.4"
    assert focus_version(["billed_cost", "service_provider_name", "provider_name"]) == "1.3"


def test_columns_of_a_later_version_are_named() -> None:
    columns = ["BilledCost", "InvoiceDetailId", "ConsumerId", "x_Ours", "AllocatedServiceName"]
    assert unknown_columns(columns) == ["ConsumerId", "AllocatedServiceName"]


@pytest.mark.parametrize(
    ("service", "host", "entity"),
    [
        # The migration guidance of FOCUS (facts standards-2026 1.3), in its order.
        ("AWS", "AWS", "AWS"),
        ("Datadog", "AWS", "AWS Marketplace"),
        ("Amazon Web Services, Inc.", "", "AWS"),
        ("Microsoft", "Microsoft", "Microsoft"),
        # A tax has no host: its issuer shows that it is of the Marketplace.
        ("Datadog", None, "AWS Marketplace"),
    ],
)
def test_the_seller_is_found_by_the_new_columns(service: str, host: str | None, entity: str) -> None:
    line = {"BilledCost": "1", "HostProviderName": host or "", "ServiceProviderName": service, "ProviderName": ""}
    with Lab({"2026-07": normalized(focus_lines([line]))}, {}, listed=FOCUS) as lab:
        found = lab.ask("select billing_entity from stg_aws__invoice_total", "stg_aws__invoice_total")
    assert found == [(entity,)]


def test_files_of_1_3_and_1_4_are_read_by_the_new_names() -> None:
    """1.3 files carry the names that 1.4 removed too; the new ones count, and a tax without a host has its service."""
    lines = focus_lines([{"HostProviderName": "AWS", "ServiceProviderName": "Datadog"}])
    columns = tuple(Delivered(name, "any", "string") for name in lines[0])
    sources = FOCUS.layout(columns, "f.csv").sources
    named = {name: [columns[source.position].name for source in sources[name]] for name in _NAMES}
    assert named == {
        "host_provider_name": ["HostProviderName", "ProviderName"],
        "service_provider_name": ["ServiceProviderName", "PublisherName"],
    }


@pytest.mark.parametrize(
    ("metadata", "warning"),
    [
        ({"FocusVersion": "1.2"}, None),
        ({"Schema": {"FocusVersion": "1.2"}}, None),
        ({"SchemaId": "s-1"}, None),
        ({"Schema": {"FocusVersion": "1.4"}}, "is declared as FOCUS 1.4 and read as 1.2, by its columns. Check that"),
        ({"FocusVersion": "1.5"}, "is declared as FOCUS 1.5 and read as 1.2; versions after 1.4 are not known."),
    ],
)
def test_the_version_that_metadata_declare_is_compared(
    tmp_path: Path, metadata: dict[str, object], warning: str | None
) -> None:
    lines = focus_lines([{"BilledCost": "1", "EffectiveCost": "1", "ChargePeriodStart": "2026-07-14T10:00:00Z",
                          "ChargePeriodEnd": "2026-07-14T11:00:00Z"}])  # fmt: skip
    (tmp_path / "bill").mkdir()
    (tmp_path / "bill" / "focus.csv").write_bytes(csv_text(lines))
    (tmp_path / "bill" / "metadata.json").write_text(json.dumps(metadata))
    (raw,) = stored(tmp_path / "bill", tmp_path / "raw", files=("*.csv",))
    assert raw.focus_versions == {"1.2"}
    assert len(raw.warnings) == (warning is not None)
    assert all(warning in found for found in raw.warnings if warning)


def split(*rows: tuple[str | None, str]) -> pl.DataFrame:
    same = {"ResourceId": "i-1", "ChargePeriodStart": "2026-07-01", "SkuPriceId": "p", "SubAccountId": None}
    return pl.DataFrame([{**same, "AllocatedMethodId": method, "BilledCost": cost} for method, cost in rows])


def test_allocated_charges_stand_instead_of_their_origin(shared_data: Path, tmp_path: Path) -> None:
    """100.00 in thirds, the rest cent in the last (shared/data README), and another charge of the same resource."""
    thirds = [("even", "33.333333"), ("even", "33.333333"), ("even", "33.333334")]
    split(*thirds, (None, "7")).write_parquet(tmp_path / "parts.parquet")
    refuse_origins(tmp_path / "parts.parquet", "parts")
    split(*thirds, (None, "100.00")).write_parquet(tmp_path / "both.parquet")
    with pytest.raises(
        SourceError, match=r"both has charges of 100.00 \(1 of its lines\) next to the allocated charges"
    ):
        refuse_origins(tmp_path / "both.parquet", "both")
    recorded = shared_data / "billing" / "focus14" / "fdt_aws_seed42" / "focus_1_4_cost_and_usage.csv"
    pl.read_csv(recorded, infer_schema=False).write_parquet(tmp_path / "recorded.parquet")
    refuse_origins(tmp_path / "recorded.parquet", "recorded")


def test_a_bill_of_several_providers_is_totaled_by_each(shared_data: Path) -> None:
    """The recorded four lines (108.00 AWS, tax included, 100.00 Datadog on AWS, 100.00 EUR Azure) and three of ours."""
    with (shared_data / "billing/focus13/consolidated_multi_provider_1_3.csv").open(newline="") as file:
        recorded = [{**row, "x_ServiceCode": "", "SkuPriceDetails": ""} for row in csv.DictReader(file)]
    azure = {
        "BillingAccountId": "BA-2", "BillingCurrency": "EUR", "SubAccountId": "sub-2", "ServiceName": "Azure VM",
        "x_ServiceCode": "", "HostProviderName": "Microsoft Azure", "ServiceProviderName": "Microsoft Azure",
    }  # fmt: skip
    ours = [
        {**azure, "SkuInstanceType": "Standard_ND96isr_H100_v5", "BilledCost": "90.50", "EffectiveCost": "90.50"},
        {**azure, "SkuInstanceType": "Standard_ND96isr_R200_v9", "BilledCost": "0.25", "EffectiveCost": "0.25"},
        {"SkuMeter": "USW2-BoxUsage:p5.48xlarge", "ResourceId": "i-0a", "ConsumedQuantity": "1", "BilledCost": "55.04"},
    ]
    hour = {"ChargePeriodStart": "2026-05-10 00:00:00", "ChargePeriodEnd": "2026-05-10 01:00:00"}
    lines = focus_lines([*recorded, *({**line, **hour} for line in ours)], "2026-05")
    with Lab({"2026-05": normalized(lines)}, {}, listed=FOCUS) as lab:
        found = lab.ask(
            "select provider, payer_account_id, billing_currency, service, accelerator_family, sum(billed_cost_usd) "
            "from detail_charge_monthly group by 1, 2, 3, 4, 5 order by all",
            "detail_charge_monthly",
        )
        buckets = lab.ask("select distinct bucket from fct_charge where billing_currency = 'EUR'", "fct_charge")
    assert found == [
        ("AWS", "000011112222", "USD", "AmazonEC2", "gpu", Decimal("55.04")),
        ("AWS", "BA-1", "USD", "Amazon EC2", "none", Decimal(108)),
        ("AWS Marketplace", "BA-3", "USD", "Datadog APM", "none", Decimal(100)),
        ("Microsoft Azure", "BA-2", "EUR", "Azure VM", "gpu", Decimal("90.50")),
        # Neither a line without an instance type nor one of an unlisted type shows its family.
        ("Microsoft Azure", "BA-2", "EUR", "Azure VM", None, Decimal("100.25")),
    ]
    assert buckets == [("other",)]


def test_programs_that_a_bill_names_count_in_place_of_our_list() -> None:
    """The example of FOCUS 1.4 (facts standards-2026 1.5): uncovered 200, covered 150, support 50 without a program, so
    150 of 350 are covered. By our list an instance of EC2 is eligible and support is not; the bill decides otherwise.
    """
    box = {"SkuMeter": "BoxUsage:m5.large", "CommitmentDiscountId": ""}
    programs = '{"CommitmentPrograms": [{"ProgramType": "Compute Savings Plan"}]}'
    named = {"CommitmentProgramEligibilityDetails": programs}
    plan = {
        "CommitmentDiscountId": "arn:aws:savingsplans::1:savingsplan/sp-1",
        "CommitmentDiscountCategory": "Spend",
        "CommitmentDiscountStatus": "Used",
    }
    lines = [
        box | named | {"BilledCost": "200", "EffectiveCost": "200"},
        box | named | plan | {"EffectiveCost": "150"},
        box | {"BilledCost": "50", "EffectiveCost": "50"},
    ]
    model = "stg_aws__focus_line_item"
    sql = f"select commitment_eligibility, sum(effective_cost_usd) from {model} group by 1 order by 1"
    with Lab({"2026-07": normalized(focus_lines(lines))}, {}, listed=FOCUS) as lab:
        assert lab.ask(sql, model) == [("fargate", 350), ("no_program", 50)]
    # Where the bill names none at all, our list decides.
    silent = [{name: value for name, value in line.items() if name not in named} for line in lines]
    with Lab({"2026-07": normalized(focus_lines(silent))}, {}, listed=FOCUS) as lab:
        assert lab.ask(sql, model) == [("ec2_instance", 400)]
