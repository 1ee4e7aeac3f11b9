"""Real FOCUS bills and the specification's own worked examples, to the published marts.

Expected figures are added up here from the files by csv and Decimal alone, or stand in the README of the shared data.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest
from support.cur_exports import packed, stored
from support.focus_exports import focus_export
from support.ledgers import ask, lazy_warehouse

from pipelines.base.errors import SourceError
from pipelines.models.build import Builder

Line = dict[str, str]
# What AWS delivers on every line (facts aws-billing 1.4) and the specification's partial examples leave out.
ALWAYS = {"BillingCurrency": "USD", "ServiceName": "Virtual Machines", "InvoiceId": "INV-1", "ProviderName": "AWS"}


def lines_of(path: Path) -> list[Line]:
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def exact(value: str) -> Decimal:
    """A number as the ledger keeps it, to ten places."""
    return Decimal(value).quantize(Decimal("1e-10"), ROUND_HALF_UP)


def total(lines: list[Line], key: Callable[[Line], str], column: str) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for line in lines:
        sums[key(line)] += exact(line[column])
    return dict(sums)


def configure(root: Path, sources: dict[str, Path]) -> Path:
    sections = "".join(f'\n[[billing]]\nname = "{name}"\nlocation = "{place}"\n' for name, place in sources.items())
    (root / "trainledger.toml").write_text('[warehouse]\nlocation = "warehouse"\n' + sections)
    return root / "trainledger.toml"


# A thousand anonymised lines of three clouds: no AWS columns, the word NULL, naive times, a column `Id` of its own.


@pytest.fixture(scope="module")
def sample_file(shared_data: Path) -> Path:
    return shared_data / "billing/focus/focus_1.0_sample_1000.csv"


@pytest.fixture(scope="module")
def lines(sample_file: Path) -> list[Line]:
    return lines_of(sample_file)


@pytest.fixture(scope="module")
def sample(sample_file: Path, lines: list[Line], tmp_path_factory: pytest.TempPathFactory) -> Builder:
    root = tmp_path_factory.mktemp("focus-sample")
    files = {"sample-00001.csv.gz": packed(sample_file.read_bytes())}
    return lazy_warehouse(configure(root, {"sample": focus_export(root, files, lines[0], month="2024-09")}))


def test_every_digit_of_the_sample_is_kept(sample_file: Path, lines: list[Line], tmp_path: Path) -> None:
    files = {"sample-00001.csv.gz": packed(sample_file.read_bytes())}
    (raw,) = stored(focus_export(tmp_path, files, lines[0], month="2024-09"), tmp_path / "raw")
    # Data README: 20.28022672899 of September and 0.24 of October.
    assert (raw.line_count, raw.billed_total) == (1000, Decimal("20.52022672899"))
    assert raw.warnings == []


def test_sample_ties_by_payer_and_month(sample: Builder, lines: list[Line]) -> None:
    expected: dict[tuple[str, str], list] = defaultdict(lambda: [0, Decimal(0)])
    for line in lines:
        found = expected[line["BillingAccountId"], line["BillingPeriodStart"][:7]]
        found[0] += 1
        found[1] += exact(line["BilledCost"])
    rows = ask(
        sample,
        "select payer_account_id, strftime(billing_month, '%Y-%m'), sum(line_count), sum(billed_cost_usd),"
        " sum(abs(difference_usd)), max(status) from mart_invoice_reconciliation_monthly group by all",
    ).rows()
    # 1.0 has no InvoiceId, so no line of it is known to be final.
    assert {(payer, month): [count, cost, *rest] for payer, month, count, cost, *rest in rows} == {
        key: [*sums, Decimal(0), "open"] for key, sums in expected.items()
    }
    months = [sum(cost for (_, month), (_, cost) in expected.items() if month == m) for m in ("2024-09", "2024-10")]
    assert [amount.quantize(Decimal("1e-8")) for amount in months] == [Decimal("20.28022673"), Decimal("0.24")]


def test_sample_by_charge_category(sample: Builder, lines: list[Line]) -> None:
    """Effective cost is what the file states (in whole dollars for AWS), less its one credit of -3."""
    rows = ask(
        sample, "select charge_category, sum(billed_cost_usd), sum(effective_cost_usd) from fct_ledger group by 1"
    ).rows()
    billed = total(lines, lambda line: line["ChargeCategory"], "BilledCost")
    effective = total(lines, lambda line: line["ChargeCategory"], "EffectiveCost")
    assert effective["Credit"] == -3
    assert {kind: tuple(sums) for kind, *sums in rows} == {
        kind: (billed[kind], Decimal(0) if kind == "Credit" else effective[kind]) for kind in billed
    }


def test_other_clouds_stay_in_sight_as_other(sample: Builder, lines: list[Line]) -> None:
    foreign = [line for line in lines if line["ProviderName"] != "AWS"]
    rows = ask(
        sample,
        "select bucket, service, sum(billed_cost_usd) from fct_ledger"
        " where payer_account_id <> '1234567890123' group by all",
    ).rows()
    assert {bucket for bucket, *_ in rows} == {"other"}
    assert {service: cost for _, service, cost in rows} == total(foreign, lambda x: x["ServiceName"], "BilledCost")


def test_list_cost_of_the_sample_is_that_of_its_usage(sample: Builder, lines: list[Line]) -> None:
    usage = [line for line in lines if line["ChargeCategory"] == "Usage"]
    with sample.open(["stg_aws__line_item"], "2024-09") as engine:
        found = engine.query("select sum(list_cost_usd), count(list_cost_usd) from stg_aws__line_item").row(0)
    assert found == (sum(exact(line["ListCost"]) for line in usage), len(usage))


def test_instances_of_the_sample_are_known_by_their_descriptions(sample: Builder, lines: list[Line]) -> None:
    """The sample has neither usage types nor meters; `per On Demand Linux t2.medium Instance Hour` is all there is."""
    aws = [line for line in lines if line["ProviderName"] == "AWS" and "Instance Hour" in line["ChargeDescription"]]
    running = [line for line in aws if line["ResourceId"].startswith("i-")]
    with sample.open(["stg_aws__line_item"], "2024-09") as engine:
        found = engine.query(
            "select instance_type, market, resource_id, usage_quantity from stg_aws__line_item"
            " where line_class = 'instance'"
        ).rows()
    assert sorted(found) == sorted(
        (
            next(word for word in line["ChargeDescription"].split() if "." in word and not word.startswith("$")),
            "savings_plan" if line["CommitmentDiscountStatus"] == "Used" else "on_demand",
            line["ResourceId"],
            exact(line["ConsumedQuantity"]),
        )
        for line in running
    )


def test_sample_by_provider(sample: Builder, lines: list[Line]) -> None:
    """AWS, Microsoft and Oracle each with its payer's total; a product of Red Hat is sold by AWS Marketplace."""
    names = {"Amazon": "AWS", "Red Hat": "AWS Marketplace"}

    def provider(line: Line) -> str:
        sold = next((name for start, name in names.items() if line["PublisherName"].startswith(start)), "")
        return f"{sold or line['ProviderName']} {line['BillingAccountId']}"

    rows = ask(
        sample,
        "select provider || ' ' || payer_account_id, sum(billed_cost_usd) from detail_charge_monthly group by 1",
    ).rows()
    assert dict(rows) == total(lines, provider, "BilledCost")


# The specification's examples of commitments: 13 to 23 columns, one source and payer each.

EXAMPLES = {
    # Billed and effective cost by bucket; the effective ones of a purchase lie on the usage it covers.
    "commitment_discount_purchase_scenario_1": {"other": ("8760", "0")},
    # 4380 upfront, and three hourly fees of 0.50.
    "commitment_discount_purchase_scenario_3": {"other": ("4380", "0"), "commitment_unused": ("1.5", "0")},
    # An hour of the commitment that nothing used.
    "commitment_discount_usage_scenario_2": {"commitment_unused": ("0", "1")},
    # An hour half covered: 1.00 of the commitment, 0.50 at the standard price.
    "commitment_discount_usage_scenario_4": {"other": ("0.5", "1.5")},
    # A small machine's commitment covers a third of a large one's hour.
    "one_hundred_percent_utilization_with_commitment_discount_flexibility_with_1_resource": {
        "commitment_unused": ("0.5", "0"),
        "other": ("2.25", "2.75"),
    },
    "one_hundred_percent_utilization_without_commitment_discount_flexibility": {
        "commitment_unused": ("1.5", "0"),
        "other": ("0", "1.5"),
    },
}
# ListCost of the usage alone; summed over the purchases too it would be 6.25 and 6.00.
LISTED = {
    "one_hundred_percent_utilization_with_commitment_discount_flexibility_with_1_resource": Decimal("5.25"),
    "one_hundred_percent_utilization_without_commitment_discount_flexibility": Decimal("3.00"),
}


def example(shared_data: Path, root: Path, name: str, correct: Callable[[str], str]) -> Path:
    """An example as a delivery: its own columns, and those AWS has on every line."""
    rows = lines_of(shared_data / "billing/focus/spec_commitment" / f"{name}.csv")
    text = io.StringIO()
    lines = [{**ALWAYS, "BillingAccountId": name, **row} for row in rows]
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    files = {"example.csv.gz": packed(correct(text.getvalue()).encode())}
    return focus_export(root, files, lines[0], name=name, month="2023-01")


def with_a_real_time(text: str) -> str:
    """One example ends a charge at hour 30 of a day."""
    return text.replace("2023-02-01T30:00:00Z", "2023-02-02T06:00:00Z")


@pytest.fixture(scope="module")
def examples(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Builder:
    root = tmp_path_factory.mktemp("focus-examples")
    places = {f"e{n}": example(shared_data, root, name, with_a_real_time) for n, name in enumerate(EXAMPLES)}
    return lazy_warehouse(configure(root, places))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_the_specification_costs_what_it_states(examples: Builder, name: str) -> None:
    rows = ask(
        examples,
        "select bucket, sum(billed_cost_usd), sum(effective_cost_usd) from fct_ledger"
        f" where payer_account_id = '{name}' group by 1",
    ).rows()
    assert {bucket: tuple(sums) for bucket, *sums in rows} == {
        bucket: (Decimal(billed), Decimal(effective)) for bucket, (billed, effective) in EXAMPLES[name].items()
    }


def test_examples_tie_to_the_totals_of_the_data_readme(examples: Builder) -> None:
    rows = ask(
        examples,
        "select payer_account_id, billed_cost_usd, ledger_cost_usd, status from mart_invoice_reconciliation_monthly",
    ).rows()
    totals = ("8760", "4381.5", "0", "0.5", "2.75", "1.5")
    assert {name: cost for name, *cost in rows} == {
        name: [Decimal(cost), Decimal(cost), "reconciled"] for name, cost in zip(EXAMPLES, totals, strict=True)
    }


@pytest.mark.parametrize("name", LISTED)
def test_list_cost_of_an_example_is_not_doubled(examples: Builder, name: str) -> None:
    found = ask(examples, f"select sum(list_cost_usd) from fct_ledger where payer_account_id = '{name}'").item()
    assert found == LISTED[name]


def test_an_hour_that_does_not_exist_is_refused_by_its_row(shared_data: Path, tmp_path: Path) -> None:
    root = example(shared_data, tmp_path, "commitment_discount_purchase_scenario_3", lambda text: text)
    message = r"row 5 \(the header is row 1\), column ChargePeriodEnd: '2023-02-01T30:00:00Z' is not an ISO timestamp"
    with pytest.raises(SourceError, match=message):
        stored(root, tmp_path / "raw")


def test_an_export_of_focus_0_5_is_refused_by_the_column_it_lacks(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "billing/focus/validator_all_pass_0.5.csv"
    root = focus_export(tmp_path, {"f.csv": path.read_bytes()}, lines_of(path)[0], month="2023-06")
    with pytest.raises(SourceError, match=r"f\.csv has no column charge_category; it is not a complete FOCUS export"):
        stored(root, tmp_path / "raw")
