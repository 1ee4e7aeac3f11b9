"""Reserved capacity: On-Demand Capacity Reservations, Capacity Blocks and SageMaker training plans.

The bill charges a block's fee on the day of purchase and never shows when the block runs; its window comes from here:
from answers of AWS, asked for or saved as JSON, or from a csv with our own columns. Records of one reservation from
several sources are joined.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import polars as pl

from pipelines.base import resources
from pipelines.base.aws import code_of, requesting
from pipelines.base.errors import SourceError
from pipelines.config.sources import ReservationSource
from pipelines.ingest.inventory.answers import (
    Entry,
    amount,
    client_of,
    count,
    entries,
    moment,
    saved_answer,
    saved_files,
    saved_text,
    source_digest,
    text,
)
from pipelines.warehouse.storage import Object, Store

ODCR, BLOCK, PLAN = KINDS = ("odcr", "capacity_block", "training_plan")
# AWS sells blocks and plans for half a year at most; every hour of one becomes a row.
LONGEST = timedelta(days=1100)
_AT = pl.Datetime("ms")
# The states of EC2's CapacityReservationState and CapacityBlockResourceState and SageMaker's TrainingPlanStatus
# (service models of botocore, 2026-11), in lower case.
_STATES = frozenset(
    {"active", "assessing", "cancelled", "cancelling", "delayed", "expired", "failed", "payment-failed",
     "payment-pending", "pending", "scheduled", "unavailable", "unsupported"}
)  # fmt: skip

# Times are naive UTC. A training plan may hold several capacities with windows of their own: one part each.
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(("source_name", "reservation_id"), pl.String),
    "part_no": pl.Int64,
    **dict.fromkeys(("reservation_kind", "account_id", "region_id", "instance_type"), pl.String),
    "instance_count": pl.Int64,
    "started_at": _AT,
    "ended_at": _AT,
    "ultraserver_type": pl.String,
    "upfront_fee": pl.Decimal(20, 10),
    "currency": pl.String,
    "state": pl.String,
}


@dataclass(frozen=True)
class Reservation:
    """One reservation, or one part of it, in one answer; `where` is the address of the entry.

    `is_detail`: an answer that only adds to DescribeCapacityReservations' answer about the same reservation.
    """

    where: str
    reservation_id: str
    reservation_kind: str
    part_no: int = 1
    source_name: str = ""
    account_id: str | None = None
    region_id: str | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    ultraserver_type: str | None = None
    upfront_fee: Decimal | None = None
    currency: str | None = None
    state: str | None = None
    is_detail: bool = False

    @property
    def duration(self) -> timedelta | None:
        """The length of the window; None while it is open."""
        return self.ended_at - self.started_at if self.started_at and self.ended_at else None

    @property
    def window(self) -> tuple[datetime | None, datetime | None]:
        return self.started_at, self.ended_at

    def warnings(self) -> Iterator[str]:
        """One sentence for each unexpected value."""
        name = f"{self.where}: {self.reservation_id}"
        if self.state is not None and self.state.lower() not in _STATES:
            yield f"{name} has the unknown state {self.state[:80]!r}; it counts as any other."
        if self.instance_count == 0:
            yield f"{name} has 0 instances; their number is read as unknown."
        if self.instance_type is not None and not _is_known(self.instance_type, self.reservation_kind):
            yield (
                f"{name} has the instance type {self.instance_type[:80]!r}, which is not in ref_instance_type.csv; "
                "check its spelling."
            )
        if self.reservation_kind != ODCR and self.duration is None:
            yield f"{name} has no window; its fee is spread over the hours on the bill."


def _is_known(instance_type: str, kind: str) -> bool:
    """Whether a type is listed, or of a family without accelerators, which an ODCR may be of."""
    plain = instance_type.removeprefix("ml.")
    family, dot, size = plain.partition(".")
    if plain in _accelerated() or kind != ODCR or not (family and dot and size):
        return plain in _accelerated()
    return family not in {known.partition(".")[0] for known in _accelerated()}


@cache
def _accelerated() -> frozenset[str]:
    with (resources.REFERENCE / "ref_instance_type.csv").open(encoding="utf-8", newline="") as listed:
        return frozenset(row["instance_type"] for row in csv.DictReader(listed) if row["accelerator_family"])


_TYPES = {"default": ODCR, "capacity-block": BLOCK}
_EC2_ID = re.compile(r"cr-[0-9a-z]+")
_PLAN_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):(\d+):training-plan/[A-Za-z0-9-]+")
_SHAPES = "CapacityReservations, CapacityBlocks, TrainingPlanSummaries or TrainingPlanArn"


def reservations_in(answer: Any, where: str) -> Iterator[Reservation]:
    """The reservations of one answer; SourceError naming `where` and the field at fault."""
    if not isinstance(answer, Mapping):
        raise SourceError(f"{where} is not a JSON object; save an answer with {_SHAPES}.")
    readers = {"CapacityReservations": _reservation, "CapacityBlocks": _block, "TrainingPlanSummaries": _plan}
    known = [name for name in readers if name in answer]
    if "TrainingPlanArn" in answer:
        yield from _plan(answer, where)
    elif not known:
        raise SourceError(f"{where} has none of {_SHAPES}; save the answer of one of those calls.")
    for name in known:
        for place, entry in entries(answer, name, where):
            yield from readers[name](entry, place)


def reservation_id(value: Any, kind: str, where: str) -> str:
    """An id as the bill names it: cr-… of EC2, the whole ARN of a training plan."""
    found = (_PLAN_ARN if kind == PLAN else _EC2_ID).search(str(value or ""))
    if not found:
        form = "the ARN of a training plan" if kind == PLAN else "cr-…"
        raise SourceError(f"{where} has the id {str(value)[:80]!r}; write {form}.")
    return found[0]


def _reservation(entry: Entry, where: str) -> Iterator[Reservation]:
    kind = _TYPES.get(entry.get("ReservationType") or "default")
    if kind is None:
        known = " and ".join(_TYPES)
        raise SourceError(f"{where} has ReservationType {str(entry['ReservationType'])[:80]!r}; {known} are supported.")
    began = "StartDate" if entry.get("StartDate") else "CreateDate"
    yield Reservation(
        where=where,
        reservation_id=reservation_id(entry.get("CapacityReservationId"), kind, where),
        reservation_kind=kind,
        account_id=text(entry, "OwnerId"),
        region_id=_region(entry),
        instance_type=text(entry, "InstanceType"),
        instance_count=count(entry, "TotalInstanceCount", where),
        started_at=moment(entry, began, where),
        ended_at=moment(entry, "EndDate", where),
        state=text(entry, "State"),
    )


def _block(entry: Entry, where: str) -> Iterator[Reservation]:
    """The reservations of a block: their window and UltraServer; type and count come from the other answer."""
    for held in entry.get("CapacityReservationIds") or ():
        yield Reservation(
            where=where,
            reservation_id=reservation_id(held, BLOCK, where),
            reservation_kind=BLOCK,
            region_id=_region(entry),
            started_at=moment(entry, "StartDate", where),
            ended_at=moment(entry, "EndDate", where),
            ultraserver_type=text(entry, "UltraserverType"),
            state=text(entry, "State"),
            is_detail=True,
        )


def _plan(entry: Entry, where: str) -> Iterator[Reservation]:
    """A training plan: a part for each capacity it reserves, the fee of the whole on the first."""
    arn = reservation_id(entry.get("TrainingPlanArn"), PLAN, where)
    _, _, _, region, account, _ = arn.split(":", 5)
    parts = []
    for capacity in entry.get("ReservedCapacitySummaries") or ({},):
        # A capacity without a window of its own has the plan's.
        part = {**entry, **{name: value for name, value in capacity.items() if value is not None}}
        parts.append(
            Reservation(
                where=where,
                reservation_id=arn,
                reservation_kind=PLAN,
                account_id=account,
                region_id=region,
                instance_type=text(part, "InstanceType"),
                instance_count=count(part, "TotalInstanceCount", where),
                started_at=moment(part, "StartTime", where),
                ended_at=moment(part, "EndTime", where),
                ultraserver_type=text(part, "UltraServerType"),
                state=text(entry, "Status"),
            )
        )
    fee, currency = amount(entry, "UpfrontFee", where), text(entry, "CurrencyCode")
    for number, part in enumerate(sorted(parts, key=lambda part: (str(part.started_at), str(part.instance_type))), 1):
        first = {"upfront_fee": fee, "currency": currency} if number == 1 else {}
        yield Reservation(**{**part.__dict__, "part_no": number, **first})


def _region(entry: Entry) -> str | None:
    arn = str(entry.get("CapacityReservationArn") or "").split(":")
    zone = str(entry.get("AvailabilityZone") or "")
    return (arn[3] if len(arn) > 5 else None) or re.sub(r"[a-z]$", "", zone) or None


SUFFIXES = (".json", ".csv")
_COLUMNS = tuple(name for name in SCHEMA if name != "source_name")
_REQUIRED = ("reservation_id", "reservation_kind", "started_at", "ended_at")
_TEXTS = ("account_id", "region_id", "instance_type", "ultraserver_type", "currency", "state")
# Service, paginator, and the permission of the same name.
_CALLS = (
    ("ec2", "describe_capacity_reservations", "ec2:DescribeCapacityReservations"),
    ("ec2", "describe_capacity_blocks", "ec2:DescribeCapacityBlocks"),
    ("sagemaker", "list_training_plans", "sagemaker:ListTrainingPlans"),
)
_UNSUPPORTED = ("InvalidAction", "UnknownOperation", "UnknownOperationException", "UnsupportedOperation")


@dataclass(frozen=True)
class Reservations:
    """All reservations as a table of SCHEMA, and the warnings of reading them, one sentence each."""

    table: pl.DataFrame
    warnings: list[str] = field(default_factory=list)


def read_reservations(sources: Sequence[ReservationSource]) -> Reservations:
    """The reservations of all sources. Raises SourceError for malformed ones, and for two that contradict."""
    found: list[Reservation] = []
    warnings: list[str] = []
    for source in sources:
        reservations, more = _queried(source) if source.kind == "aws" else _saved(source)
        found += [replace(reservation, source_name=source.name) for reservation in reservations]
        warnings += more
    joined = _joined(found)
    warnings += [warning for reservation in joined for warning in reservation.warnings()]
    rows = [{name: value for name, value in asdict(one).items() if name in SCHEMA} for one in joined]
    return Reservations(pl.DataFrame(rows, schema=SCHEMA).sort("reservation_id", "part_no"), sorted(warnings))


def reservations_fingerprint(source: ReservationSource) -> str:
    """A digest that changes with a source."""
    return source_digest(source, lambda: reservation_files(source)[1], lambda: _queried(source))


def reservation_files(source: ReservationSource, *, hurried: bool = False) -> tuple[Store, list[Object], list[str]]:
    """The store, its files of reservations, and the keys of other files; a `hurried` look soon gives up."""
    return saved_files(source, "reservations", SUFFIXES, hurried=hurried)


def _saved(source: ReservationSource) -> tuple[list[Reservation], list[str]]:
    """The reservations in the files of a source, and warnings; SourceError with file, row and fix."""
    store, files, others = reservation_files(source)
    found: list[Reservation] = []
    for item in files:
        where, text = store.uri(item.key), saved_text(store, item, "reservations")
        is_table = item.key.endswith(".csv")
        found += _rows(text, where) if is_table else reservations_in(saved_answer(text, where), where)
    warnings = [] if found else [f"{source.location} contains no reservation."]
    if others:
        warnings.append(f"{source.location}: {len(others)} files like {others[0]} are skipped; use {SUFFIXES}.")
    return found, warnings


def _rows(text: str, where: str) -> Iterator[Reservation]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        names = reader.fieldnames or ()
        if missing := [name for name in _REQUIRED if name not in names]:
            columns = f"column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            raise SourceError(f"{where} has no {columns}; the first line must name them (docs/reservations.md).")
        for name in names:
            if name not in _COLUMNS:
                raise SourceError(f"{where} has the column {name!r}; it may have {', '.join(_COLUMNS)}.")
        for row in reader:
            place = f"{where} line {reader.line_num}"
            if None in row or None in row.values():
                raise SourceError(f"{place} has not as many cells as the first line; fix it.")
            yield _row(row, place)
    except csv.Error as error:
        raise SourceError(f"{where} is not a csv ({error}); fix or remove it.") from None


def _row(row: dict[str, str], where: str) -> Reservation:
    kind = row["reservation_kind"]
    if kind not in KINDS:
        raise SourceError(f"{where} has reservation_kind {kind[:80]!r}; write one of {', '.join(KINDS)}.")
    texts: dict[str, Any] = {name: row.get(name) or None for name in _TEXTS}
    return Reservation(
        where=where,
        reservation_id=reservation_id(row["reservation_id"], kind, where),
        reservation_kind=kind,
        part_no=count(row, "part_no", where) or 1,
        instance_count=count(row, "instance_count", where),
        started_at=moment(row, "started_at", where),
        ended_at=moment(row, "ended_at", where),
        upfront_fee=amount(row, "upfront_fee", where),
        **texts,
    )


def _queried(source: ReservationSource) -> tuple[list[Reservation], list[str]]:
    """The answers of AWS in all configured regions, and a warning for each call a region does not support.

    Raises SourceError naming the permission that is missing, UnreachableError without an answer.
    """
    found: list[Reservation] = []
    warnings: list[str] = []
    for region in source.queried_regions:
        for service, call, permission in _CALLS:
            client = client_of(source, f"[[reservations]] {source.name}", service, region)
            place = f"[[reservations]] {source.name}, {client.meta.region_name}"
            pages = _pages(client, call, permission, place)
            if pages is None:
                warnings.append(f"{place}: {permission} is not supported here; such capacity is not read.")
            for page in pages or ():
                found += reservations_in(page, f"{place} {permission}")
    return found, warnings


def _pages(client: Any, call: str, permission: str, place: str) -> list[dict[str, Any]] | None:
    """All pages of a call; None where the region or endpoint does not support it."""
    from botocore.exceptions import ClientError

    with requesting(place, permission):
        try:
            return list(client.get_paginator(call).paginate())
        except ClientError as error:
            if code_of(error) in _UNSUPPORTED:
                return None
            raise


def _joined(found: Iterable[Reservation]) -> list[Reservation]:
    """One Reservation per id and part; SourceError where two have different windows, kinds or instance types."""
    whole: dict[tuple[str, int], Reservation] = {}
    details: dict[tuple[str, int], Reservation] = {}
    for one in found:
        if one.duration is not None and one.duration <= timedelta(0):
            raise SourceError(
                f"{one.where}: {one.reservation_id} ends at {one.ended_at}, not after it starts at {one.started_at}; "
                "fix the times."
            )
        if one.reservation_kind != ODCR and one.duration is not None and one.duration > LONGEST:
            raise SourceError(
                f"{one.where}: {one.reservation_id} runs from {one.started_at} to {one.ended_at}, longer than any "
                "that is sold; fix the times."
            )
        known = details if one.is_detail else whole
        key = (one.reservation_id, one.part_no)
        known[key] = _same(known[key], one) if key in known else one
    for key, detail in details.items():
        whole[key] = _filled(whole[key], detail) if key in whole else detail
    return list(whole.values())


def _same(first: Reservation, later: Reservation) -> Reservation:
    if first.window != later.window:
        one, other = (" to ".join(str(at or "open") for at in each.window) for each in (first, later))
        raise SourceError(
            f"{first.reservation_id} runs {one} in {first.where} and {other} in {later.where}; keep the right one."
        )
    for name in ("reservation_kind", "instance_type"):
        one, other = getattr(first, name), getattr(later, name)
        if None not in (one, other) and one != other:
            raise SourceError(
                f"{first.reservation_id} has the {name} {one} in {first.where} and {other} in {later.where}; keep the "
                "right one."
            )
    return _filled(later, first)


def _filled(one: Reservation, more: Reservation) -> Reservation:
    """A reservation with its unknown values taken from `more`."""
    gaps = {part.name: getattr(more, part.name) for part in fields(one) if getattr(one, part.name) is None}
    return replace(one, **gaps)
