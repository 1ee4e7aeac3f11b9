"""`trainledger export focus`: the files, what they are made of, and what is refused."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from support.bills import instance_hour, write_config, write_export
from support.commands import run_command
from support.cur_exports import (
    CUR2_LINE,
    LEGACY_LINE,
    bill,
    csv_text,
    cur2_export,
    legacy_export,
    packed,
    parquet,
    stored,
)
from support.focus_exports import focus_export, normalized, write_focus_export
from support.focus_rules import COLUMNS, official_faults, violations
from support.lab import Lab
from support.ledgers import FOCUS_TABLES, ask, publish_tables
from support.rich_bill import LINES, PLAN
from support.small_company import AUGUST, GPU_COST, JULY, Company

from pipelines.base.console import Console
from pipelines.base.errors import SourceError, UsageError
from pipelines.config.settings import load_settings
from pipelines.exports.focus import OTHERS, export_focus
from pipelines.ingest.billing.columns import FOCUS
from pipelines.models.build import Builder

FILES = ("cost_and_usage.csv", "cost_and_usage.parquet")
# What FOCUS has no column for (docs/focus-export.md).
OURS = {
    f"x_{name}"
    for name in (
        "AmortizedCost",
        "BillingEntity",
        "Discounts",
        "LineItemType",
        "ListCost",
        "Operation",
        "PricingUnit",
        "ProductCode",
        "ServiceCode",
        "UsageType",
    )
}


def export(config: Path, out: Path, month: str | None = None, version: str = "1.2") -> Path:
    export_focus(load_settings(config), month, out, Console(), version)
    return out / f"focus-{version}"


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def exported(built_company: Company, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(built_company.config, tmp_path_factory.mktemp("out"))


def test_every_delivered_month_is_a_folder_of_two_conformant_files(exported: Path) -> None:
    folders = sorted(folder.name for folder in exported.iterdir())
    assert folders == [f"billing_period={JULY}", f"billing_period={AUGUST}"]
    for folder in exported.iterdir():
        assert sorted(file.name for file in folder.iterdir()) == list(FILES)
        for name in FILES:
            assert violations(folder / name) == {}


def test_both_files_hold_the_57_columns_by_name_and_type(exported: Path) -> None:
    folder = exported / f"billing_period={JULY}"
    schema = pq.read_schema(folder / FILES[1])
    kinds = {"D": "double", "T": "timestamp[us, tz=UTC]", "S": "string", "J": "string"}
    assert {name: str(schema.field(name).type) for name in COLUMNS} == {
        name: kinds[kind[0]] for name, kind in COLUMNS.items()
    }
    assert len(COLUMNS) == 57
    assert {name for name in schema.names if name not in COLUMNS} == OURS
    assert list(rows(folder / FILES[0])[0]) == schema.names


def test_the_csv_keeps_every_place_and_the_zone(exported: Path) -> None:
    charges = rows(exported / f"billing_period={JULY}" / FILES[0])
    # Two hours of a p5.48xlarge at 55.04 (the company's bill).
    assert sum(Decimal(charge["BilledCost"]) for charge in charges) == GPU_COST
    for name, kind in COLUMNS.items():
        for charge in charges:
            if charge[name] and kind[0] == "T":
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", charge[name])
            if charge[name] and kind[0] == "D":
                assert re.fullmatch(r"-?\d+(\.\d+)?(E[+-]?\d+)?", charge[name])
    assert charges[0]["BillingPeriodEnd"] == "2026-08-01T00:00:00Z"


def test_billed_cost_is_the_invoice_line_for_line_summed(tmp_path: Path) -> None:
    plan = {"savings_plan_savings_plan_a_r_n": "arn:aws:savingsplans::1:savingsplan/sp-1"}
    hour = instance_hour("2026-07-14T10", "i-0a", "p5.48xlarge", "55.04")
    lines = [
        hour | {"bill_invoice_id": "INV-2"},
        hour | plan | {"line_item_line_item_type": "SavingsPlanCoveredUsage", "line_item_resource_id": "i-0c",
                       "savings_plan_savings_plan_effective_cost": "30"},
        hour | plan | {"line_item_line_item_type": "SavingsPlanNegation", "line_item_unblended_cost": "-55.04"},
        # Its negation is yet to come: the open bill shows the on-demand cost, and so does the dataset.
        hour | plan | {"line_item_line_item_type": "SavingsPlanCoveredUsage", "bill_invoice_id": "",
                       "line_item_resource_id": "i-0b"},
        hour | {"line_item_line_item_type": "Tax", "line_item_unblended_cost": "0.0000000001"},
    ]  # fmt: skip
    config = write_config(tmp_path, billing=write_export(tmp_path, {JULY: lines}))
    publish_tables(config, FOCUS_TABLES)
    charges = rows(export(config, tmp_path / "out") / f"billing_period={JULY}" / FILES[0])
    invoiced: dict[str, Decimal] = defaultdict(Decimal)
    for charge in charges:
        invoiced[charge["InvoiceId"]] += Decimal(charge["BilledCost"])
    assert invoiced == {"INV-1": Decimal("0.0000000001"), "INV-2": Decimal("55.04"), "": Decimal("55.04")}


def test_a_month_without_an_invoice_is_open_though_a_reservation_paid_it(tmp_path: Path) -> None:
    """An hour under an All Upfront reservation is billed at 0 and on no invoice yet: the month's status is open."""
    covered = {"line_item_line_item_type": "DiscountedUsage", "line_item_unblended_cost": "0", "bill_invoice_id": "",
               "reservation_effective_cost": "30"}  # fmt: skip
    lines = [instance_hour("2026-07-14T10", "i-0a", "p5.48xlarge", "55.04") | covered]
    config = write_config(tmp_path, billing=write_export(tmp_path, {JULY: lines}))
    publish_tables(config, [*FOCUS_TABLES, *OTHERS.values()])
    folder = export(config, tmp_path / "out", version="1.4") / f"billing_period={JULY}"
    assert [row["BillingPeriodStatus"] for row in rows(folder / "billing_period.csv")] == ["Open"]


def test_exporting_again_gives_the_same_bytes_and_leaves_nothing_else(exported: Path, built_company: Company) -> None:
    before = {file: file.read_bytes() for file in exported.rglob("*") if file.is_file()}
    export(built_company.config, exported.parent)
    assert {file: file.read_bytes() for file in exported.rglob("*") if file.is_file()} == before


def test_the_published_delivery_is_exported_while_a_newer_one_waits(built_company: Company, tmp_path: Path) -> None:
    company = built_company.copy(tmp_path)
    company.deliver(JULY, "99")
    charges = rows(export(company.config, tmp_path / "out", JULY) / f"billing_period={JULY}" / FILES[0])
    assert sum(Decimal(charge["BilledCost"]) for charge in charges) == GPU_COST


def test_what_cannot_be_exported_is_refused_in_a_sentence(built_company: Company, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--month 2020-01 is not published; give one of 2026-07, 2026-08"):
        export(built_company.config, tmp_path, "2020-01")
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="file is a file; choose a folder with --out"):
            export(built_company.config, out)
    unpublished = write_config(tmp_path, billing=built_company.export)
    with pytest.raises(UsageError, match="holds no publication yet; run `trainledger build` first"):
        export(unpublished, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_month_whose_lines_are_gone_is_refused(built_company: Company, tmp_path: Path) -> None:
    company = built_company.copy(tmp_path)
    company.deliver(JULY, "99")
    for record in company.warehouse.glob(f"raw/*/{JULY}/*/delivery.json"):
        record.unlink()
    with pytest.raises(SourceError, match="has replaced it; run `trainledger build` and try again"):
        export(company.config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# Keys as FOCUS has them: a user's as it was written, AWS's after `aws:` (facts aws-billing 1.3 and 1.4).
WRITTEN = {"RunId": 'r "42"\\', "aws:createdBy": "root"}


def test_tags_of_a_legacy_csv_keep_their_keys(tmp_path: Path) -> None:
    tags = {
        "resourceTags/user:RunId": WRITTEN["RunId"],
        "resourceTags/aws:createdBy": "root",
        "resourceTags/user:Empty": "",
    }
    raw = stored(legacy_export(tmp_path, {"a.csv.gz": packed(csv_text([LEGACY_LINE | tags]))}), tmp_path / "raw")
    assert tag_objects(raw) == [WRITTEN]


def test_tags_of_two_maps_are_taken_once_from_the_one_that_keeps_the_key(tmp_path: Path) -> None:
    lines = [
        CUR2_LINE
        | {
            "resource_tags": {"user_run_id": WRITTEN["RunId"], "aws_created_by": "root", "user_only_here": "x"},
            "tags": {"resourceTags/RunId": WRITTEN["RunId"], "resourceTags/aws:createdBy": "root",
                     "accountTag/team": "nlp", "costCategory/Team": "rule"},
        },
        CUR2_LINE | {"resource_tags": {}, "tags": {}},
    ]  # fmt: skip
    raw = stored(cur2_export(tmp_path, {"a.parquet": parquet(lines)}), tmp_path / "raw")
    assert tag_objects(raw) == [WRITTEN | {"only_here": "x", "accountTag/team": "nlp"}, None]


def tag_objects(raw: list) -> list[dict[str, str] | None]:
    found = bill(raw, "select tag_json from aws_cur_line_item")
    return [text and json.loads(text) for (text,) in found]


def test_the_command_shows_what_a_month_comes_to(
    built_company: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("export", "focus", "--config", str(built_company.config), "--month", JULY, "--out", str(tmp_path))
    done = run_command(capsys, *command)
    sentence = "2 charges  BilledCost 110.08 USD  EffectiveCost 110.08 USD, credits taken off"
    assert f"{JULY}             {sentence}" in done.out
    assert "[1/1] focus 2026-07" in done.err
    assert duckdb.read_parquet(str(tmp_path / "focus-1.2" / f"billing_period={JULY}" / FILES[1])).shape[0] == 2


def test_the_effective_cost_it_shows_is_after_credits_and_ours_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An hour at 55.04 and a credit of -7: our effective cost is 55.04, FOCUS's 55.04 - 7.00 = 48.04.

    Another payer's only charge, in krone, has its own line, and is none of the two in dollars.
    """
    hour = instance_hour(f"{JULY}-14T10", "i-0a", "p5.48xlarge", "55.04")
    credit = hour | {
        "line_item_line_item_type": "Credit",
        "line_item_unblended_cost": "-7.00",
        "pricing_public_on_demand_cost": "",
    }
    payer = {"bill_payer_account_id": "999900001111", "bill_invoice_id": "INV-2"}
    krone = hour | payer | {"line_item_resource_id": "i-0b", "line_item_currency_code": "NOK"}
    config = write_config(tmp_path, billing=write_export(tmp_path, {JULY: [hour, credit, krone]}))
    builder = publish_tables(config, [*FOCUS_TABLES, "mart_cost_ledger_daily"])
    own = "select sum(effective_cost_usd) from mart_cost_ledger_daily where billing_currency = 'USD'"
    assert ask(builder, own).item() == Decimal("55.04")
    export(config, tmp_path / "out")
    shown = capsys.readouterr().out
    assert "2 charges  BilledCost 48.04 USD  EffectiveCost 48.04 USD, credits taken off" in shown
    assert "1 charges  BilledCost 55.04 NOK" in shown


def test_what_came_as_focus_leaves_as_it_came(built_company: Company, exported: Path, tmp_path: Path) -> None:
    """Out, in and out again: the same charges, so nothing is read or written in two ways."""
    first = rows(exported / f"billing_period={JULY}" / FILES[0])
    content = {"a.csv.gz": packed((exported / f"billing_period={JULY}" / FILES[0]).read_bytes())}
    config = write_config(tmp_path, billing=focus_export(tmp_path, content, list(first[0]), month=JULY))
    publish_tables(config, FOCUS_TABLES)
    again = export(config, tmp_path / "out") / f"billing_period={JULY}"
    for name in FILES:
        assert violations(again / name) == {}
    second = rows(again / FILES[0])
    assert sorted(map(str, second)) == sorted(map(str, first))


# Figures of the marts that any kind of export of a bill must give; list cost too, where it is known.
FIGURES = {
    "fct_ledger": "select bucket, service, charge_category, billing_entity, invoice_issuer, invoice_id, "
    "sum(billed_cost_usd), sum(effective_cost_usd), sum(list_cost_usd) "
    "from fct_ledger group by all order by all",
    "mart_cost_summary_monthly": "select * from mart_cost_summary_monthly order by all",
    "mart_team_cost_monthly": "select * from mart_team_cost_monthly order by all",
    "mart_invoice_reconciliation_monthly": "select invoice_id, billing_entity, invoice_issuer, status, invoice_status, "
    "billed_cost_usd, ledger_cost_usd, effective_cost_usd, upfront_fee_usd, amortized_upfront_usd, credit_usd, "
    "invoiced_cost_usd, invoice_difference_usd from mart_invoice_reconciliation_monthly order by all",
    "mart_commitment_utilization_monthly": "select commitment_id, commitment_kind, instance_family, covered_hours, "
    "case when commitment_kind = 'reserved_instance' then region_id end from mart_commitment_utilization_monthly "
    "order by all",
    "stg_aws__commitment": "select commitment_discount_id, commitment_kind, payment_option, purchase_term, "
    "started_at, ended_at, commitment_per_hour_usd, currency from stg_aws__commitment",
}
TERM = {
    "savings_plan_start_time": "2026-01-01T00:00:00.000Z",
    "savings_plan_end_time": "2026-12-31T23:59:59.000Z",
    "savings_plan_payment_option": "All Upfront",
    "savings_plan_region": "us-west-2",
}
TEAM = {"resource_tags": '{"user_team": "nlp", "user_run_id": "r-1"}'}


def sources(invoices: Path, commitments: Path) -> str:
    return (
        f'\n[[invoices]]\nname = "invoices"\nlocation = "{invoices}"\n'
        f'\n[[commitments]]\nname = "bought"\nlocation = "{commitments}"\n'
    )


@pytest.fixture(scope="module")
def trip(tmp_path_factory: pytest.TempPathFactory) -> tuple[Builder, Path]:
    """A bill with a line of every kind, its invoice and its plan, built and exported as FOCUS 1.4."""
    root = tmp_path_factory.mktemp("trip")
    # All lines of INV-1 as billed: their sum to the cent, by hand from the amounts of the lines.
    (root / "invoices.csv").write_text("invoice_id,currency,total,tax\nINV-1,USD,10378.24,12.50\n")
    arn = next(line["savings_plan_savings_plan_a_r_n"] for line in LINES if "savings_plan_savings_plan_a_r_n" in line)
    plan = {
        "savingsPlanArn": arn, "savingsPlanType": "Compute", "region": "us-west-2", "commitment": "1",
        "start": "2026-01-01T00:00:00.000Z", "end": "2026-12-31T23:59:59.000Z", "paymentOption": "All Upfront",
        "currency": "USD", "termDurationInSeconds": 31536000, "state": "active",
    }  # fmt: skip
    (root / "plans.json").write_text(json.dumps({"savingsPlans": [plan]}))
    lines = [
        line | (TERM if line["line_item_line_item_type"] == "SavingsPlanRecurringFee" else {}) | TEAM for line in LINES
    ]
    config = write_config(root, billing=write_export(root, {JULY: lines}))
    config.write_text(config.read_text() + sources(root / "invoices.csv", root / "plans.json"))
    builder = publish_tables(config, [*FOCUS_TABLES, *OTHERS.values(), *FIGURES])
    return builder, export(config, root / "out", version="1.4") / f"billing_period={JULY}"


def test_1_4_is_four_datasets_of_the_official_columns(trip: tuple[Builder, Path], shared_data: Path) -> None:
    folder = trip[1]
    names = {"billing_period", "contract_commitment", "cost_and_usage", "invoice_detail"}
    assert {file.stem for file in folder.iterdir()} == names
    for name in names:
        found = rows(folder / f"{name}.csv")
        assert found
        assert official_faults(shared_data, name, found) == []
    (period,) = rows(folder / "billing_period.csv")
    assert (period["BillingPeriodStatus"], period["InvoiceIssuerName"]) == ("Closed", "Amazon Web Services, Inc.")
    (plan,) = rows(folder / "contract_commitment.csv")
    # 1.00 an hour for the 8760 hours of 2026.
    assert Decimal(plan["ContractCommitmentCost"]) == 8760
    assert plan["ContractCommitmentPaymentModel"] == "All Upfront"
    invoiced = {row["InvoiceDetailId"]: Decimal(row["BilledCost"]) for row in rows(folder / "invoice_detail.csv")}
    assert invoiced == {"before tax": Decimal("10365.74"), "Tax": Decimal("12.50")}


def test_the_export_reads_back_to_the_same_figures(trip: tuple[Builder, Path], tmp_path: Path) -> None:
    """Every kind of line, to the last digit: the seller on the Marketplace, tags, unknown list costs, the invoice."""
    builder, folder = trip
    charges = folder / "cost_and_usage.csv"
    bill = focus_export(tmp_path, {"a.csv.gz": packed(charges.read_bytes())}, list(rows(charges)[0]), month=JULY)
    config = write_config(tmp_path, billing=bill)
    config.write_text(
        config.read_text() + sources(folder / "invoice_detail.parquet", folder / "contract_commitment.csv")
    )
    again = publish_tables(config, list(FIGURES))
    for table, sql in FIGURES.items():
        assert ask(again, sql).rows() == ask(builder, sql).rows(), table


def both_ways(lines: list[dict[str, str]], *questions: tuple[str, str]) -> list[list[tuple]]:
    """The answers of the questions (columns, table) from the bill and from its export, which are the same."""

    def answers(lab: Lab) -> list[list[tuple]]:
        return [lab.ask(f"select {what} from {table} group by all order by all", table) for what, table in questions]

    names = [*COLUMNS, *sorted(OURS)]
    charges = "stg_aws__focus_charge"
    with Lab({JULY: lines}, {}) as lab:
        first = answers(lab)
        rows = lab.ask(f"select {', '.join(names)} from {charges}", charges)
    lines = [{name: str(value) for name, value in zip(names, row, strict=True) if value is not None} for row in rows]
    for line in lines:
        line["SkuInstanceType"] = json.loads(line.get("SkuPriceDetails", "{}")).get("InstanceType", "")
    with Lab({JULY: normalized(lines)}, {}, listed=FOCUS) as lab:
        assert answers(lab) == first
    return first


def charge(charge_type: str, cost: str, **more: str) -> dict[str, str]:
    """A line of an hour of July, as a row of the normalized bill."""
    return {
        "bill_invoicing_entity": "AWS",
        "line_item_line_item_type": charge_type,
        "line_item_unblended_cost": cost,
        "line_item_usage_amount": "1",
        "line_item_usage_end_date": "2026-07-14 11:00:00",
        "line_item_usage_start_date": "2026-07-14 10:00:00",
        "line_item_usage_type": "USW2-BoxUsage:p5.48xlarge",
        **more,
    }


def test_costs_before_negotiated_discounts_read_back() -> None:
    """A plan of 40.00 an hour, 30.00 of it used for an hour that lists at 55.04, under a discount of 10 %.

    Billed 40.00 and 27.00 + 9.00 effective: 4.00 is the discount, and no fee lacks its use.
    """
    plan = {"savings_plan_savings_plan_a_r_n": PLAN}
    net = "line_item_net_unblended_cost"
    covered = charge(
        "SavingsPlanCoveredUsage", "55.04", pricing_public_on_demand_cost="55.04", line_item_resource_id="i-0a",
        savings_plan_savings_plan_effective_cost="30", savings_plan_net_savings_plan_effective_cost="27",
        **{net: "55.04"}, **plan,
    )  # fmt: skip
    fee = charge(
        "SavingsPlanRecurringFee", "40", line_item_product_code="ComputeSavingsPlans", line_item_usage_type="SP:1yr",
        savings_plan_total_commitment_to_date="40", savings_plan_used_commitment="30", **{net: "36"}, **plan,
    )  # fmt: skip
    lines = [covered, charge("SavingsPlanNegation", "-55.04", **{net: "-55.04"}, **plan), fee]
    used, rate, invoice = both_ways(
        lines,
        (
            "commitment_cost_usd, used_cost_usd, unused_cost_usd, net_savings_usd, unallocated_fee_usd",
            "mart_commitment_utilization_monthly",
        ),
        (
            "usage_cost_usd, unused_cost_usd, effective_savings_rate_ratio, savings_scope",
            "mart_effective_savings_rate_monthly",
        ),
        ("commitment_timing_usd, netted_discount_usd", "mart_invoice_reconciliation_monthly"),
    )
    assert [float(figure) for figure in used[0]] == [40, 30, 10, 15.04, 0]
    assert (Decimal(30), Decimal(10)) in [row[:2] for row in rate]
    assert invoice == [(Decimal(0), Decimal(4))]


def test_an_all_upfront_plan_that_was_used_whole_reads_back() -> None:
    """Its hour of 30.00 is billed at nothing and leaves nothing unused; without its fee its cost would be unknown."""
    plan = {"savings_plan_savings_plan_a_r_n": PLAN}
    rate = {"savings_plan_savings_plan_effective_cost": "30", "pricing_public_on_demand_cost": "55.04"}
    hour = {"savings_plan_total_commitment_to_date": "30", "savings_plan_used_commitment": "30"}
    lines = [
        charge("SavingsPlanCoveredUsage", "55.04", line_item_resource_id="i-0a", **rate, **plan),
        charge("SavingsPlanNegation", "-55.04", **plan),
        charge("SavingsPlanRecurringFee", "0", line_item_product_code="ComputeSavingsPlans", **hour, **plan),
    ]
    used = ("commitment_cost_usd, used_cost_usd, unused_cost_usd", "mart_commitment_utilization_monthly")
    assert both_ways(lines, used) == [[(Decimal(30), Decimal(30), Decimal(0))]]


def test_refunds_and_discounts_read_back_as_what_they_are() -> None:
    """A discount of a type that no list of AWS's has, -1.10, and the refund of a plan's upfront fee, -100.00."""
    refund = {"line_item_line_item_description": "Refund for one-time fee for Savings Plan ID: sp-1"}
    lines = [
        charge("SppDiscount", "-1.10"),
        charge("Refund", "-100", line_item_product_code="ComputeSavingsPlans", **refund),
    ]
    charges, invoice = both_ways(
        lines,
        ("charge_category, effective_rule, charge_description, effective_cost_usd", "fct_charge"),
        (
            "discount_usd, neutralised_refund_usd, netted_discount_usd, upfront_fee_usd",
            "mart_invoice_reconciliation_monthly",
        ),
    )
    assert [row[:2] for row in charges] == [("Discount", "discount"), ("Refund", "refund")]
    # The discount counts as billed, so nothing of it stands between the bases.
    assert invoice == [(Decimal(0), Decimal(-100), Decimal(0), Decimal(0))]


def test_a_capacity_block_under_a_discount_reads_back_at_what_it_costs() -> None:
    """A block for 100.00, of which a discount of 10 % takes 10.00 on a line of its own: 90.00 effective and billed."""
    block = {
        "line_item_usage_type": "USW2-CapacityBlockFee:p5.48xlarge",
        "reservation_reservation_a_r_n": "arn:aws:ec2:us-west-2:000033334444:capacity-reservation/cr-0b10c5",
    }
    lines = [
        charge("Fee", "100", line_item_net_unblended_cost="90", **block),
        charge("EdpDiscount", "-10", line_item_net_unblended_cost="0", **block),
    ]
    costs = "bucket, charge_category, sum(effective_cost_usd), sum(billed_cost_usd)"
    ledger, _ = both_ways(lines, (costs, "fct_ledger"), ("newest_usage_at", "stg_aws__invoice_total"))
    # No hours of it are on the bill, so the fee is unused; the discount is inside its net cost.
    assert ledger == [
        ("capacity_unused", "Purchase", Decimal(90), Decimal(100)),
        ("other", "Discount", Decimal(0), Decimal(-10)),
    ]


def test_a_model_of_the_marketplace_reads_back_by_its_name() -> None:
    """Two million tokens of a model that another sells under the product code of Amazon Bedrock, 6.00."""
    model = charge(
        "Usage", "6", line_item_product_code="AmazonBedrock", bill_billing_entity="AWS Marketplace",
        pricing_unit="Units",
        product_product_name="Claude Opus 4 (Amazon Bedrock Edition)", pricing_public_on_demand_cost="6",
        line_item_line_item_description="AWS Marketplace software usage|us-west-2|Million Input Tokens",
        line_item_usage_type="USW2-MP:USW2_InputTokenCount-Units", line_item_usage_amount="2",
    )  # fmt: skip
    (cost,) = both_ways([model], ("model, input_tokens, effective_cost_usd", "mart_inference_cost_daily"))
    assert cost == [("Claude Opus 4", Decimal(2_000_000), Decimal(6))]


def test_an_instance_type_reads_back_without_its_purpose() -> None:
    """SageMaker adds what the instance is for; the hour is one of 16 Trainium chips on a machine of that type."""
    job = charge(
        "Usage", "15", line_item_product_code="AmazonSageMaker", product_instance_type="ml.trn1.32xlarge-Training",
        line_item_usage_type="USW2-Train:ml.trn1.32xlarge",
        line_item_resource_id="arn:aws:sagemaker:us-west-2:1:training-job/j",
    )  # fmt: skip
    what = "instance_type, accelerator_family, accelerator_count"
    (hour,) = both_ways([job], (what, "stg_aws__line_item"))
    assert hour == [("ml.trn1.32xlarge", "trainium", 16)]


@pytest.mark.slow
def test_lines_of_focus_1_0_leave_conformant(tmp_path: Path) -> None:
    """1.0 has no invoice ids, subcategories, meters and quantities of commitments (facts aws-billing 1.4)."""
    times = {
        "ChargePeriodStart": "2026-07-14T10:00:00Z",
        "ChargePeriodEnd": "2026-07-14T11:00:00Z",
        "InvoiceIssuerName": "AWS",
    }
    base = times | {
        "ConsumedQuantity": "1",
        "PricingQuantity": "1",
        "SkuMeter": "BoxUsage:m5.xlarge",
        "ResourceId": "i-1",
    }
    plan = {
        "CommitmentDiscountId": "arn:aws:savingsplans::1:savingsplan/sp-1",
        "CommitmentDiscountCategory": "Spend",
        "CommitmentDiscountType": "Savings Plan",
        "PricingCategory": "Committed",
        "CommitmentDiscountStatus": "Used",
    }
    lines = [
        base | {"BilledCost": "0.192", "EffectiveCost": "0.192", "ListCost": "0.192", "ContractedCost": "0.192"},
        base | plan | {"EffectiveCost": "0.14", "ListCost": "0.192", "ContractedCost": "0.192"},
        times | {"ChargeCategory": "Tax", "BilledCost": "0.02", "EffectiveCost": "0.02", "ListCost": "0.02",
                 "ContractedCost": "0.02", "PricingCategory": "", "PricingUnit": ""},
    ]  # fmt: skip
    config = write_config(tmp_path, billing=write_focus_export(tmp_path, {JULY: lines}, version="1.0"))
    publish_tables(config, FOCUS_TABLES)
    folder = export(config, tmp_path / "out") / f"billing_period={JULY}"
    for name in FILES:
        assert violations(folder / name) == {}
    quantities = {(row["CommitmentDiscountQuantity"], row["CommitmentDiscountUnit"]) for row in rows(folder / FILES[0])}
    # A plan is used in money: what it cost.
    assert quantities == {("", ""), ("0.1400000000", "USD")}
