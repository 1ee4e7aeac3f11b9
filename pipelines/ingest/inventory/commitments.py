"""Commitments as AWS or saved answers tell them: DescribeSavingsPlans and DescribeReservedInstances.

The bill shows what a commitment cost in each month; when it ends, how it is paid and what was bought stands here, and
what the two tell differently is reported (detail_commitment_reconciliation).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines.base.errors import SourceError
from pipelines.base.parse import ParseError, parse_json
from pipelines.config.sources import CommitmentSource
from pipelines.ingest.inventory.aws_answer import amount, count, moment
from pipelines.warehouse.storage import Object, Store
from pipelines.warehouse.stores import open_store

_AT = pl.Datetime("ms")
# Times are naive UTC; `commitment_per_hour` is in the currency of the row.
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "source_name": pl.String,
    "commitment_discount_id": pl.String,
    "commitment_kind": pl.String,
    "account_id": pl.String,
    "region_id": pl.String,
    "instance_family": pl.String,
    "payment_option": pl.String,
    "purchase_term": pl.String,
    "started_at": _AT,
    "ended_at": _AT,
    "commitment_per_hour": pl.Decimal(20, 10),
    "currency": pl.String,
    "state": pl.String,
}
_KINDS = {
    "Compute": "compute_savings_plan",
    "EC2Instance": "ec2_instance_savings_plan",
    "SageMaker": "sagemaker_savings_plan",
    "Database": "database_savings_plan",
}
_SHAPES = "SavingsPlans (describe-savings-plans) or ReservedInstances (describe-reserved-instances)"
_LARGEST_BYTES = 64 << 20


@dataclass(frozen=True)
class Commitments:
    """All commitments as a table of SCHEMA, and what was read with a doubt, one sentence each."""

    table: pl.DataFrame
    warnings: list[str] = field(default_factory=list)


def read_commitments(sources: Sequence[CommitmentSource]) -> Commitments:
    """Everything all sources tell. Raises SourceError for what is no commitment, or is told in two ways."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    warnings: list[str] = []
    for source in sources:
        seen = 0
        for answer, where in _answers(source, warnings):
            for place, row in commitments_in(answer, where):
                seen += 1
                row["source_name"] = source.name
                known = found.get(row["commitment_discount_id"])
                if known and known[1] | {"source_name": source.name} != row:
                    raise SourceError(
                        f"{row['commitment_discount_id']} is told in one way by {known[0]} and in another by {place}; "
                        "keep the newer answer."
                    )
                found[row["commitment_discount_id"]] = place, row
        if not seen:
            warnings.append(f"[[commitments]] {source.name} tells of no commitment.")
    rows = [row for _, row in found.values()]
    return Commitments(pl.DataFrame(rows, schema=SCHEMA).sort("commitment_discount_id"), sorted(warnings))


def commitments_fingerprint(source: CommitmentSource) -> str:
    """A digest that changes with what a source tells: of one listing of files, or of the answers of the API."""
    seal = hashlib.sha256(f"{source!r}\n".encode())
    if source.kind == "aws":
        for answer, _ in _answers(source, []):
            seal.update(repr(answer).encode())
    else:
        for item in _files(source)[1]:
            seal.update(f"{item.key} {item.size} {item.etag}\n".encode())
    return seal.hexdigest()


def commitments_in(answer: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The commitments of one answer and where each stands; SourceError naming the field for what is none."""
    readers = {"SavingsPlans": _plan, "savingsPlans": _plan, "ReservedInstances": _reserved}
    known = [name for name in readers if isinstance(answer, Mapping) and name in answer]
    if not known:
        raise SourceError(f"{where} has neither {_SHAPES}; save the answer of one of those calls.")
    for name in known:
        if not isinstance(answer[name], list):
            raise SourceError(f"{where}: {name} is not a list; save the whole answer.")
        for number, entry in enumerate(answer[name], 1):
            place = f"{where} {name} number {number}"
            if not isinstance(entry, Mapping):
                raise SourceError(f"{place} is no JSON object; save the whole answer.")
            row = readers[name]({key[:1].upper() + key[1:]: value for key, value in entry.items()}, place)
            if row["started_at"] and row["ended_at"] and row["ended_at"] <= row["started_at"]:
                raise SourceError(f"{place} ends at {row['ended_at']}, not after it starts; mend the times.")
            yield place, row


def _plan(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    arn = str(entry.get("SavingsPlanArn") or "")
    if ":savingsplan/" not in arn:
        raise SourceError(f"{where} has SavingsPlanArn {arn[:80]!r}; save the whole answer.")
    kind = _KINDS.get(str(entry.get("SavingsPlanType")))
    if kind is None:
        raise SourceError(
            f"{where} has SavingsPlanType {str(entry.get('SavingsPlanType'))[:80]!r}; {', '.join(_KINDS)} are read."
        )
    bound = kind == "ec2_instance_savings_plan"
    return {
        "commitment_discount_id": arn,
        "commitment_kind": kind,
        "account_id": arn.split(":")[4] or None,
        "region_id": _text(entry, "Region") if bound else None,
        "instance_family": _text(entry, "Ec2InstanceFamily"),
        "payment_option": _text(entry, "PaymentOption"),
        "purchase_term": _term(entry.get("TermDurationInSeconds"), where),
        "started_at": moment(entry.get("Start"), f"{where} has Start"),
        "ended_at": moment(entry.get("End"), f"{where} has End"),
        "commitment_per_hour": amount(entry.get("Commitment"), f"{where} has Commitment"),
        "currency": _text(entry, "Currency") or _text(entry, "CurrencyCode"),
        "state": _text(entry, "State"),
    }


def _reserved(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    name = _text(entry, "ReservedInstancesId")
    if name is None:
        raise SourceError(f"{where} has no ReservedInstancesId; save the whole answer.")
    family = (_text(entry, "InstanceType") or "").partition(".")[0]
    return {
        "commitment_discount_id": name,
        "commitment_kind": "reserved_instance",
        "account_id": None,
        "region_id": (_text(entry, "AvailabilityZone") or "").rstrip("abcdefghij") or None,
        "instance_family": family or None,
        "payment_option": _text(entry, "OfferingType"),
        "purchase_term": _term(entry.get("Duration"), where),
        "started_at": moment(entry.get("Start"), f"{where} has Start"),
        "ended_at": moment(entry.get("End"), f"{where} has End"),
        "commitment_per_hour": _hourly(entry, where),
        "currency": _text(entry, "CurrencyCode"),
        "state": _text(entry, "State"),
    }


def _hourly(entry: Mapping[str, Any], where: str) -> Decimal | None:
    """What all instances of a reservation cost an hour, the upfront price spread over the term."""
    instances = count(entry.get("InstanceCount"), f"{where} has InstanceCount")
    seconds = count_of_seconds(entry.get("Duration"), where)
    if instances is None or not seconds:
        return None
    upfront = amount(entry.get("FixedPrice"), f"{where} has FixedPrice") or Decimal(0)
    charges = entry.get("RecurringCharges") or []
    hourly = sum((amount(charge.get("Amount"), f"{where} has Amount") or Decimal(0) for charge in charges), Decimal(0))
    return (instances * (hourly + upfront * 3600 / seconds)).quantize(Decimal("1e-10"))


def count_of_seconds(value: Any, where: str) -> int | None:
    """A term in seconds."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not str(value).isascii() or not str(value).isdigit():
        raise SourceError(f"{where} has the term {str(value)[:80]!r}; write a whole number of seconds.")
    return int(value)


def _term(value: Any, where: str) -> str | None:
    seconds = count_of_seconds(value, where)
    # A year with a leap day is a year.
    return None if not seconds else f"{max(round(seconds / (365 * 86_400)), 1)}yr"


def _text(entry: Mapping[str, Any], name: str) -> str | None:
    return str(entry[name]).strip() or None if entry.get(name) is not None else None


def _answers(source: CommitmentSource, warnings: list[str]) -> Iterator[tuple[Any, str]]:
    """Each answer of a source with the words for where it is from."""
    if source.kind == "aws":
        from pipelines.ingest.inventory.commitment_api import ask_aws

        yield from ask_aws(source)
        return
    store, files, others = _files(source)
    if others:
        warnings.append(f"{source.location}: {others} other files are passed over; .json is read.")
    for item in files:
        where = store.uri(item.key)
        if item.size > _LARGEST_BYTES:
            raise SourceError(f"{where} has {item.size:,} bytes, more than commitments take; check what it is.")
        try:
            answer = parse_json(store.read(item.key))
        except ParseError as error:
            raise SourceError(f"{where} {error}; save the answer of AWS as it came.") from None
        # Recorders keep the answer under `data`, beside its status.
        if isinstance(answer, dict) and isinstance(answer.get("data"), dict):
            answer = answer["data"]
        if isinstance(answer, dict) and (answer.get("nextToken") or answer.get("NextToken")):
            raise SourceError(f"{where} has a next token, so more pages belong to it; save them all in one answer.")
        yield answer, where


def _files(source: CommitmentSource) -> tuple[Store, list[Object], int]:
    """The store, the JSON files in it by key, and how many other files lie there; the location may be one file."""
    location = str(source.location)
    folder, _, name = location.rstrip("/").rpartition("/")
    is_file = name.endswith(".json")
    place = folder if is_file else location
    store = open_store(place, endpoint_url=source.endpoint_url, region=source.region, profile=source.profile)
    listed = [item for item in store.list(name) if item.key == name] if is_file else list(store.list())
    if is_file and not listed:
        raise SourceError(f"{location} does not exist; check `location` of [[commitments]] {source.name}.")
    files = [item for item in listed if item.key.endswith(".json")]
    return store, files, len(listed) - len(files)
