"""Real bills through the whole pipeline, to the published marts.

Every expected figure is added up here from the delivered files by csv or pyarrow alone, each line to the bill's ten
places. Formulas of the effective cost are AWS's own (line item details), written down a second time.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.bills import write_events
from support.cur_exports import legacy_export
from support.ledgers import ask, ask_published, build_warehouse, open_publication

from pipelines.models.build import Builder
from pipelines.models.catalog import load_catalog

Line = dict[str, Any]
ZERO = Decimal(0)
WORKSHOP = {
    "2018-10": "Oct2018-WorkshopCUR-00001.snappy.parquet",
    "2018-11": "Nov2018-WorkshopCUR-00001.snappy.parquet",
}


def exact(value: Any) -> Decimal:
    """A number as the bill keeps it; nothing for a blank or a word."""
    try:
        return Decimal(str(value)).quantize(Decimal("1e-10"), ROUND_HALF_UP)
    except ArithmeticError:
        return ZERO


def added(lines: Iterable[Line], key: Callable[[Line], Any], *amounts: Callable[[Line], Decimal]) -> dict:
    """Line count and sums of `amounts` by key."""
    sums: dict = defaultdict(lambda: [0] + [ZERO] * len(amounts))
    for line in lines:
        found = sums[key(line)]
        found[0] += 1
        for place, amount in enumerate(amounts, 1):
            found[place] += amount(line)
    return {name: tuple(found) for name, found in sums.items()}


def csv_lines(path: Path) -> Iterator[Line]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        yield from csv.DictReader(text)


def by_charge_type(builder: Builder, month: str) -> dict[str, tuple]:
    """Line count, effective and billed cost by line-item type, as staging has them."""
    with builder.open(["stg_aws__line_item"], month) as engine:
        rows = engine.query(
            "select charge_type, count(*), sum(effective_cost_usd), sum(billed_cost_usd)"
            " from stg_aws__line_item group by 1"
        ).rows()
    return {kind: tuple(sums) for kind, *sums in rows}


def reconciled(builder: Builder) -> dict[str, tuple]:
    """Line count, bill, ledger and their difference by billing month, as published."""
    rows = ask_published(
        builder,
        "select strftime(billing_month, '%Y-%m'), sum(line_count), sum(billed_cost_usd), sum(ledger_cost_usd),"
        " sum(abs(difference_usd)) from mart_invoice_reconciliation_monthly group by 1",
    ).rows()
    return {month: tuple(sums) for month, *sums in rows}


@pytest.fixture(scope="module")
def billing(shared_data: Path) -> Path:
    return shared_data / "billing"


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
    """What a reservation's fee line says was paid for and not used."""
    return exact(line["reservation_unused_amortized_upfront_fee_for_billing_period"]) + exact(
        line["reservation_unused_recurring_fee"]
    )


def amortised(line: Line) -> Decimal:
    kind = line["line_item_line_item_type"]
    if kind == "DiscountedUsage":
        return exact(line["reservation_effective_cost"])
    return unused(line) if kind == "RIFee" else billed(line)


@pytest.mark.parametrize("month", WORKSHOP)
def test_workshop_by_line_item_type(without_runs: Builder, workshop: dict[str, list[Line]], month: str) -> None:
    expected = added(workshop[month], lambda line: line["line_item_line_item_type"], amortised, billed)
    assert by_charge_type(without_runs, month) == expected
    count, _, cost = (sum(column, start=ZERO) for column in zip(*expected.values(), strict=True))
    assert reconciled(without_runs)[month] == (count, cost, cost, ZERO)


def test_workshop_is_what_its_readme_says(without_runs: Builder) -> None:
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
def test_reservations_amortise_to_what_was_paid(
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
    # They are kept as the month they are billed in, and told of.
    warned = [c for c in without_runs.lake.current().checks if not c["passed"] and c["period"] == "2018-08"]
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
        "select payer_account_id, invoice_id, service, sum(billed_cost_usd) from fct_ledger_daily"
        " where billing_month = date '2024-09-01' group by all",
    ).rows()
    assert {tuple(key): cost for *key, cost in found} == {key: cost for key, (_, cost) in expected.items()}
    assert reconciled(without_runs)["2024-09"][:2] == (4, Decimal("0.108304"))


def test_a_bill_without_a_line_and_a_company_without_a_run(without_runs: Builder) -> None:
    published = without_runs.lake.current()
    assert published and {d["billing_period"] for d in published.inputs["deliveries"]} >= {"2023-06"}
    assert "2023-06" not in reconciled(without_runs)
    counts = {
        model.name: ask_published(without_runs, f"select count(*) from {model.name}").item()
        for model in load_catalog().layer("marts")
    }
    runless = ("mart_run_cost", "mart_epoch_cost", "mart_checkpoint_cost", "mart_silicon_comparison")
    assert {name: counts[name] for name in runless} == dict.fromkeys(runless, 0)
    assert counts["mart_cost_ledger_daily"] > 0


# nise: accelerators, Savings Plans and tags, two assemblies a month of which the manifest names one.

EXPORT = "acme-cur-bucket/billing/hourly-cur"
# When each run was alive, as its tags on the bill show; one was retried a day later.
ALIVE = {
    "run-gpu-0001": [("2024-02-28T20:00:00Z", "2024-03-02T08:00:00Z")],
    "run-gpu-0002": [("2024-03-05T06:00:00Z", "2024-03-07T06:00:00Z")],
    "run-trn-0003": [
        ("2024-02-12T00:00:00Z", "2024-02-15T00:00:00Z"),
        ("2024-02-16T03:00:00Z", "2024-02-17T00:00:00Z"),
    ],
    "run-trn-0004": [("2024-03-10T00:00:00Z", "2024-03-12T00:00:00Z")],
    "run-gpu-0005": [("2024-03-14T00:00:00Z", "2024-03-15T02:00:00Z")],
}


@dataclass
class Nise:
    """A warehouse over a copy of the nise bucket, and the lines its manifests name."""

    root: Path
    builder: Builder

    def lines(self) -> list[Line]:
        found = []
        for manifest in sorted(self.root.glob(f"{EXPORT}/*/hourly-cur-Manifest.json")):
            for key in json.loads(manifest.read_text())["reportKeys"]:
                month = f"{manifest.parent.name[:4]}-{manifest.parent.name[4:6]}"
                found += [{**line, "month": month} for line in csv_lines(self.root / "acme-cur-bucket" / key)]
        return found


def nise_kind(line: Line) -> str:
    return line["lineItem/LineItemType"]


def nise_tag(line: Line) -> str:
    return line["resourceTags/user:Run_ID"] or line["resourceTags/user:run_id"]


def nise_billed(line: Line) -> Decimal:
    # Covered usage and its negation cancel: both are billed at nothing.
    is_cancelled = nise_kind(line) in ("SavingsPlanCoveredUsage", "SavingsPlanNegation")
    return ZERO if is_cancelled else exact(line["lineItem/UnblendedCost"])


def nise_amortised(line: Line) -> Decimal:
    kind = nise_kind(line)
    if kind == "SavingsPlanCoveredUsage":
        return exact(line["savingsPlan/SavingsPlanEffectiveCost"])
    if kind == "SavingsPlanRecurringFee":
        return exact(line["savingsPlan/TotalCommitmentToDate"]) - exact(line["savingsPlan/UsedCommitment"])
    if kind == "DiscountedUsage":
        return exact(line["reservation/EffectiveCost"])
    return ZERO if kind in ("SavingsPlanNegation", "SavingsPlanUpfrontFee") else exact(line["lineItem/UnblendedCost"])


def nise_run_events() -> list[dict[str, Any]]:
    """Each run with its attempts, and not a word about its nodes: only the tags of the bill tell."""
    events: list[dict[str, Any]] = []
    for run_id, spans in ALIVE.items():
        for number, (started, ended) in enumerate(spans, 1):
            attempt = {"run_id": run_id, "attempt": number}
            events.append({"event": "attempt_started", **attempt, "at": started})
            events.append({"event": "attempt_ended", **attempt, "at": ended, "reason": "completed"})
        events.append({"event": "run_started", "run_id": run_id, "at": spans[0][0], "model": run_id})
        events.append({"event": "run_ended", "run_id": run_id, "at": spans[-1][1], "status": "completed"})
    return events


@pytest.fixture(scope="module")
def nise(billing: Path, tmp_path_factory: pytest.TempPathFactory) -> Nise:
    root = tmp_path_factory.mktemp("nise")
    shutil.copytree(billing / "nise_small/acme-cur-bucket", root / "acme-cur-bucket", copy_function=shutil.copyfile)
    write_events(root / "runs", nise_run_events())
    (root / "trainledger.toml").write_text(
        f'[warehouse]\nlocation = "warehouse"\n\n[[billing]]\nname = "acme"\nlocation = "{EXPORT}"\n\n'
        '[[runs]]\nname = "jobs"\nlocation = "runs"\n'
    )
    return Nise(root, build_warehouse(root / "trainledger.toml"))


def check_nise_totals(nise: Nise) -> None:
    lines = nise.lines()
    for month in ("2024-02", "2024-03"):
        of_month = [line for line in lines if line["month"] == month]
        assert by_charge_type(nise.builder, month) == added(of_month, nise_kind, nise_amortised, nise_billed)
        cost = sum(exact(line["lineItem/UnblendedCost"]) for line in of_month)
        assert reconciled(nise.builder)[month] == (len(of_month), cost, cost, ZERO)


def test_nise_by_month_and_line_item_type(nise: Nise) -> None:
    check_nise_totals(nise)
    # The data's own README states these two, one assembly each.
    assert [sums[1] for _, sums in sorted(reconciled(nise.builder).items())] == [
        Decimal("11990.604855176"),
        Decimal("37959.9484129248"),
    ]


def run_costs(nise: Nise) -> dict[str, tuple]:
    rows = ask_published(
        nise.builder,
        "select run_id, list_cost_usd, effective_cost_usd, billed_cost_usd, estimated_cost_usd from mart_run_cost",
    ).rows()
    return {run_id: tuple(costs) for run_id, *costs in rows}


def test_nise_by_run_tag(nise: Nise) -> None:
    """The lines a run's tag is on, and the untagged hours of a node that wore its tag while it was alive."""
    lines = nise.lines()
    nodes = {line["lineItem/ResourceId"]: nise_tag(line) for line in lines if nise_tag(line)}
    expected = added(
        (line for line in lines if nodes.get(line["lineItem/ResourceId"]) in ALIVE),
        lambda line: nodes[line["lineItem/ResourceId"]],
        lambda line: exact(line["pricing/publicOnDemandCost"]),
        nise_amortised,
        nise_billed,
    )
    found = run_costs(nise)
    assert {run_id: costs[1:3] for run_id, costs in found.items()} == {
        run_id: (effective, cost) for run_id, (_, _, effective, cost) in expected.items()
    }
    # nise writes a word where the list price of reserved hours should be: it is unknown, not zero.
    assert {run_id: costs[0] for run_id, costs in found.items()} == {
        run_id: None if run_id == "run-trn-0004" else price for run_id, (_, price, _, _) in expected.items()
    }
    # All of it rests on tags alone.
    assert all(costs[3] == costs[1] for costs in found.values())


def test_nise_tag_sums_are_those_of_its_readme(nise: Nise) -> None:
    found = run_costs(nise)
    by_month = ask(
        nise.builder,
        "select strftime(billing_month, '%Y-%m'), sum(billed_cost_usd) from fct_ledger_daily"
        " where run_id = 'run-gpu-0001' group by 1 order by 1",
    ).rows()
    assert by_month == [("2024-02", Decimal("3670.5312")), ("2024-03", Decimal("4194.8928"))]
    # Its README counts tagged lines only: the twelve hours before one node got its tag cost 12 × 21.50.
    assert found["run-trn-0003"][2] == Decimal("6563.189655176") + 12 * Decimal("21.5")
    # Covered usage counted at its on-demand price, which is the list price.
    assert found["run-gpu-0002"][0] == Decimal("10559.28")
    assert found["run-trn-0004"][2] == ZERO
    # Two keys are one; a value in capitals is another run, which nobody recorded.
    other = ask_published(
        nise.builder,
        "select sum(billed_cost_usd) from mart_unattributed_cost_daily where tagged_run_id = 'RUN-GPU-0005'",
    ).item()
    assert found["run-gpu-0005"][2] + other == Decimal("408.384")


def test_nise_restated_to_the_cent(nise: Nise) -> None:
    """February is delivered again: its GPU hours cheaper by a tenth, a node's lines gone. March stays as it was."""
    before = reconciled(nise.builder)
    (manifest,) = nise.root.glob(f"{EXPORT}/20240201-*/hourly-cur-Manifest.json")
    content = json.loads(manifest.read_text())
    (old_key,) = content["reportKeys"]
    key = old_key.replace(content["assemblyId"], "restated")
    assert key != old_key
    lines = []
    for line in csv_lines(nise.root / "acme-cur-bucket" / old_key):
        if line["product/instanceType"] == "p4d.24xlarge":
            line["lineItem/UnblendedCost"] = str(Decimal(line["lineItem/UnblendedCost"]) * Decimal("0.9"))
        if line["product/instanceType"] != "m5.2xlarge":
            lines.append(line)
    path = nise.root / "acme-cur-bucket" / key
    path.parent.mkdir()
    with gzip.open(path, "wt", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    manifest.write_text(json.dumps({**content, "assemblyId": "restated", "reportKeys": [key]}))

    restated = Nise(nise.root, build_warehouse(nise.root / "trainledger.toml"))
    check_nise_totals(restated)
    after = reconciled(restated.builder)
    assert after["2024-03"] == before["2024-03"]
    # By hand: 696 hours at 0.384 are gone, and a tenth of the 3670.5312 that p4d hours cost.
    assert before["2024-02"][1] - after["2024-02"][1] == Decimal("267.264") + Decimal("367.05312")
    assert run_costs(restated)["run-gpu-0001"][2] == Decimal("3303.47808") + Decimal("4194.8928")
    # As known before.
    with open_publication(restated.builder, 1) as engine:
        old = engine.query("select sum(billed_cost_usd) from mart_invoice_reconciliation_monthly").item()
    assert old == before["2024-02"][1] + before["2024-03"][1]


# The identities of facts aws-billing 2.4 on the same bills.


def identity(builder: Builder, number: int, month: str) -> tuple:
    return ask_published(
        builder,
        "select status, left_usd, right_usd from mart_bill_identity_monthly"
        f" where identity = {number} and billing_month = date '{month}-01' and left_usd is not null",
    ).row(0)


@pytest.mark.parametrize("month", WORKSHOP)
def test_workshop_amortised_leads_to_its_invoice(
    without_runs: Builder, workshop: dict[str, list[Line]], month: str
) -> None:
    """Identity 1: no upfront fee was billed in these months, part of earlier ones was amortised."""
    lines = workshop[month]
    upfront = sum(
        exact(line["reservation_amortized_upfront_fee_for_billing_period"])
        for line in lines
        if line["line_item_line_item_type"] == "RIFee"
    )
    bill, cost = sum(map(billed, lines)), sum(map(amortised, lines))
    assert identity(without_runs, 1, month) == ("holds", bill, cost - upfront)
    way = ask_published(
        without_runs,
        "select effective_cost_usd, upfront_fee_usd, amortised_upfront_usd, commitment_timing_usd, netted_discount_usd,"
        " status, billing_entity from mart_invoice_reconciliation_monthly"
        f" where billing_month = date '{month}-01'",
    ).rows()
    assert way == [(cost, ZERO, -upfront, bill - cost + upfront, ZERO, "reconciled", "AWS")]


def test_nise_states_no_commitment_and_is_told_as_incomplete(nise: Nise) -> None:
    """nise leaves used and total commitment empty and writes no fee for its reserved hours; its negations are whole."""
    lines = [line for line in nise.lines() if line["month"] == "2024-03"]
    assert {line["savingsPlan/TotalCommitmentToDate"] for line in lines} <= {"", "0", "0.0"}
    assert not [line for line in lines if nise_kind(line) == "RIFee"]
    cost = sum(exact(line["lineItem/UnblendedCost"]) for line in lines)
    # Its upfront fee stands where it was billed; nothing of it is amortised.
    counted = sum(map(nise_amortised, lines)) + Decimal(12000)
    assert identity(nise.builder, 1, "2024-03") == ("incomplete", cost, counted)
    assert identity(nise.builder, 2, "2024-03")[0] == "incomplete"
    assert identity(nise.builder, 3, "2024-03") == ("holds", ZERO, ZERO)


def test_koku_usage_covered_without_a_negation_is_billed_as_written(billing: Path, tmp_path: Path) -> None:
    """Three covered lines of 10 at plan rate 0.1, final, with nothing to cancel them; its kroner are dollars here."""
    content = (billing / "cur_legacy/koku_2023-06-01.csv").read_bytes().replace(b"NOK", b"USD")
    place = legacy_export(tmp_path, {"day.csv": content}, name="day", month="20230601-20230701")
    text = f'[warehouse]\nlocation = "warehouse"\n\n[[billing]]\nname = "koku"\nlocation = "{place}"\n'
    (tmp_path / "trainledger.toml").write_text(text)
    builder = build_warehouse(tmp_path / "trainledger.toml")
    rows = ask_published(
        builder, "select status, billed_cost_usd, effective_cost_usd from mart_invoice_reconciliation_monthly"
    ).rows()
    assert rows == [("reconciled", Decimal(30), Decimal("0.3"))]
    assert identity(builder, 3, "2023-06") == ("incomplete", Decimal(30), ZERO)
    assert identity(builder, 1, "2023-06")[0] == "incomplete"


def test_nise_lacks_the_fees_of_its_plans_in_effective_cost_and_that_is_told(nise: Nise) -> None:
    """Its fee lines name no commitment: what they bill beyond what covered usage takes is in no cost."""
    lines = [line for line in nise.lines() if line["month"] == "2024-03"]
    fees = [exact(line["lineItem/UnblendedCost"]) for line in lines if nise_kind(line) == "SavingsPlanRecurringFee"]
    used = [nise_amortised(line) for line in lines if nise_kind(line) == "SavingsPlanCoveredUsage"]
    missing = sum(fees) - sum(used)
    warned = {check["check"]: check for check in nise.builder.lake.current().checks if not check["passed"]}
    told = warned["effective_cost_of_a_closed_month_lacks_commitment_fees"]["sample"]
    amounts = {row["billing_month"]: Decimal(row["effective_cost_too_low_by_up_to_usd"]) for row in told}
    assert amounts["2024-03-01"] == missing > 0
