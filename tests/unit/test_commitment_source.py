"""Commitments as AWS answers them: a recorded answer, made-up ones, and what is refused by name."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.aws_answers import aws_answers
from support.bills import write_config
from support.focus_exports import write_focus_export
from support.ledgers import ask, open_tables, publish_tables

from pipelines.base.errors import SourceError
from pipelines.config.sources import AnswerSource
from pipelines.ingest.inventory.commitments import ANSWERS, read_commitments
from pipelines.models.checks import failing_rows
from pipelines.models.contract import load_contract

PLAN = {
    "savingsPlanArn": "arn:aws:savingsplans::000011112222:savingsplan/sp-1",
    "savingsPlanType": "EC2Instance",
    "ec2InstanceFamily": "p4d",
    "region": "us-west-2",
    "start": "2026-01-01T00:00:00.000Z",
    "end": "2028-12-31T00:00:00.000Z",
    "state": "active",
    "paymentOption": "All Upfront",
    "currency": "USD",
    "commitment": "12.5",
    "termDurationInSeconds": 94608000,
}
RESERVED = {
    "ReservedInstancesId": "1a2b3c",
    "InstanceType": "p4d.24xlarge",
    "InstanceCount": 2,
    "Duration": 31536000,
    "Start": "2026-01-01T00:00:00+00:00",
    "End": "2027-01-01T00:00:00+00:00",
    "FixedPrice": 8760.0,
    "RecurringCharges": [{"Amount": 2.0, "Frequency": "Hourly"}],
    "OfferingType": "Partial Upfront",
    "CurrencyCode": "USD",
    "State": "active",
}


def saved(root: Path, *answers: Any) -> AnswerSource:
    folder = root / "commitments"
    folder.mkdir()
    for number, answer in enumerate(answers):
        (folder / f"{number}.json").write_text(answer if isinstance(answer, str) else json.dumps(answer))
    return AnswerSource(name="bought", location=str(folder))


def test_the_recorded_answer_is_read_as_it_came(shared_data: Path) -> None:
    """A fixture of cloud-custodian: one Compute plan of 50.00 an hour for three years, to 1 August 2026."""
    file = shared_data / "billing" / "savings_plans" / "describe_savings_plans_query.json"
    (row,) = read_commitments([AnswerSource(name="recorded", location=str(file))]).table.to_dicts()
    assert row["commitment_discount_id"] == "arn:aws:savingsplans::123456789012:savingsplan/sp-98765432109876543"
    assert (row["commitment_kind"], row["account_id"]) == ("compute_savings_plan", "123456789012")
    assert (row["commitment_per_hour"], row["currency"]) == (Decimal("50"), "USD")
    assert (row["payment_option"], row["purchase_term"]) == ("Partial Upfront", "3yr")
    assert row["ended_at"] == datetime(2026, 8, 1)


@pytest.mark.parametrize(
    "file", ["focus13/fdt_aws_seed42/focus_1_3_contract_commitment_aws.csv",
             "focus14/fdt_aws_seed42/focus_1_4_contract_commitment.csv"],
)  # fmt: skip
def test_recorded_contract_commitments_are_read(shared_data: Path, file: str) -> None:
    """28 plans and 16 reservations of 47 rows; 280460.16 for the 8760 hours of a year are 32.016 an hour."""
    found = read_commitments([AnswerSource(name="focus", location=str(shared_data / "billing" / file))])
    kinds = found.table["commitment_kind"].value_counts().rows()
    assert dict(kinds) == {"compute_savings_plan": 28, "reserved_instance": 16}
    row = found.table.filter(found.table["commitment_discount_id"].str.ends_with("b62179273c8eb5bb")).to_dicts()[0]
    assert (row["commitment_per_hour"], row["purchase_term"], row["currency"]) == (Decimal("32.016"), "1yr", "USD")
    assert (row["started_at"], row["ended_at"]) == (datetime(2026, 5, 1, 1), datetime(2027, 5, 1, 1))
    (warning,) = found.warnings
    assert "3 contracts are no Savings Plan and no reservation, such as CC-MINSPEND-AWS (Minimum Spend)" in warning


def contracts(**more: str) -> str:
    row = {
        "ContractId": "c-1", "ContractCommitmentId": "sp-1", "ContractCommitmentType": "Savings Plan",
        "ContractCommitmentCategory": "Spend", "ContractCommitmentPeriodStart": "2026-01-01T00:00:00Z",
        "ContractCommitmentPeriodEnd": "2027-01-01T00:00:00Z", "BillingCurrency": "USD",
    } | more  # fmt: skip
    return ",".join(row) + "\n" + ",".join(row.values()) + "\n"


def left_out(sources: list[AnswerSource], *others: str) -> str:
    """The one warning of reading `sources`: the commitment it names has a row without its kind, `others` are whole."""
    found = read_commitments(sources)
    (warning,) = found.warnings
    assert warning.endswith("Until then it is left out.")
    (unread,) = found.table.filter(pl.col("commitment_kind").is_null()).to_dicts()
    assert {name for name, value in unread.items() if value is not None} == {"source_name", "commitment_discount_id"}
    assert found.table.drop_nulls("commitment_kind")["commitment_discount_id"].to_list() == [*others]
    return warning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ContractCommitmentId\nsp-1\n", "has no column ContractId; FOCUS's ContractCommitment has it"),
        (contracts(ContractId=""), "line 2 has no ContractId; FOCUS requires it."),
        (contracts(ContractCommitmentPeriodEnd="2026-01-01T00:00:00Z"), "not after it starts; fix the times"),
        (contracts(ContractCommitmentCost="much"), "ContractCommitmentCost 'much'; write an amount of money"),
        (contracts(ContractCommitmentApplicability="{"), "ContractCommitmentApplicability is not JSON"),
    ],
)
def test_what_is_no_contract_commitment_is_left_out_by_name(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "contracts.csv").write_text(text)
    assert words in left_out([AnswerSource(name="focus", location=str(tmp_path))])


def test_a_draft_percentage_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "contracts.csv").write_text(contracts(ContractCommitmentPaymentUpfrontPercentage="50"))
    (warning,) = read_commitments([AnswerSource(name="focus", location=str(tmp_path))]).warnings
    assert "line 2 has a ContractCommitmentPaymentUpfrontPercentage outside 0 to 1 (1 row)" in warning


def test_a_reservation_costs_its_hour_and_its_part_of_the_upfront_price(tmp_path: Path) -> None:
    """Two instances at 2.00 an hour and 8760.00 upfront for 8760 hours: 2 x 3.00."""
    (row,) = read_commitments([saved(tmp_path, {"ReservedInstances": [RESERVED]})]).table.to_dicts()
    assert (row["commitment_per_hour"], row["instance_family"], row["purchase_term"]) == (Decimal("6"), "p4d", "1yr")


def test_the_same_commitment_in_two_answers_is_one(tmp_path: Path) -> None:
    inventory = read_commitments([saved(tmp_path, {"savingsPlans": [PLAN]}, {"savingsPlans": [PLAN]})])
    assert inventory.table["commitment_kind"].to_list() == ["ec2_instance_savings_plan"]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["{"], "0.json is not JSON"),
        (["[" * 100_000], "0.json is nested more than 100 levels deep; save"),
        ([{"Plans": []}], "0.json has neither SavingsPlans"),
        ([{"savingsPlans": {}}], "savingsPlans is not a list"),
        ([{"savingsPlans": [3]}], "number 1 is not a JSON object"),
        ([{"savingsPlans": [PLAN | {"savingsPlanType": "Quantum"}]}], "SavingsPlanType 'Quantum'; this version knows"),
        ([{"savingsPlans": [PLAN | {"savingsPlanArn": "sp-1"}]}], "SavingsPlanArn 'sp-1'"),
        ([{"savingsPlans": [PLAN | {"commitment": "expensive"}]}], "Commitment 'expensive'; write an amount of money"),
        ([{"savingsPlans": [PLAN | {"end": "2025-01-01T00:00:00Z"}]}], "not after it starts"),
        ([{"savingsPlans": [PLAN | {"end": "soon"}]}], "End 'soon'"),
        ([{"savingsPlans": [PLAN], "nextToken": "p2"}], "more pages belong to it"),
        ([{"savingsPlans": [PLAN]}, {"savingsPlans": [PLAN | {"commitment": "13"}]}], "than in"),
        ([{"ReservedInstances": [{}]}], "no ReservedInstancesId"),
    ],
)
def test_what_is_no_answer_is_left_out_by_name(tmp_path: Path, answers: list[Any], words: str) -> None:
    other = PLAN | {"savingsPlanArn": f"{PLAN['savingsPlanArn']}-other"}
    assert words in left_out([saved(tmp_path, *answers, {"savingsPlans": [other]})], other["savingsPlanArn"])


def test_an_empty_answer_is_reported(tmp_path: Path) -> None:
    inventory = read_commitments([saved(tmp_path, {"savingsPlans": []})])
    assert inventory.table.height == 0
    assert inventory.warnings == [
        "[[commitments]] bought contains no commitment; check its location, or remove the source."
    ]


def test_another_answer_is_another_fingerprint(tmp_path: Path) -> None:
    source = saved(tmp_path, {"savingsPlans": []})
    before = ANSWERS.fingerprint(source)
    (tmp_path / "commitments" / "0.json").write_text(json.dumps({"savingsPlans": [PLAN]}))
    assert ANSWERS.fingerprint(source) != before


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "unknown")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")


def test_aws_is_read_page_by_page(tmp_path: Path, credentials: None) -> None:
    other = PLAN | {"savingsPlanArn": PLAN["savingsPlanArn"] + "2"}
    with aws_answers() as answers:
        answers.pages["DescribeSavingsPlans"] = [
            {"savingsPlans": [PLAN], "nextToken": "p2"},
            {"savingsPlans": [other]},
        ]
        answers.pages["DescribeReservedInstances"] = [
            "<reservedInstancesSet><item><reservedInstancesId>1a2b3c</reservedInstancesId><instanceType>p4d.24xlarge"
            "</instanceType><start>2026-01-01T00:00:00.000Z</start><duration>31536000</duration><fixedPrice>0.0</fixedPrice>"
            "<instanceCount>2</instanceCount><state>active</state><currencyCode>USD</currencyCode>"
            "<offeringType>No Upfront</offeringType><recurringCharges><item><frequency>Hourly</frequency>"
            "<amount>3.0</amount></item></recurringCharges></item></reservedInstancesSet>"
        ]
        source = AnswerSource(name="read", kind="aws", regions=("us-west-2",), endpoint_url=answers.url)
        rows = read_commitments([source]).table.to_dicts()
        calls = [*answers.calls]
        # A saved answer of the same reservation has no region.
        copy = RESERVED | {"FixedPrice": 0.0, "OfferingType": "No Upfront", "RecurringCharges": [{"Amount": 3.0}]}
        copy.pop("End")
        again = read_commitments([source, saved(tmp_path, {"ReservedInstances": [copy]})]).table.to_dicts()
    # The reservation covers every zone of the region that answered.
    assert [row["region_id"] for row in (rows[0], again[0])] == ["us-west-2", "us-west-2"]
    assert calls == ["DescribeSavingsPlans 1", "DescribeSavingsPlans 2", "DescribeReservedInstances 1"]
    assert [(row["commitment_kind"], row["commitment_per_hour"]) for row in rows] == [
        ("reserved_instance", Decimal("6")),
        ("ec2_instance_savings_plan", Decimal("12.5")),
        ("ec2_instance_savings_plan", Decimal("12.5")),
    ]


def test_a_denied_call_names_its_permission(credentials: None) -> None:
    with aws_answers() as answers:
        answers.errors["DescribeSavingsPlans"] = "AccessDeniedException"
        source = AnswerSource(name="read", kind="aws", regions=("us-west-2",), endpoint_url=answers.url)
        with pytest.raises(SourceError, match="grant savingsplans:DescribeSavingsPlans"):
            read_commitments([source])


def test_credentials_out_of_date_are_reported_as_such(credentials: None) -> None:
    """Called once: what is out of date stays so, and no permission is missing."""
    with aws_answers() as answers:
        answers.errors["DescribeSavingsPlans"] = "ExpiredTokenException"
        source = AnswerSource(name="read", kind="aws", regions=("us-west-2",), endpoint_url=answers.url)
        with pytest.raises(SourceError, match="the credentials are not accepted") as refused:
            read_commitments([source])
        assert answers.calls == ["DescribeSavingsPlans 1"]
    assert "grant" not in str(refused.value)


def test_a_contract_of_a_charge_is_its_commitment_an_agreement_or_a_warning(tmp_path: Path) -> None:
    """sp-1 is listed, EDP declared, sp-2 the commitment of usage at its price: only 7 of sp-9 are of no known contract.

    The id of a charge at a committed price that names two contracts is unknown.
    """
    applied = '{"Elements": [%s]}'
    element = '{"ContractID": "c", "ContractCommitmentID": "%s", "ContractCommitmentAppliedCost": 1}'
    charges = (
        (["sp-1"], "Standard", "10"), (["EDP"], "Standard", "5"), (["sp-9"], "Standard", "7"), ([], "Standard", "1"),
        (["sp-2"], "Committed", "3"), (["EDP", "sp-3"], "Committed", "4"),
    )  # fmt: skip
    lines = [
        {
            "BilledCost": "0" if category == "Committed" else cost,
            "EffectiveCost": cost,
            "PricingCategory": category,
            "ChargePeriodStart": "2026-07-14T10:00:00Z",
            "ChargePeriodEnd": "2026-07-14T11:00:00Z",
            "ContractApplied": names and applied % ", ".join(element % name for name in names),
        }
        for names, category, cost in charges
    ]
    config = write_config(tmp_path, billing=write_focus_export(tmp_path, {"2026-07": lines}))
    malformed = contracts(ContractCommitmentCost="much").splitlines()[1]
    (tmp_path / "contracts.csv").write_text(f"{contracts().strip()}\n{malformed}\n")
    period = '{first_month = "2026-01", last_month = "2026-12", commitment_usd = "100"}'
    config.write_text(
        config.read_text()
        + f'\n[[commitments]]\nname = "focus"\nlocation = "{tmp_path / "contracts.csv"}"\n'
        + f'\n[[terms.agreements]]\nname = "EDP"\nperiods = [{period}]\n'
    )
    table = "detail_commitment_reconciliation"
    builder = publish_tables(config, [table, "stg_aws__charge_kind"])
    found = ask(builder, f"select commitment_id, commitment_kind, reconciliation_status from {table} order by all")
    assert found.rows() == [
        (f"{tmp_path}/contracts.csv line 3", None, "cannot be read"),
        ("sp-1", "compute_savings_plan", "active, but on no bill"),
        ("sp-2", "reserved_instance", "on the bill only"),
        ("sp-9", "contract", "on the bill only"),
    ]
    rules = ask(builder, "select effective_rule from stg_aws__charge_kind order by all")
    assert rules.rows() == [("as_billed",), ("reservation",)]
    (check,) = (each for each in load_contract(f"detail/{table}").checks if each.name.startswith("charges_of"))
    with open_tables(builder, [table, "stg_aws__invoice_total", "stg_aws__commitment"]) as engine:
        assert engine.query(failing_rows(check, table)).rows() == [("000011112222", "USD", "sp-9", 1, Decimal("7"))]
    assert check.fix.startswith("Add the ContractCommitment file that lists it")
