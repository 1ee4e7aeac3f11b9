"""Answers of AWS's APIs, from AWS itself or as saved files: their entries, times, counts and amounts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from pipelines.base.aws import connect
from pipelines.base.errors import SourceError
from pipelines.base.parse import ParseError, parse_json
from pipelines.config.sources import ReservationSource
from pipelines.warehouse.storage import Object, Store
from pipelines.warehouse.stores import open_store

_EPOCH = datetime(1970, 1, 1)
_LARGEST_BYTES = 64 << 20
Entry = Mapping[str, Any]


def client_of(source: ReservationSource, where: str, service: str, region: str | None) -> Any:
    """A client for the source that `where` names."""
    return connect(service, where, endpoint_url=source.endpoint_url, region=region, profile=source.profile)[1]


def saved_files(
    source: ReservationSource, section: str, suffixes: tuple[str, ...], *, hurried: bool = False
) -> tuple[Store, list[Object], list[str]]:
    """The store, its files with these suffixes by key, and the keys of other files; the location may be one file."""
    location = str(source.location)
    folder, _, name = location.rstrip("/").rpartition("/")
    is_file = name.endswith(suffixes)
    store = open_store(folder if is_file else location, **source.reach, hurried=hurried)
    listed = [item for item in store.list(name) if item.key == name] if is_file else store.list()
    if is_file and not listed:
        raise SourceError(f"{location} does not exist; check `location` of [[{section}]] {source.name}.")
    others = [item.key for item in listed if not item.key.endswith(suffixes)]
    files = [item for item in listed if item.key.endswith(suffixes)]
    return store, files, [key for key in others if not key.rpartition("/")[2].startswith((".", "_"))]


def saved_text(store: Store, item: Object, thing: str) -> str:
    """The text of a file that holds `thing`. SourceError where it is too large or not UTF-8."""
    where = store.uri(item.key)
    if item.size > _LARGEST_BYTES:
        raise SourceError(f"{where} has {item.size:,} bytes, too many for {thing}; check what it is.")
    try:
        return store.read(item.key).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{where} is not UTF-8 text; save it again.") from None


def saved_answer(text: str, where: str) -> Any:
    """A saved answer. SourceError where it is not JSON or only one page of several."""
    try:
        answer = parse_json(text)
    except ParseError as error:
        raise SourceError(f"{where} {error}; save the answer of AWS as it came.") from None
    # Recorders keep the answer under `data`, next to its status.
    if isinstance(answer, dict) and isinstance(answer.get("data"), dict):
        answer = answer["data"]
    if isinstance(answer, dict) and (answer.get("nextToken") or answer.get("NextToken")):
        fix = "save them all in one answer, as `aws` gives it without --max-items and --no-paginate"
        raise SourceError(f"{where} has a NextToken, so more pages belong to it; {fix}.")
    return answer


def source_digest(source: ReservationSource, files: Callable[[], list[Object]], answers: Callable[[], object]) -> str:
    """A digest that changes with a source: with one listing of its files, or with the answers of the API."""
    seal = hashlib.sha256(f"{source!r}\n".encode())
    if source.kind == "aws":
        seal.update(repr(answers()).encode())
    else:
        for item in files():
            seal.update(f"{item.key} {item.size} {item.etag}\n".encode())
    return seal.hexdigest()


def entries(answer: Entry, name: str, where: str) -> Iterator[tuple[str, Entry]]:
    """The entries of a list in an answer, each with its address."""
    if not isinstance(answer[name], list):
        raise SourceError(f"{where}: {name} is not a list; save the whole answer.")
    for number, entry in enumerate(answer[name], 1):
        if not isinstance(entry, Mapping):
            raise SourceError(f"{where} {name} number {number} is not a JSON object; save the whole answer.")
        yield f"{where} {name} number {number}", entry


def text(entry: Entry, name: str) -> str | None:
    """A text; None where it is missing or empty."""
    return str(entry[name]).strip() or None if entry.get(name) is not None else None


def moment(entry: Entry, name: str, where: str) -> datetime | None:
    """A naive UTC time, to the millisecond, from a datetime, RFC 3339 text with its zone or seconds since 1970."""
    value: Any = entry.get(name)
    if value is None or value == "":
        return None
    at: Any = value
    try:
        if isinstance(at, str):
            at = datetime.fromisoformat(at)
        elif isinstance(at, int | float) and not isinstance(at, bool):
            at = (_EPOCH + timedelta(milliseconds=round(at * 1000))).replace(tzinfo=UTC)
        at = at.astimezone(UTC).replace(tzinfo=None) if isinstance(at, datetime) and at.tzinfo else None
    except (ValueError, OverflowError):
        at = None
    if at is None:
        raise SourceError(f"{where} has {name} {str(value)[:80]!r}; write a time as RFC 3339 with its zone.")
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def count(entry: Entry, name: str, where: str, unit: str = "instances", most: int = 1_000_000) -> int | None:
    """A whole number of `unit`."""
    value = entry.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not str(value).isascii() or not str(value).isdigit() or int(value) > most:
        raise SourceError(f"{where} has {name} {str(value)[:80]!r}; write a whole number of {unit}.")
    return int(value)


def amount(entry: Entry, name: str, where: str) -> Decimal | None:
    """An amount of money."""
    value = entry.get(name)
    if value is None or value == "":
        return None
    try:
        money = Decimal(str(value))
        if not money.is_finite() or abs(money) >= 10**9:
            raise InvalidOperation
    except InvalidOperation:
        raise SourceError(f"{where} has {name} {str(value)[:80]!r}; write an amount of money.") from None
    return money.quantize(Decimal("1e-10"))
