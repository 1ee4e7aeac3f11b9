"""Reserved capacity: On-Demand Capacity Reservations, Capacity Blocks and SageMaker training plans.

The bill charges a block's fee on the day of purchase and never shows when the block runs; its window comes from here:
from answers of AWS, asked for or saved as JSON, or from a csv with our own columns. Records of one reservation from
several sources are joined.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import timedelta
from typing import Any

import polars as pl

from pipelines.base.aws import code_of, requesting
from pipelines.base.errors import SourceError
from pipelines.config.sources import ReservationSource
from pipelines.ingest.inventory.answers import (
    amount,
    client_of,
    count,
    moment,
    saved_answer,
    saved_files,
    saved_text,
    source_digest,
)
from pipelines.ingest.inventory.reservation import KINDS, LONGEST, ODCR, SCHEMA, Reservation
from pipelines.ingest.inventory.reservation_answer import reservation_id, reservations_in
from pipelines.warehouse.storage import Object, Store

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
