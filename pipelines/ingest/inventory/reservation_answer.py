"""Answers of DescribeCapacityReservations, DescribeCapacityBlocks and SageMaker's training plans as Reservations.

The same shapes come from boto3 (times as datetimes) and from JSON that somebody saved (times as text, or as seconds
since 1970, which older command lines write).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.ingest.inventory.aws_answer import amount, count, moment
from pipelines.ingest.inventory.reservation import BLOCK, ODCR, PLAN, Reservation

_TYPES = {"default": ODCR, "capacity-block": BLOCK}
_EC2_ID = re.compile(r"cr-[0-9a-z]+")
_PLAN_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):(\d+):training-plan/[A-Za-z0-9-]+")
_SHAPES = "CapacityReservations, CapacityBlocks, TrainingPlanSummaries or TrainingPlanArn"


def reservations_in(answer: Any, where: str) -> Iterator[Reservation]:
    """The reservations of one answer; SourceError naming `where` and the field for what is none."""
    if not isinstance(answer, Mapping):
        raise SourceError(f"{where} is no JSON object; save an answer with {_SHAPES}.")
    readers = {"CapacityReservations": _reservation, "CapacityBlocks": _block, "TrainingPlanSummaries": _plan}
    known = [name for name in readers if name in answer]
    if "TrainingPlanArn" in answer:
        yield from _plan(answer, where)
    elif not known:
        raise SourceError(f"{where} has none of {_SHAPES}; save the answer of one of those calls.")
    for name in known:
        entries = answer[name]
        if not isinstance(entries, list):
            raise SourceError(f"{where}: {name} is not a list; save the whole answer.")
        for number, entry in enumerate(entries, 1):
            place = f"{where} {name} number {number}"
            if not isinstance(entry, Mapping):
                raise SourceError(f"{place} is no JSON object; save the whole answer.")
            yield from readers[name](entry, place)


def reservation_id(value: Any, kind: str, where: str) -> str:
    """An id as the bill names it: cr-… of EC2, the whole ARN of a training plan."""
    found = (_PLAN_ARN if kind == PLAN else _EC2_ID).search(str(value or ""))
    if not found:
        form = "the ARN of a training plan" if kind == PLAN else "cr-…"
        raise SourceError(f"{where} has the id {str(value)[:80]!r}; write {form}.")
    return found[0]


def _reservation(entry: Mapping[str, Any], where: str) -> Iterator[Reservation]:
    kind = _TYPES.get(entry.get("ReservationType") or "default")
    if kind is None:
        known = " and ".join(_TYPES)
        raise SourceError(f"{where} has ReservationType {str(entry['ReservationType'])[:80]!r}; {known} are read.")
    began = "StartDate" if entry.get("StartDate") else "CreateDate"
    yield Reservation(
        where=where,
        reservation_id=reservation_id(entry.get("CapacityReservationId"), kind, where),
        reservation_kind=kind,
        account_id=_text(entry.get("OwnerId")),
        region_id=_region(entry),
        instance_type=_text(entry.get("InstanceType")),
        instance_count=count(entry.get("TotalInstanceCount"), f"{where} has TotalInstanceCount"),
        started_at=moment(entry.get(began), f"{where} has {began}"),
        ended_at=moment(entry.get("EndDate"), f"{where} has EndDate"),
        state=_text(entry.get("State")),
    )


def _block(entry: Mapping[str, Any], where: str) -> Iterator[Reservation]:
    """The reservations a block consists of: their window and UltraServer; type and count are told elsewhere."""
    for held in entry.get("CapacityReservationIds") or ():
        yield Reservation(
            where=where,
            reservation_id=reservation_id(held, BLOCK, where),
            reservation_kind=BLOCK,
            region_id=_region(entry),
            started_at=moment(entry.get("StartDate"), f"{where} has StartDate"),
            ended_at=moment(entry.get("EndDate"), f"{where} has EndDate"),
            ultraserver_type=_text(entry.get("UltraserverType")),
            state=_text(entry.get("State")),
            is_detail=True,
        )


def _plan(entry: Mapping[str, Any], where: str) -> Iterator[Reservation]:
    """A training plan: a part for each capacity it reserves, the fee of the whole on the first."""
    arn = reservation_id(entry.get("TrainingPlanArn"), PLAN, where)
    _, _, _, region, account, _ = arn.split(":", 5)
    parts = []
    for capacity in entry.get("ReservedCapacitySummaries") or ({},):
        # A capacity that tells no window of its own has the plan's.
        told = {**entry, **{name: value for name, value in capacity.items() if value is not None}}
        parts.append(
            Reservation(
                where=where,
                reservation_id=arn,
                reservation_kind=PLAN,
                account_id=account,
                region_id=region,
                instance_type=_text(told.get("InstanceType")),
                instance_count=count(told.get("TotalInstanceCount"), f"{where} has TotalInstanceCount"),
                started_at=moment(told.get("StartTime"), f"{where} has StartTime"),
                ended_at=moment(told.get("EndTime"), f"{where} has EndTime"),
                ultraserver_type=_text(told.get("UltraServerType")),
                state=_text(entry.get("Status")),
            )
        )
    fee, currency = amount(entry.get("UpfrontFee"), f"{where} has UpfrontFee"), _text(entry.get("CurrencyCode"))
    for number, part in enumerate(sorted(parts, key=lambda part: (str(part.started_at), str(part.instance_type))), 1):
        first = {"upfront_fee": fee, "currency": currency} if number == 1 else {}
        yield Reservation(**{**part.__dict__, "part_no": number, **first})


def _region(entry: Mapping[str, Any]) -> str | None:
    arn = str(entry.get("CapacityReservationArn") or "").split(":")
    zone = str(entry.get("AvailabilityZone") or "")
    return (arn[3] if len(arn) > 5 else None) or re.sub(r"[a-z]$", "", zone) or None


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") else None
