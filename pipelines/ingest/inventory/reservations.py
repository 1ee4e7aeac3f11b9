"""Reserved capacity: On-Demand Capacity Reservations, Capacity Blocks and SageMaker training plans.

The bill charges a block's fee on the day of purchase and never shows when the block runs; its window comes from here:
from answers of AWS, queried or saved as JSON, or from a csv with our own columns. boto3 gives times as datetimes,
saved JSON as text, or as seconds since 1970 where an older command line wrote it. Records of one reservation from
several sources are joined.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import polars as pl

from pipelines.base.aws import code_of, requesting
from pipelines.base.errors import MalformedError
from pipelines.config.sources import AnswerSource
from pipelines.ingest.inventory import answers
from pipelines.ingest.inventory.answers import LEFT_OUT, Answers, Entry, Inventory, Row, Table, kept, values_of
from pipelines.ingest.schema import schema

_ODCR, _BLOCK, _PLAN = _KINDS = ("odcr", "capacity_block", "training_plan")
# AWS sells blocks and plans for half a year at most; every hour of one becomes a row.
_LONGEST = timedelta(days=1100)
# The states of EC2's CapacityReservationState and CapacityBlockResourceState and SageMaker's TrainingPlanStatus
# (service models of botocore, 2026-11), in lower case.
_STATES = frozenset(
    {"active", "assessing", "cancelled", "cancelling", "delayed", "expired", "failed", "payment-failed",
     "payment-pending", "pending", "scheduled", "unavailable", "unsupported"}
)  # fmt: skip
# A training plan may hold several capacities with windows of their own: one part each.
SCHEMA = schema(
    "source_name reservation_id part_no:count reservation_kind account_id region_id instance_type instance_count:count "
    "started_at ended_at ultraserver_type upfront_fee:money currency state"
)
_COLUMNS = tuple(name for name in SCHEMA if name != "source_name")
_REQUIRED = ("reservation_id", "reservation_kind", "started_at", "ended_at")
# Service, paginator, and the permission of the same name.
_CALLS = (
    ("ec2", "describe_capacity_reservations", "ec2:DescribeCapacityReservations"),
    ("ec2", "describe_capacity_blocks", "ec2:DescribeCapacityBlocks"),
    ("sagemaker", "list_training_plans", "sagemaker:ListTrainingPlans"),
)
_UNSUPPORTED = ("InvalidAction", "UnknownOperation", "UnknownOperationException", "UnsupportedOperation")
_TYPES = {"default": _ODCR, "capacity-block": _BLOCK}
_EC2_ID = re.compile(r"cr-[0-9a-z]+")
_PLAN_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):(\d+):training-plan/[A-Za-z0-9-]+")
_SHAPES = "CapacityReservations, CapacityBlocks, TrainingPlanSummaries or TrainingPlanArn"


def read_reservations(sources: Sequence[AnswerSource], families: Mapping[str, str]) -> Inventory:
    """The reservations of all sources; `families` has the accelerator family of each instance type.

    What is malformed, or has other values elsewhere, is left out with a warning.
    """
    found: list[Row] = []
    warnings: list[str] = []
    for source in sources:
        read, known = partial(_reservations_in, warnings=warnings), len(warnings)
        own = [
            dict.fromkeys(SCHEMA) | {"part_no": 1, "source_name": source.name} | row
            for row in kept(ANSWERS.read(source, warnings), read, warnings)
        ]
        if source.kind == "file" and not own and LEFT_OUT not in "".join(warnings[known:]):
            warnings.append(f"{source.location} contains no reservation; check the location, or remove the source.")
        found += own
    joined = _joined(found, warnings)
    warnings += [warning for row in joined for warning in _warnings(row, families)]
    return Inventory(pl.DataFrame(joined, schema=SCHEMA).sort("reservation_id", "part_no"), sorted(warnings))


def _queried(source: AnswerSource, warnings: list[str]) -> Iterator[tuple[str, Any]]:
    """The answers of AWS in all configured regions, and a warning for each call a region does not support.

    Raises SourceError naming the permission that is missing, UnreachableError without an answer.
    """
    from botocore.exceptions import ClientError

    for region in source.queried_regions:
        for service, call, permission in _CALLS:
            client = ANSWERS.client(source, service, region)
            place = f"[[reservations]] {source.name}, {client.meta.region_name}"
            with requesting(place, permission):
                try:
                    pages = list(client.get_paginator(call).paginate())
                except ClientError as error:
                    if code_of(error) not in _UNSUPPORTED:
                        raise
                    warnings.append(
                        f"{place}: {permission} is not supported here; such capacity is not read. Name it in a file "
                        "if you hold it."
                    )
                    continue
            for page in pages:
                yield f"{place} {permission}", answers.content(page)


ANSWERS = Answers("reservations", (".json", ".csv"), _queried)


def _reservations_in(answer: Any, where: str, warnings: list[str]) -> Iterator[Row]:
    """The reservations of one answer; MalformedError naming `where` and the field at fault."""
    if isinstance(answer, Table):
        _check_columns(answer.names, where)
        yield from kept(answer.rows, _declared, warnings, partial(_unread, dict(answer.rows)))
        return
    if not isinstance(answer, Mapping):
        raise MalformedError(f"{where} is not a JSON object; save an answer with {_SHAPES}.")
    readers = {"CapacityReservations": _reservation, "CapacityBlocks": _block, "TrainingPlanSummaries": _plan}
    known = [name for name in readers if name in answer]
    if "TrainingPlanArn" in answer:
        yield from _plan(answer, where)
    elif not known:
        raise MalformedError(f"{where} has none of {_SHAPES}; save the answer of one of those calls.")
    for name in known:
        yield from kept(answers.entries(answer, name, where), readers[name], warnings)


def _check_columns(names: Sequence[str], where: str) -> None:
    if missing := [name for name in _REQUIRED if name not in names]:
        columns = f"column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        raise MalformedError(f"{where} has no {columns}; the first line must name them (docs/reservations.md).")
    for name in names:
        if name not in _COLUMNS:
            raise MalformedError(f"{where} has the column {name!r}; it may have {', '.join(_COLUMNS)}.")


def _unread(rows: Mapping[str, Entry | MalformedError], where: str) -> Iterator[Row]:
    """What a malformed line may be a part of: its reservation or, where it names none, any training plan of the csv."""
    line = rows[where]
    own = [line] if isinstance(line, Mapping) else [row for row in rows.values() if isinstance(row, Mapping)]
    for row in own:
        if row is line or row["reservation_kind"] == _PLAN:
            with suppress(MalformedError):
                yield {"reservation_id": _id(row["reservation_id"], row["reservation_kind"], where), "is_unread": True}


def _declared(row: Entry, where: str) -> Iterator[Row]:
    """The reservation of a line of a csv."""
    kind = row["reservation_kind"]
    if kind not in _KINDS:
        raise MalformedError(f"{where} has reservation_kind {kind[:80]!r}; write one of {', '.join(_KINDS)}.")
    found = values_of(row, where, SCHEMA, **{name: name for name in row})
    found["part_no"] = found.get("part_no") or 1
    yield found | {"reservation_id": _id(row["reservation_id"], kind, where)}


def _reservation(entry: Entry, where: str) -> Iterator[Row]:
    kind = _TYPES.get(entry.get("ReservationType") or "default")
    if kind is None:
        known = " and ".join(_TYPES)
        raise MalformedError(
            f"{where} has ReservationType {str(entry['ReservationType'])[:80]!r}; {known} are supported."
        )
    names = {"account_id": "OwnerId", "instance_type": "InstanceType", "instance_count": "TotalInstanceCount"}
    names |= {"started_at": "StartDate" if entry.get("StartDate") else "CreateDate"}
    held = {"reservation_id": _id(entry.get("CapacityReservationId"), kind, where), "reservation_kind": kind}
    held |= values_of(entry, where, SCHEMA, **names, ended_at="EndDate", state="State")
    yield held | {"region_id": _region(entry)}


def _block(entry: Entry, where: str) -> Iterator[Row]:
    """The reservations of a block: their window and UltraServer; type and count come from the other answer."""
    names = {"started_at": "StartDate", "ended_at": "EndDate", "ultraserver_type": "UltraserverType", "state": "State"}
    block = values_of(entry, where, SCHEMA, **names) | {"reservation_kind": _BLOCK, "region_id": _region(entry)}
    for held in entry.get("CapacityReservationIds") or ():
        yield block | {"reservation_id": _id(held, _BLOCK, where), "is_detail": True}


def _plan(entry: Entry, where: str) -> Iterator[Row]:
    """A training plan: a part for each capacity it reserves, the fee of the whole on the first."""
    arn = _id(entry.get("TrainingPlanArn"), _PLAN, where)
    _, _, _, region, account, _ = arn.split(":", 5)
    plan = {"reservation_id": arn, "reservation_kind": _PLAN, "account_id": account, "region_id": region}
    plan |= {"state": answers.text(entry, "Status")}
    names = {"instance_type": "InstanceType", "instance_count": "TotalInstanceCount"}
    names |= {"started_at": "StartTime", "ended_at": "EndTime", "ultraserver_type": "UltraServerType"}
    parts = []
    for capacity in entry.get("ReservedCapacitySummaries") or ({},):
        # A capacity without a window of its own has the plan's.
        part = {**entry, **{name: value for name, value in capacity.items() if value is not None}}
        parts.append(plan | values_of(part, where, SCHEMA, **names))
    parts.sort(key=lambda part: (str(part["started_at"]), str(part["instance_type"])))
    parts[0] |= {
        "upfront_fee": answers.amount(entry, "UpfrontFee", where),
        "currency": answers.text(entry, "CurrencyCode"),
    }
    yield from (part | {"part_no": number} for number, part in enumerate(parts, 1))


def _id(value: Any, kind: str, where: str) -> str:
    """An id as the bill names it: cr-… of EC2, the whole ARN of a training plan."""
    found = (_PLAN_ARN if kind == _PLAN else _EC2_ID).search(str(value or ""))
    if not found:
        form = "the ARN of a training plan" if kind == _PLAN else "cr-…"
        raise MalformedError(f"{where} has the id {str(value)[:80]!r}; write {form}.")
    return found[0]


def _region(entry: Entry) -> str | None:
    arn = str(entry.get("CapacityReservationArn") or "").split(":")
    zone = str(entry.get("AvailabilityZone") or "")
    return (arn[3] if len(arn) > 5 else None) or re.sub(r"[a-z]$", "", zone) or None


def _joined(found: Iterable[Row], warnings: list[str]) -> list[Row]:
    """One row per id and part; none of an id with a window that cannot be, or two windows, kinds or instance types."""
    whole: dict[tuple[str, int], Row] = {}
    details: dict[tuple[str, int], Row] = {}
    left_out = set()
    for row in found:
        if row.get("is_unread"):
            left_out.add(row["reservation_id"])
            continue
        known = details if row.get("is_detail") else whole
        key = (row["reservation_id"], row["part_no"])
        try:
            _check_window(row)
            known[key] = _same(known[key], row) if key in known else row
        except MalformedError as error:
            warnings.append(f"{error} {LEFT_OUT}")
            left_out.add(row["reservation_id"])
    for key, detail in details.items():
        whole[key] = _filled(whole[key], detail) if key in whole else detail
    return [row for row in whole.values() if row["reservation_id"] not in left_out]


def _check_window(row: Row) -> None:
    begin, end = row["started_at"], row["ended_at"]
    name = f"{row['where']}: {row['reservation_id']}"
    if not begin or not end:
        return
    if end <= begin:
        raise MalformedError(f"{name} ends at {end}, not after it starts at {begin}; fix the times.")
    if row["reservation_kind"] != _ODCR and end - begin > _LONGEST:
        raise MalformedError(f"{name} runs from {begin} to {end}, longer than any that is sold; fix the times.")


def _same(first: Row, later: Row) -> Row:
    one, other = (" to ".join(str(row[at] or "open") for at in ("started_at", "ended_at")) for row in (first, later))
    values = {"runs": (one, other)}
    for name in ("reservation_kind", "instance_type"):
        values[f"has the {name}"] = first[name], later[name]
    for what, (one, other) in values.items():
        if None not in (one, other) and one != other:
            both = f"{one} in {first['where']} and {other} in {later['where']}"
            raise MalformedError(f"{first['reservation_id']} {what} {both}; keep the right one.")
    return _filled(later, first)


def _filled(row: Row, more: Row) -> Row:
    """A row with its unknown values taken from `more`."""
    return row | {name: value for name, value in more.items() if row.get(name) is None}


def _warnings(row: Row, families: Mapping[str, str]) -> Iterator[str]:
    """One sentence for each unexpected value."""
    name, state, machine = f"{row['where']}: {row['reservation_id']}", row["state"], row["instance_type"]
    if state is not None and state.lower() not in _STATES:
        yield f"{name} has the unknown state {state[:80]!r}; it counts as any other. Check its spelling."
    if row["instance_count"] == 0:
        yield f"{name} has 0 instances; their number is read as unknown. Correct it."
    if machine is not None and not _is_known(machine, row["reservation_kind"], families):
        fix = "check its spelling, or add it under [[machines]]"
        yield f"{name} has the instance type {machine[:80]!r}, which is not in ref_instance_type.csv; {fix}."
    if row["reservation_kind"] != _ODCR and None in (row["started_at"], row["ended_at"]):
        yield f"{name} has no window; its fee is spread over the hours on the bill. Add its start and end."


def _is_known(instance_type: str, kind: str, families: Mapping[str, str]) -> bool:
    """Whether a type is listed, or of a family without accelerators, which an ODCR may be of."""
    plain = instance_type.removeprefix("ml.")
    family, dot, size = plain.partition(".")
    if plain in families or kind != _ODCR or not (family and dot and size):
        return plain in families
    return family not in {known.partition(".")[0] for known in families}
