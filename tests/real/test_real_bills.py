"""Real bills through the whole pipeline, to the published marts.

Every expected figure is added up here from the delivered files by csv or pyarrow alone, each line to the bill's ten
places. Formulas of the effective cost are AWS's own (line item details), written down a second time.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.added_up import ZERO, Line, added, by_charge_type, csv_lines, exact, identity, reconciled
from support.cur_exports import legacy_export
from support.ledgers import ask, ask_published, build_warehouse, publish_tables

from pipelines.models.build import Builder
from pipelines.models.catalog import load_catalog
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import published_of

WORKSHOP = {
    "2018-10": "Oct2018-WorkshopCUR-00001.snappy.parquet",
    "2018-11": "Nov2018-WorkshopCUR-00001.snappy.parquet",
}


# Bills of which no run is recorded: the workshop's, koku's, Keboola's and one without a line, in one warehouse.


@pytest.fixture(scope="module")
def without_runs(billing: Path, tmp_path_factory: pytest.TempPathFactory) -> Builder:
    root = tmp_path_factory.mktemp("without-runs")
    for month, name in WORKSHOP.items():
        year, number = month.split("-")
        after = f"{year}{int(number) + 1:02d}01"
        folder = f"WorkshopCUR/year={year}/month={int(number)}"
        content = (billing / "cur_workshop_2018" / name).read_bytes()
        legacy_export(root, {name: content}, name="WorkshopCUR", month=f"{year}{number}01-{after}", folder=folder)
    empty = (billing / "cur_legacy/koku_empty_frame.csv").read_bytes()
    legacy_export(root, {"empty.csv": empty}, name="Nothing", month="20230601-20230701")
    places = {
        "workshop": root / "WorkshopCUR",
        "nothing": root / "Nothing",
        "koku": billing / "cur_legacy/koku_local_bucket/koku-local",
        "keboola": billing / "cur2_data_export/keboola_mock-cur-v2-bucket",
    }
    sources = "".join(f'\n[[billing]]\nname = "{name}"\nlocation = "{place}"\n' for name, place in places.items())
    (root / "trainledger.toml").write_text('[warehouse]\nlocation = "warehouse"\n' + sources)
    return build_warehouse(root / "trainledger.toml")


WORKSHOP_COLUMNS = (
    "line_item_line_item_type",
    "line_item_unblended_cost",
    "reservation_effective_cost",
    "reservation_unused_amortized_upfront_fee_for_billing_period",
    "reservation_unused_recurring_fee",
    "reservation_amortized_upfront_fee_for_billing_period",
    "reservation_unused_quantity",
    "reservation_total_reserved_units",
)


@pytest.fixture(scope="module")
def workshop(billing: Path) -> dict[str, list[Line]]:
    return {
        month: pq.read_table(billing / "cur_workshop_2018" / name, columns=list(WORKSHOP_COLUMNS)).to_pylist()
        for month, name in WORKSHOP.items()
    }


def billed(line: Line) -> Decimal:
    return exact(line["line_item_unblended_cost"])


def unused(line: Line) -> Decimal:
    """What a reservation's fee line states was paid for and not used."""
    return exact(line["reservation_unused_amortized_upfront_fee_for_billing_period"]) + exact(
        line["reservation_unused_recurring_fee"]
    )


def amortized(line: Line) -> Decimal:
    kind = line["line_item_line_item_type"]
    if kind == "DiscountedUsage":
        return exact(line["reservation_effective_cost"])
    return unused(line) if kind == "RIFee" else billed(line)


@pytest.mark.parametrize("month", WORKSHOP)
def test_workshop_by_line_item_type(without_runs: Builder, workshop: dict[str, list[Line]], month: str) -> None:
    expected = added(workshop[month], lambda line: line["line_item_line_item_type"], amortized, billed)
    assert by_charge_type(without_runs, month) == expected
    count, _, cost = (sum(column, start=ZERO) for column in zip(*expected.values(), strict=True))
    assert reconciled(without_runs)[month] == (count, cost, cost, ZERO)


def test_workshop_is_what_its_readme_states(without_runs: Builder) -> None:
    months = {month: sums for month, sums in reconciled(without_runs).items() if month in WORKSHOP}
    assert months == {
        "2018-10": (119_307, Decimal("4064.4831315379"), Decimal("4064.4831315379"), ZERO),
        "2018-11": (124_340, Decimal("3505.3269681268"), Decimal("3505.3269681268"), ZERO),
    }
    used = {month: by_charge_type(without_runs, month)["DiscountedUsage"] for month in WORKSHOP}
    fees = {month: by_charge_type(without_runs, month)["RIFee"] for month in WORKSHOP}
    cents = Decimal("0.01")
    assert [used[month][1].quantize(cents) for month in WORKSHOP] == [Decimal("232.25"), Decimal("231.40")]
    assert [used[month][2] for month in WORKSHOP] == [ZERO, ZERO]
    assert [fees[month][2].quantize(cents) for month in WORKSHOP] == [Decimal("149.78"), Decimal("147.38")]


@pytest.mark.parametrize("month", WORKSHOP)
def test_reservations_amortize_to_what_was_paid(
    without_runs: Builder, workshop: dict[str, list[Line]], month: str
) -> None:
    """Used and unused parts of the reservations sum to the month's fees and its part of what was paid upfront."""
    fees = [line for line in workshop[month] if line["line_item_line_item_type"] == "RIFee"]
    paid = sum(billed(line) + exact(line["reservation_amortized_upfront_fee_for_billing_period"]) for line in fees)
    found = by_charge_type(without_runs, month)
    # AWS rounds each of thousands of lines to ten places or fewer.
    assert abs(found["DiscountedUsage"][1] + found["RIFee"][1] - paid) < Decimal("0.005")
    ledger = ask_published(
        without_runs,
        "select sum(effective_cost_usd), sum(billed_cost_usd) from mart_cost_ledger_daily"
        f" where bucket = 'commitment_unused' and billing_month = date '{month}-01'",
    ).row(0)
    assert ledger == (sum(map(unused, fees)), sum(map(billed, fees)))


def test_unused_reservations_of_october(workshop: dict[str, list[Line]], without_runs: Builder) -> None:
    """26.66 of recurring fees bought nothing; one reservation was never used, at 22.32 and its part of 263 upfront."""
    fees = [line for line in workshop["2018-10"] if line["line_item_line_item_type"] == "RIFee"]
    recurring = sum(exact(line["reservation_unused_recurring_fee"]) for line in fees)
    assert recurring.quantize(Decimal("0.01")) == Decimal("26.66")
    (idle,) = (line for line in fees if exact(line["reservation_unused_quantity"]) == 744)
    assert exact(idle["reservation_total_reserved_units"]) == 744
    assert (billed(idle), unused(idle)) == (Decimal("22.32"), Decimal("22.32") + Decimal("22.3369863"))
    assert by_charge_type(without_runs, "2018-10")["RIFee"][1] == recurring + sum(
        exact(line["reservation_unused_amortized_upfront_fee_for_billing_period"]) for line in fees
    )


def test_koku_lines_of_three_months_in_one_folder(without_runs: Builder, billing: Path) -> None:
    (path,) = (billing / "cur_legacy/koku_local_bucket").rglob("*.csv.gz")
    expected = added(
        csv_lines(path),
        lambda line: line["bill/BillingPeriodStartDate"][:7],
        lambda line: exact(line["lineItem/UnblendedCost"]),
    )
    assert {month: count for month, (count, _) in expected.items()} == {
        "2018-06": 3300,
        "2018-07": 9304,
        "2018-08": 776,
    }
    found = reconciled(without_runs)
    assert {month: found[month] for month in expected} == {
        month: (count, cost, cost, ZERO) for month, (count, cost) in expected.items()
    }
    # They are kept as the month they are billed in, and reported.
    warned = [c for c in without_runs.lake.publications.newest().checks if not c["passed"] and c["period"] == "2018-08"]
    assert ("line_of_another_month_in_this_delivery", 2) in [(c["check"], c["unexpected_count"]) for c in warned]


def test_keboola_cur2(without_runs: Builder, billing: Path) -> None:
    lines = [line for path in billing.glob("cur2_data_export/keboola*/data/*/*.csv.gz") for line in csv_lines(path)]
    expected = added(
        lines,
        lambda line: (line["bill_payer_account_id"], line["bill_invoice_id"], line["line_item_product_code"]),
        lambda line: exact(line["line_item_unblended_cost"]),
    )
    found = ask(
        without_runs,
        "select payer_account_id, invoice_id, service, sum(billed_cost_usd) from fct_ledger"
        " where billing_month = date '2024-09-01' group by all",
    ).rows()
    assert {tuple(key): cost for *key, cost in found} == {key: cost for key, (_, cost) in expected.items()}
    assert reconciled(without_runs)["2024-09"][:2] == (4, Decimal("0.108304"))


def test_a_bill_without_a_line_and_a_company_without_a_run(without_runs: Builder) -> None:
    published = without_runs.lake.publications.newest()
    assert published and {d["billing_period"] for d in published.inputs["deliveries"]} >= {"2023-06"}
    assert "2023-06" not in reconciled(without_runs)
    with open_marts(without_runs.warehouse, published_of(without_runs.warehouse)) as marts:
        counts = {
            model.name: marts.query(f"select count(*) from {model.name}").item() for model in load_catalog().public
        }
    runless = ("mart_run_cost", "mart_epoch_cost", "mart_checkpoint_cost", "mart_silicon_comparison")
    assert {name: counts[name] for name in runless} == dict.fromkeys(runless, 0)
    assert counts["mart_cost_ledger_daily"] > 0


# The identities of facts aws-billing 2.4 on the same bills.


@pytest.mark.parametrize("month", WORKSHOP)
def test_workshop_amortized_leads_to_its_invoice(
    without_runs: Builder, workshop: dict[str, list[Line]], month: str
) -> None:
    """Identity 1: no upfront fee was billed in these months, part of earlier ones was amortized."""
    lines = workshop[month]
    upfront = sum(
        exact(line["reservation_amortized_upfront_fee_for_billing_period"])
        for line in lines
        if line["line_item_line_item_type"] == "RIFee"
    )
    bill, cost = sum(map(billed, lines)), sum(map(amortized, lines))
    assert identity(without_runs, 1, month) == ("holds", bill, cost - upfront)
    way = ask_published(
        without_runs,
        "select effective_cost_usd, upfront_fee_usd, amortized_upfront_usd, commitment_timing_usd, netted_discount_usd,"
        " status, billing_entity from mart_invoice_reconciliation_monthly"
        f" where billing_month = date '{month}-01'",
    ).rows()
    assert way == [(cost, ZERO, -upfront, bill - cost + upfront, ZERO, "reconciled", "AWS")]


def test_koku_usage_covered_without_a_negation_is_billed_as_written(billing: Path, tmp_path: Path) -> None:
    """Three covered lines of 10 at plan rate 0.1, final, with nothing to cancel them; its kroner are dollars here."""
    content = (billing / "cur_legacy/koku_2023-06-01.csv").read_bytes().replace(b"NOK", b"USD")
    place = legacy_export(tmp_path, {"day.csv": content}, name="day", month="20230601-20230701")
    text = f'[warehouse]\nlocation = "warehouse"\n\n[[billing]]\nname = "koku"\nlocation = "{place}"\n'
    (tmp_path / "trainledger.toml").write_text(text)
    tables = ["mart_invoice_reconciliation_monthly", "detail_bill_identity_monthly"]
    builder = publish_tables(tmp_path / "trainledger.toml", tables)
    rows = ask_published(
        builder, "select status, billed_cost_usd, effective_cost_usd from mart_invoice_reconciliation_monthly"
    ).rows()
    assert rows == [("reconciled", Decimal(30), Decimal("0.3"))]
    assert identity(builder, 3, "2023-06") == ("incomplete", Decimal(30), ZERO)
    assert identity(builder, 1, "2023-06")[0] == "incomplete"
