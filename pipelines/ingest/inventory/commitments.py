"""Savings Plans and Reserved Instances: answers of DescribeSavingsPlans and DescribeReservedInstances, or FOCUS's
ContractCommitment.

The bill shows the monthly cost of a commitment; its end, payment option and purchase come from here, and differences
between the two are reported (detail_commitment_reconciliation).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import polars as pl

from pipelines.base.aws import requesting
from pipelines.base.errors import MalformedError, counted
from pipelines.config.sources import AnswerSource
from pipelines.ingest.inventory import answers
from pipelines.ingest.inventory.answers import LEFT_OUT, Answers, Entry, Inventory, Row, Table, kept, values_of
from pipelines.ingest.schema import schema

# `commitment_per_hour` is in the currency of the row.
SCHEMA = schema(
    "source_name commitment_discount_id commitment_kind account_id region_id instance_family payment_option "
    "purchase_term started_at ended_at commitment_per_hour:money currency state"
)
_KINDS = {
    "Compute": "compute_savings_plan",
    "EC2Instance": "ec2_instance_savings_plan",
    "SageMaker": "sagemaker_savings_plan",
    "Database": "database_savings_plan",
}
# In the words of FOCUS's ContractCommitment, whose kind of plan only its name shows; the first that fits counts.
_WORDED = {
    "reserved": "reserved_instance",
    "ec2instance": "ec2_instance_savings_plan",
    "sagemaker": "sagemaker_savings_plan",
    "machinelearning": "sagemaker_savings_plan",
    "database": "database_savings_plan",
    "savingsplan": "compute_savings_plan",
}
# Not null in FOCUS 1.3 and 1.4 (facts standards-2026 1.6).
_CONTRACT = (
    "ContractId", "ContractCommitmentId", "ContractCommitmentType", "ContractCommitmentCategory",
    "ContractCommitmentPeriodStart", "ContractCommitmentPeriodEnd", "BillingCurrency",
)  # fmt: skip
_SHAPES = "SavingsPlans (describe-savings-plans) or ReservedInstances (describe-reserved-instances)"
_PLANS, _RESERVED = "savingsplans:DescribeSavingsPlans", "ec2:DescribeReservedInstances"
# Longer than any term, in seconds.
_LONGEST = 10**10


def read_commitments(sources: Sequence[AnswerSource]) -> Inventory:
    """The commitments of all sources; what is malformed, or has other values elsewhere, is a row without its kind."""
    found: dict[str, Row] = {}
    warnings: list[str] = []
    for source in sources:
        read = partial(_commitments_in, warnings=warnings)
        rows = [*kept(ANSWERS.read(source, warnings), read, warnings, _unread)]
        for row in rows:
            row["source_name"] = source.name
            name = row["commitment_discount_id"]
            known = found.setdefault(name, row)
            # A saved answer does not have the region that was queried.
            known["region_id"] = known["region_id"] or row["region_id"]
            if any(known[column] != row[column] for column in SCHEMA if column not in ("source_name", "region_id")):
                warnings.append(
                    f"{name} has other values in {known['where']} than in {row['where']}; keep the newer answer. "
                    f"{LEFT_OUT}"
                )
                found[name] = (
                    known | dict.fromkeys(SCHEMA) | {"source_name": source.name, "commitment_discount_id": name}
                )
        if not rows:
            warnings.append(
                f"[[commitments]] {source.name} contains no commitment; check its location, or remove the source."
            )
    return Inventory(pl.DataFrame([*found.values()], schema=SCHEMA).sort("commitment_discount_id"), sorted(warnings))


def _unread(name: str) -> Iterator[Row]:
    """What stands for a commitment that cannot be read: nothing is known of it, so no advice may rest on the rest."""
    yield dict.fromkeys(SCHEMA) | {"commitment_discount_id": name}


def _queried(source: AnswerSource, warnings: list[str]) -> Iterator[tuple[str, Any]]:
    """The answers of AWS: the Savings Plans of the account, and the Reserved Instances of each region."""
    where = f"[[commitments]] {source.name}"
    plans = ANSWERS.client(source, "savingsplans", source.queried_regions[0])
    token: dict[str, Any] = {}
    while True:
        with requesting(where, _PLANS):
            answer = plans.describe_savings_plans(**token)
        yield f"{where} {_PLANS}", answers.content(answer)
        if not answer.get("nextToken"):
            break
        token = {"nextToken": answer["nextToken"]}
    for region in source.queried_regions:
        client = ANSWERS.client(source, "ec2", region)
        with requesting(where, _RESERVED):
            answer = client.describe_reserved_instances()
        # A reservation of a whole region names no zone: the region is the one that answers.
        held = [{"Region": client.meta.region_name, **one} for one in answer.get("ReservedInstances", [])]
        yield f"{where}, {client.meta.region_name} {_RESERVED}", answers.content(answer | {"ReservedInstances": held})


ANSWERS = Answers("commitments", (".json", ".csv", ".parquet"), _queried)


def _commitments_in(answer: Any, where: str, warnings: list[str]) -> Iterator[Row]:
    """The commitments of one answer; MalformedError with the field at fault."""
    if isinstance(answer, Table):
        yield from _contracted(answer, where, warnings)
        return
    readers = {"SavingsPlans": _plan, "savingsPlans": _plan, "ReservedInstances": _reserved}
    known = [name for name in readers if isinstance(answer, Mapping) and name in answer]
    if not known:
        raise MalformedError(f"{where} has neither {_SHAPES}; save the answer of one of those calls.")
    for name in known:
        read = partial(_commitment, readers[name])
        yield from kept(answers.entries(answer, name, where), read, warnings, _unread)


def _commitment(read: Callable[[Entry, str], Row], entry: Entry, where: str) -> Iterator[Row]:
    entry = {key[:1].upper() + key[1:]: value for key, value in entry.items()}
    row = read(entry, where) | {
        "payment_option": answers.text(entry, "PaymentOption") or answers.text(entry, "OfferingType"),
        "currency": answers.text(entry, "Currency") or answers.text(entry, "CurrencyCode"),
        **values_of(entry, where, SCHEMA, started_at="Start", ended_at="End", state="State"),
    }
    _refuse_no_term(row, where)
    yield row


def _contracted(table: Table, where: str, warnings: list[str]) -> Iterator[Row]:
    """The Savings Plans and reservations of FOCUS's ContractCommitment; other contracts are left out by name."""
    if missing := [name for name in _CONTRACT if name not in table.names]:
        raise MalformedError(
            f"{where} has no column {missing[0]}; FOCUS's ContractCommitment has it. Answers of AWS are saved as JSON."
        )
    others: dict[str, str] = {}
    shares: list[str] = []
    yield from kept(table.rows, partial(_contract, others=others, shares=shares), warnings, _unread)
    if others:
        name, contract = next(iter(others.items()))
        warnings.append(
            f"{where}: {counted(len(others), 'contract', 'are')} no Savings Plan and no reservation, such as {name} "
            f"({contract}), and left out. Declare agreements on spend as [[terms.agreements]]."
        )
    if shares:
        warnings.append(
            f"{shares[0]} has a ContractCommitmentPaymentUpfrontPercentage outside 0 to 1 "
            f"({counted(len(shares), 'row')}); it changes no cost. Have the file written by the ratified FOCUS 1.4."
        )


def _contract(row: Entry, where: str, others: dict[str, str], shares: list[str]) -> Iterator[Row]:
    """A row of ContractCommitment; notes it among `others` where it is of no kind, and odd upfront `shares`."""
    if empty := [name for name in _CONTRACT if not row[name].strip()]:
        raise MalformedError(f"{where} has no {empty[0]}; FOCUS requires it.")
    words = f"{row['ContractCommitmentType']} {row.get('ContractCommitmentDescription', '')}"
    plain = words.lower().replace(" ", "").replace("_", "")
    kind = next((kind for word, kind in _WORDED.items() if word in plain), None)
    if kind is None:
        others[row["ContractCommitmentId"]] = row["ContractCommitmentType"]
        return
    found = values_of(
        row, where, SCHEMA,
        commitment_discount_id="ContractCommitmentId",
        payment_option="ContractCommitmentPaymentModel",
        currency="BillingCurrency",
        started_at="ContractCommitmentPeriodStart",
        ended_at="ContractCommitmentPeriodEnd",
    )  # fmt: skip
    _refuse_no_term(found, where)
    # AWS ends a term at :59:59.
    hours = round((found["ended_at"] - found["started_at"]).total_seconds() / 3600)
    scope = answers.json_object(row, "ContractCommitmentApplicability", where)
    cost = answers.amount(row, "ContractCommitmentCost", where)
    share = answers.amount(row, "ContractCommitmentPaymentUpfrontPercentage", where)
    if share is not None and not 0 <= share <= 1:
        shares.append(where)
    found |= {
        "commitment_kind": kind,
        "region_id": answers.text(scope, "x_RegionId"),
        "instance_family": answers.text(scope, "x_InstanceFamily"),
        "purchase_term": _term(hours * 3600),
        "commitment_per_hour": None if cost is None or not hours else (cost / hours).quantize(Decimal("1e-10")),
        "state": row.get("ContractCommitmentLifecycleStatus", "").strip().lower() or None,
    }
    yield dict.fromkeys(SCHEMA) | found


def _refuse_no_term(row: Mapping[str, Any], where: str) -> None:
    if row["started_at"] and row["ended_at"] and row["ended_at"] <= row["started_at"]:
        raise MalformedError(f"{where} ends at {row['ended_at']}, not after it starts; fix the times.")


def _plan(entry: Entry, where: str) -> dict[str, Any]:
    arn = str(entry.get("SavingsPlanArn") or "")
    if ":savingsplan/" not in arn:
        raise MalformedError(f"{where} has SavingsPlanArn {arn[:80]!r}; save the whole answer.")
    kind = _KINDS.get(str(entry.get("SavingsPlanType")))
    if kind is None:
        raise MalformedError(
            f"{where} has SavingsPlanType {str(entry.get('SavingsPlanType'))[:80]!r}; this version knows "
            f"{', '.join(_KINDS)}."
        )
    return {
        "commitment_discount_id": arn,
        "commitment_kind": kind,
        "account_id": arn.split(":")[4] or None,
        "region_id": answers.text(entry, "Region") if kind == "ec2_instance_savings_plan" else None,
        "instance_family": answers.text(entry, "Ec2InstanceFamily"),
        "purchase_term": _term(answers.count(entry, "TermDurationInSeconds", where, "seconds", _LONGEST)),
        "commitment_per_hour": answers.amount(entry, "Commitment", where),
    }


def _reserved(entry: Entry, where: str) -> dict[str, Any]:
    name = answers.text(entry, "ReservedInstancesId")
    if name is None:
        raise MalformedError(f"{where} has no ReservedInstancesId; save the whole answer.")
    seconds = answers.count(entry, "Duration", where, "seconds", _LONGEST)
    return {
        "commitment_discount_id": name,
        "commitment_kind": "reserved_instance",
        "account_id": None,
        "region_id": answers.text(entry, "Region")
        or (answers.text(entry, "AvailabilityZone") or "").rstrip("abcdefghij")
        or None,
        "instance_family": (answers.text(entry, "InstanceType") or "").partition(".")[0] or None,
        "purchase_term": _term(seconds),
        "commitment_per_hour": _hourly(entry, seconds, where),
    }


def _hourly(entry: Entry, seconds: int | None, where: str) -> Decimal | None:
    """The hourly cost of all instances of a reservation, the upfront price spread over the term."""
    instances = answers.count(entry, "InstanceCount", where)
    if instances is None or not seconds:
        return None
    upfront = answers.amount(entry, "FixedPrice", where) or Decimal(0)
    charges = [answers.amount(charge, "Amount", where) or Decimal(0) for charge in entry.get("RecurringCharges") or []]
    return (instances * (sum(charges, Decimal(0)) + upfront * 3600 / seconds)).quantize(Decimal("1e-10"))


def _term(seconds: int | None) -> str | None:
    # A year with a leap day is a year.
    return None if not seconds else f"{max(round(seconds / (365 * 86_400)), 1)}yr"
