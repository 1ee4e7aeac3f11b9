"""Answers of DescribeCapacityReservations, DescribeCapacityBlocks and SageMaker's training plans as Reservations.

The same shapes come from boto3 (times as datetimes) and from saved JSON (times as text, or as seconds since 1970,
which older command lines write).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.ingest.inventory.answers import Entry, amount, count, entries, moment, text
from pipelines.ingest.inventory.reservation import BLOCK, ODCR, PLAN, Reservation

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
