"""A bill made up by nise, accelerators, Savings Plans and tags in it, through the whole pipeline.

Every expected figure is added up here from the delivered files by csv alone.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.added_up import ZERO, Line, added, by_charge_type, csv_lines, exact, identity, reconciled
from support.bills import write_events
from support.ledgers import ask, ask_published, build_warehouse, open_publication, publish_tables

from pipelines.explain.query import chosen, for_invoice, for_month
from pipelines.models.build import Builder

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


def nise_amortized(line: Line) -> Decimal:
    kind = nise_kind(line)
    if kind == "SavingsPlanCoveredUsage":
        return exact(line["savingsPlan/SavingsPlanEffectiveCost"])
    if kind == "SavingsPlanRecurringFee":
        return exact(line["savingsPlan/TotalCommitmentToDate"]) - exact(line["savingsPlan/UsedCommitment"])
    if kind == "DiscountedUsage":
        return exact(line["reservation/EffectiveCost"])
    return ZERO if kind in ("SavingsPlanNegation", "SavingsPlanUpfrontFee") else exact(line["lineItem/UnblendedCost"])


def nise_run_events() -> list[dict[str, Any]]:
    """Each run with its attempts, and not a word about its nodes: only the tags of the bill name them."""
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
        expected = added(of_month, nise_kind, nise_amortized, nise_billed)
        # Reserved hours have no cost on this bill: it is unknown, not zero.
        expected |= {kind: (sums[0], None, sums[2]) for kind, sums in expected.items() if kind == "DiscountedUsage"}
        assert by_charge_type(nise.builder, month) == expected
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
    nodes = {line["lineItem/ResourceId"]: nise_tag(line).lower() for line in lines if nise_tag(line)}
    expected = added(
        (line for line in lines if nodes.get(line["lineItem/ResourceId"]) in ALIVE),
        lambda line: nodes[line["lineItem/ResourceId"]],
        lambda line: exact(line["pricing/publicOnDemandCost"]),
        nise_amortized,
        nise_billed,
    )
    found = run_costs(nise)
    assert {run_id: costs[1:3] for run_id, costs in found.items()} == {
        run_id: (None if run_id == "run-trn-0004" else effective, cost)
        for run_id, (_, _, effective, cost) in expected.items()
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
        "select strftime(billing_month, '%Y-%m'), sum(billed_cost_usd) from fct_ledger"
        " where run_id = 'run-gpu-0001' group by 1 order by 1",
    ).rows()
    assert by_month == [("2024-02", Decimal("3670.5312")), ("2024-03", Decimal("4194.8928"))]
    # Its README counts tagged lines only: the twelve hours before one node got its tag cost 12 × 21.50.
    assert found["run-trn-0003"][2] == Decimal("6563.189655176") + 12 * Decimal("21.5")
    # Covered usage counted at its on-demand price, which is the list price.
    assert found["run-gpu-0002"][0] == Decimal("10559.28")
    assert found["run-trn-0004"][2] == ZERO
    # Two keys are one, and a value in capitals is the same run.
    assert found["run-gpu-0005"][2] == Decimal("408.384")


def test_nise_restated_to_the_cent(nise: Nise, tmp_path: Path) -> None:
    """February is delivered again: its GPU hours cheaper by a tenth, a node's lines gone. March stays as it was."""
    before = reconciled(nise.builder)
    root = shutil.copytree(nise.root, tmp_path / "nise")
    (manifest,) = root.glob(f"{EXPORT}/20240201-*/hourly-cur-Manifest.json")
    content = json.loads(manifest.read_text())
    (old_key,) = content["reportKeys"]
    key = old_key.replace(content["assemblyId"], "restated")
    assert key != old_key
    lines = []
    for line in csv_lines(root / "acme-cur-bucket" / old_key):
        if line["product/instanceType"] == "p4d.24xlarge":
            line["lineItem/UnblendedCost"] = str(Decimal(line["lineItem/UnblendedCost"]) * Decimal("0.9"))
        if line["product/instanceType"] != "m5.2xlarge":
            lines.append(line)
    path = root / "acme-cur-bucket" / key
    path.parent.mkdir()
    with gzip.open(path, "wt", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    manifest.write_text(json.dumps({**content, "assemblyId": "restated", "reportKeys": [key]}))

    asserted = ("mart_run_cost", "mart_invoice_reconciliation_monthly", "fct_ledger")
    restated = Nise(root, publish_tables(root / "trainledger.toml", asserted))
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


def test_nise_states_no_commitment_and_is_reported_as_incomplete(nise: Nise) -> None:
    """nise leaves used and total commitment empty and writes no fee for its reserved hours; its negations are whole."""
    lines = [line for line in nise.lines() if line["month"] == "2024-03"]
    assert {line["savingsPlan/TotalCommitmentToDate"] for line in lines} <= {"", "0", "0.0"}
    assert not [line for line in lines if nise_kind(line) == "RIFee"]
    cost = sum(exact(line["lineItem/UnblendedCost"]) for line in lines)
    # Its upfront fee stands where it was billed; nothing of it is amortized.
    counted = sum(map(nise_amortized, lines)) + Decimal(12000)
    assert identity(nise.builder, 1, "2024-03") == ("incomplete", cost, counted)
    assert identity(nise.builder, 2, "2024-03")[0] == "incomplete"
    assert identity(nise.builder, 3, "2024-03") == ("holds", ZERO, ZERO)


def test_nise_lacks_the_fees_of_its_plans_in_effective_cost_and_that_is_reported(nise: Nise) -> None:
    """Its fee lines name no commitment: what they bill beyond what covered usage takes is in no cost."""
    lines = [line for line in nise.lines() if line["month"] == "2024-03"]
    fees = [exact(line["lineItem/UnblendedCost"]) for line in lines if nise_kind(line) == "SavingsPlanRecurringFee"]
    used = [nise_amortized(line) for line in lines if nise_kind(line) == "SavingsPlanCoveredUsage"]
    missing = sum(fees) - sum(used)
    warned = {check["check"]: check for check in nise.builder.lake.publications.newest().checks if not check["passed"]}
    sample = warned["effective_cost_of_a_closed_month_lacks_commitment_fees"]["sample"]
    amounts = {row["billing_month"]: Decimal(row["effective_cost_too_low_by_up_to_usd"]) for row in sample}
    assert amounts["2024-03-01"] == missing > 0


def test_nise_figures_that_rest_on_unknown_use_are_unknown(nise: Nise) -> None:
    """168 hours of fees at 114.0571428571 bill 19,162.08, of which covered usage takes 5,474.88: 13,687.20 remain.

    48 hours of a reserved trn1.32xlarge have neither a cost nor a fee; they are no use of the plan.
    """
    missing = Decimal("13687.20")
    march = "billing_month = '2024-03-01'"
    plan = (
        "commitment_cost_usd, used_cost_usd, unused_cost_usd, utilization_ratio, net_savings_usd, unallocated_fee_usd"
    )
    assert ask_published(
        nise.builder,
        f"select commitment_kind, {plan} from mart_commitment_utilization_monthly where {march} order by 1",
    ).rows() == [
        ("compute_savings_plan", None, None, None, None, None, missing),
        ("reserved_instance", None, None, None, None, None, 0),
    ]
    unused = "sum(effective_cost_usd), sum(billed_cost_usd)"
    assert ask_published(
        nise.builder, f"select {unused} from mart_cost_ledger_daily where {march} and bucket = 'commitment_unused'"
    ).rows() == [(None, Decimal("19162.08"))]
    partial = "effective_cost_usd, running_effective_cost_usd, unallocated_fee_usd"
    summary = f"select {partial} from mart_cost_summary_monthly where {march} and dimension_value = "
    assert ask_published(nise.builder, summary + "'commitment_unused'").rows() == [(None, None, missing)]
    # Trainium runs: what one cost in February, 6563.189655176 and 12 × 21.5; the reserved one of March is unknown.
    assert ask_published(
        nise.builder,
        "select effective_cost_usd, running_effective_cost_usd, is_running_cost_partial "
        f"from mart_cost_summary_monthly where {march} and (dimension, dimension_value) = "
        "('run_accelerator_family', 'trainium')",
    ).rows() == [(None, Decimal("6821.189655176"), True)]
    ((whole, _, lacks),) = ask_published(nise.builder, summary + "'all'").rows()
    assert (whole > 0, lacks) == (True, missing)
    rate = "unused_cost_usd, net_savings_usd, effective_savings_rate_ratio, unallocated_fee_usd"
    assert set(
        ask_published(nise.builder, f"select {rate} from mart_effective_savings_rate_monthly where {march}").rows()
    ) == {(None, None, None, missing)}
    assert ask_published(
        nise.builder, f"select status, unallocated_fee_usd from detail_billing_month where {march}"
    ).rows() == [("incomplete", missing)]
    with open_publication(nise.builder, 1) as marts:
        notes = [
            for_month(marts, "2024-03", chosen(bucket="commitment_unused")).note,
            for_invoice(marts, None, "2024-03", None).note,
        ]
    assert all("does not show what used 13,687.20 USD of commitment fees" in note for note in notes)
    advice = ask_published(nise.builder, "select distinct advice, advice_reason from mart_commitment_recommendation")
    assert advice.rows() == [
        (
            "undecided",
            "the bill does not show what used 13,687.20 USD of commitment fees and has no cost of 48 hours that "
            "commitments covered in 28 days",
        )
    ]
