"""Capacity that was reserved: On-Demand Capacity Reservations, Capacity Blocks and SageMaker training plans.

The bill charges a block's fee on the day it was bought and never says when the block runs; its window comes from
here. Each kind of source gives Reservations; what several sources or files tell of one reservation is joined.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl

from pipelines.base.errors import SourceError
from pipelines.config.sources import ReservationSource

ODCR, BLOCK, PLAN = KINDS = ("odcr", "capacity_block", "training_plan")
# AWS sells blocks and plans for half a year at most; every hour of one becomes a row.
_LONGEST = timedelta(days=1100)
_AT = pl.Datetime("ms")

# Times are naive UTC. A training plan may hold several capacities with windows of their own: one part each.
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "source_name": pl.String,
    "reservation_id": pl.String,
    "part_no": pl.Int64,
    "reservation_kind": pl.String,
    "account_id": pl.String,
    "region_id": pl.String,
    "instance_type": pl.String,
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
    """One reservation, or one part of it, as one answer tells it; `where` names the place in words.

    `is_detail`: an answer that only adds to what DescribeCapacityReservations says of the same reservation.
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
    def lasts(self) -> timedelta | None:
        """The length of the window; None while it is open."""
        return self.ended_at - self.started_at if self.started_at and self.ended_at else None

    @property
    def window(self) -> tuple[datetime | None, datetime | None]:
        return self.started_at, self.ended_at


@dataclass(frozen=True)
class Reservations:
    """All reservations as a table of SCHEMA, and what was read with a doubt, one sentence each."""

    table: pl.DataFrame
    warnings: list[str] = field(default_factory=list)


def read_reservations(sources: Sequence[ReservationSource]) -> Reservations:
    """Everything all sources tell. Raises SourceError for what is no reservation, or is told in two ways."""
    from pipelines.ingest.inventory.reservation_warning import doubts_of

    found: list[Reservation] = []
    warnings: list[str] = []
    for source in sources:
        told, doubts = _read(source)
        found += [replace(reservation, source_name=source.name) for reservation in told]
        warnings += doubts
    joined = _joined(found)
    warnings += [doubt for told in joined for doubt in doubts_of(told)]
    rows = [{name: value for name, value in asdict(told).items() if name in SCHEMA} for told in joined]
    return Reservations(pl.DataFrame(rows, schema=SCHEMA).sort("reservation_id", "part_no"), sorted(warnings))


def reservations_fingerprint(source: ReservationSource) -> str:
    """A digest that changes with what a source tells: of one listing of files, or of the answers of the API."""
    seal = hashlib.sha256(f"{source!r}\n".encode())
    if source.kind == "aws":
        told, doubts = _read(source)
        seal.update(repr((told, doubts)).encode())
    else:
        from pipelines.ingest.inventory.reservation_file import reservation_files

        for item in reservation_files(source)[1]:
            seal.update(f"{item.key} {item.size} {item.etag}\n".encode())
    return seal.hexdigest()


def _read(source: ReservationSource) -> tuple[list[Reservation], list[str]]:
    if source.kind == "aws":
        from pipelines.ingest.inventory.reservation_api import ask_aws

        return ask_aws(source)
    from pipelines.ingest.inventory.reservation_file import read_files

    return read_files(source)


def _joined(found: Iterable[Reservation]) -> list[Reservation]:
    """One Reservation per id and part; SourceError where two tell different windows, kinds or instance types."""
    whole: dict[tuple[str, int], Reservation] = {}
    details: dict[tuple[str, int], Reservation] = {}
    for told in found:
        if told.lasts is not None and told.lasts <= timedelta(0):
            raise SourceError(
                f"{told.where}: {told.reservation_id} ends at {told.ended_at}, not after it starts at "
                f"{told.started_at}; mend the times."
            )
        if told.reservation_kind != ODCR and told.lasts is not None and told.lasts > _LONGEST:
            raise SourceError(
                f"{told.where}: {told.reservation_id} runs from {told.started_at} to {told.ended_at}, longer than any "
                "that is sold; mend the times."
            )
        known = details if told.is_detail else whole
        key = (told.reservation_id, told.part_no)
        known[key] = _same(known[key], told) if key in known else told
    for key, detail in details.items():
        whole[key] = _filled(whole[key], detail) if key in whole else detail
    return list(whole.values())


def _same(first: Reservation, later: Reservation) -> Reservation:
    if first.window != later.window:
        one, other = (" to ".join(str(at or "open") for at in told.window) for told in (first, later))
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


def _filled(told: Reservation, more: Reservation) -> Reservation:
    """What `told` leaves open taken from `more`."""
    gaps = {part.name: getattr(more, part.name) for part in fields(told) if getattr(told, part.name) is None}
    return replace(told, **gaps)
