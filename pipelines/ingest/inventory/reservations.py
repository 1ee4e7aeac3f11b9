"""Capacity that was reserved: On-Demand Capacity Reservations, Capacity Blocks and SageMaker training plans.

The bill charges a block's fee on the day it was bought and never says when the block runs; its window comes from
here. Each kind of source gives Reservations; what several sources or files tell of one reservation is joined.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import timedelta

import polars as pl

from pipelines.base.errors import SourceError
from pipelines.config.sources import ReservationSource
from pipelines.ingest.inventory.reservation import _LONGEST, ODCR, SCHEMA, Reservation


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
