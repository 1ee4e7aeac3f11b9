"""Reservations that somebody saved: JSON answers of AWS, or a table of our own columns as csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.base.parse import ParseError, parse_json
from pipelines.config.sources import ReservationSource
from pipelines.ingest.inventory.aws_answer import amount, count, moment
from pipelines.ingest.inventory.reservation import KINDS, SCHEMA, Reservation
from pipelines.ingest.inventory.reservation_answer import reservation_id, reservations_in
from pipelines.warehouse.storage import Object, Store
from pipelines.warehouse.stores import open_store

SUFFIXES = (".json", ".csv")
_COLUMNS = tuple(name for name in SCHEMA if name != "source_name")
_REQUIRED = ("reservation_id", "reservation_kind", "started_at", "ended_at")
_LARGEST_BYTES = 64 << 20


def reservation_files(source: ReservationSource, *, hurried: bool = False) -> tuple[Store, list[Object], list[str]]:
    """The store, the files of reservations in it by key, and the keys of what else lies there.

    The location is a folder or one file. A `hurried` look soon gives up.
    """
    location = str(source.location)
    folder, _, name = location.rstrip("/").rpartition("/")
    one_file = name.endswith(SUFFIXES)
    place = folder if one_file else location
    reach = {"endpoint_url": source.endpoint_url, "region": source.region, "profile": source.profile}
    store = open_store(place, **reach, hurried=hurried)
    listed = store.list(name) if one_file else store.list()
    if one_file:
        listed = [item for item in listed if item.key == name]
        if not listed:
            raise SourceError(f"{location} does not exist; check `location` of [[reservations]] {source.name}.")
    files = [item for item in listed if item.key.endswith(SUFFIXES)]
    others = [item.key for item in listed if item not in files]
    return store, files, [key for key in others if not key.rpartition("/")[2].startswith((".", "_"))]


def read_files(source: ReservationSource) -> tuple[list[Reservation], list[str]]:
    """What the files of a source tell, and what was passed over; SourceError names file, row and mend."""
    store, files, others = reservation_files(source)
    found: list[Reservation] = []
    for item in files:
        where = store.uri(item.key)
        if item.size > _LARGEST_BYTES:
            raise SourceError(f"{where} has {item.size:,} bytes, more than reservations take; check what it is.")
        text = _text(store.read(item.key), where)
        found += _rows(text, where) if item.key.endswith(".csv") else reservations_in(_answer(text, where), where)
    doubts = []
    if not found:
        doubts.append(f"{source.location} tells of no reservation.")
    if others:
        doubts.append(f"{source.location}: {len(others)} files like {others[0]} are passed over; {SUFFIXES} are read.")
    return found, doubts


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{where} is not UTF-8 text; save it again.") from None


def _answer(text: str, where: str) -> Any:
    try:
        answer = parse_json(text)
    except ParseError as error:
        raise SourceError(f"{where} {error}; save the answer of AWS as it came.") from None
    if isinstance(answer, dict) and answer.get("NextToken"):
        mend = "save them all in one answer, as `aws` gives it without --max-items and --no-paginate"
        raise SourceError(f"{where} has a NextToken, so more pages belong to it; {mend}.")
    return answer


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
                raise SourceError(f"{place} has not as many cells as the first line; mend it.")
            yield _row(row, place)
    except csv.Error as error:
        raise SourceError(f"{where} is no csv ({error}); mend or remove it.") from None


def _row(row: dict[str, str], where: str) -> Reservation:
    kind = row["reservation_kind"]
    if kind not in KINDS:
        raise SourceError(f"{where} has reservation_kind {kind[:80]!r}; write one of {', '.join(KINDS)}.")
    words = ("account_id", "region_id", "instance_type", "ultraserver_type", "currency", "state")
    texts: dict[str, Any] = {name: row.get(name) or None for name in words}
    return Reservation(
        where=where,
        reservation_id=reservation_id(row["reservation_id"], kind, where),
        reservation_kind=kind,
        part_no=count(row.get("part_no"), f"{where} has part_no") or 1,
        instance_count=count(row.get("instance_count"), f"{where} has instance_count"),
        started_at=moment(row["started_at"], f"{where} has started_at"),
        ended_at=moment(row["ended_at"], f"{where} has ended_at"),
        upfront_fee=amount(row.get("upfront_fee"), f"{where} has upfront_fee"),
        **texts,
    )
