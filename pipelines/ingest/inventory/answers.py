"""Answers of AWS's APIs, from AWS itself or as saved files: their entries, and the values of their fields."""

import csv
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines.base.aws import connect
from pipelines.base.errors import MalformedError, SourceError, listing
from pipelines.base.parse import parse_json, reading
from pipelines.config.sources import AnswerSource
from pipelines.ingest.json_lines import by_suffix, skipped
from pipelines.ingest.schema import AT, MONEY, Schema
from pipelines.warehouse.storage import Object, Store
from pipelines.warehouse.stores import open_store

_EPOCH = datetime(1970, 1, 1)
_LARGEST_BYTES = 64 << 20
LEFT_OUT = "Until then it is left out."
Entry = Mapping[str, Any]
# A row of a table of the inventory, with `where`, the address of its entry.
Row = dict[str, Any]


@dataclass(frozen=True)
class Inventory:
    """What all sources contain as one table, and the warnings of reading it, one sentence each."""

    table: pl.DataFrame
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Table:
    """The columns of a csv or Parquet file, and each row as text, or what is wrong with it, with its address."""

    names: list[str]
    rows: list[tuple[str, Entry | MalformedError]]


@dataclass(frozen=True)
class Answers:
    """How the sources of a section of the configuration are read: `queried` yields each answer of AWS and its address.

    It appends warnings to `warnings`.
    """

    section: str
    suffixes: tuple[str, ...]
    queried: Callable[[AnswerSource, list[str]], Iterator[tuple[str, Any]]]

    def read(self, source: AnswerSource, warnings: list[str]) -> Iterator[tuple[str, Any]]:
        """Each answer of a source, and its address; of a csv or Parquet file its `Table`, of others what is wrong."""
        if source.kind == "aws":
            yield from self.queried(source, warnings)
            return
        store, files, others = self.files(source)
        warnings += skipped(source.location, others, f"; name answers {', '.join(self.suffixes)}")
        for item in files:
            where = store.uri(item.key)
            try:
                yield where, self._opened(store, item, where)
            except MalformedError as error:
                yield where, error

    def _opened(self, store: Store, item: Object, where: str) -> Any:
        if item.size > _LARGEST_BYTES:
            raise MalformedError(f"{where} has {item.size:,} bytes, too many for {self.section}; check what it is.")
        content = store.read(item.key)
        if item.key.endswith(".parquet"):
            return _parquet_table(content, where)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise MalformedError(f"{where} is not UTF-8 text; save it again.") from None
        return _csv_table(text, where) if item.key.endswith(".csv") else _saved_answer(text, where)

    def files(self, source: AnswerSource) -> tuple[Store, list[Object], list[str]]:
        """The store, its files with our suffixes, and the keys of other files; the location may be one file."""
        location = str(source.location)
        folder, _, name = location.rstrip("/").rpartition("/")
        is_file = name.endswith(self.suffixes)
        store = open_store(folder if is_file else location, **source.reach)
        with listing(f"[[{self.section}]] {source.name}"):
            listed = [item for item in store.list(name) if item.key == name] if is_file else store.list()
        if is_file and not listed:
            raise SourceError(f"{location} does not exist; check `location` of [[{self.section}]] {source.name}.")
        return store, *by_suffix(listed, self.suffixes)

    def fingerprint(self, source: AnswerSource) -> str:
        """A digest that changes with a source: with one listing of its files, or with the answers of the API."""
        if source.kind == "aws":
            warnings: list[str] = []
            state = repr([*self.queried(source, warnings), warnings])
        else:
            state = "".join(f"{item.key} {item.size} {item.etag}\n" for item in self.files(source)[1])
        return hashlib.sha256(f"{source!r}\n{state}".encode()).hexdigest()

    def client(self, source: AnswerSource, service: str, region: str | None) -> Any:
        where = f"[[{self.section}]] {source.name}"
        return connect(service, where, **{**source.reach, "region": region})[1]


def _saved_answer(text: str, where: str) -> Any:
    """A saved answer. MalformedError where it is not JSON or only one page of several."""
    with reading(where, "save the answer of AWS as it came"):
        answer = parse_json(text)
    # Recorders keep the answer under `data`, next to its status.
    if isinstance(answer, dict) and isinstance(answer.get("data"), dict):
        answer = answer["data"]
    if isinstance(answer, dict) and (answer.get("nextToken") or answer.get("NextToken")):
        fix = "save them all in one answer, as `aws` gives it without --max-items and --no-paginate"
        raise MalformedError(f"{where} has a NextToken, so more pages belong to it; {fix}.")
    return answer


def content(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer of boto3 without what differs between two equal calls."""
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}


def entries(answer: Entry, name: str, where: str) -> Iterator[tuple[str, Entry | MalformedError]]:
    """The entries of a list in an answer, each with its address."""
    if not isinstance(answer[name], list):
        raise MalformedError(f"{where}: {name} is not a list; save the whole answer.")
    for number, entry in enumerate(answer[name], 1):
        place = f"{where} {name} number {number}"
        wrong = MalformedError(f"{place} is not a JSON object; save it whole.")
        yield place, entry if isinstance(entry, Mapping) else wrong


def kept(
    found: Iterable[tuple[str, Any]],
    read: Callable[[Any, str], Iterable[Row]],
    warnings: list[str],
    instead: Callable[[str], Iterable[Row]] = lambda where: (),
) -> Iterator[Row]:
    """What `read` makes of each answer or entry; `instead` of a malformed one, which is left out with a warning."""
    for where, one in found:
        try:
            if isinstance(one, MalformedError):
                raise one
            with reading(where, "save the answer of AWS as it came"):
                rows = [{"where": where} | row for row in read(one, where)]
        except MalformedError as error:
            warnings.append(f"{error} {LEFT_OUT}")
            rows = [{"where": where} | row for row in instead(where)]
        yield from rows


def _csv_table(table: str, where: str) -> Table:
    """MalformedError where it is no csv."""
    reader = csv.DictReader(io.StringIO(table, newline=""))
    rows: list[tuple[str, Entry | MalformedError]] = []
    try:
        names = list(reader.fieldnames or ())
        for row in reader:
            place = f"{where} line {reader.line_num}"
            is_whole = None not in row and None not in row.values()
            short = f"{place} has not as many cells as the first line; fix it."
            rows.append((place, row if is_whole else MalformedError(short)))
    except csv.Error as error:
        raise MalformedError(f"{where} is not a csv ({error}); fix or remove it.") from None
    return Table(names, rows)


def _parquet_table(content: bytes, where: str) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Polars ends the process at some damaged files.
        table = pq.ParquetFile(io.BytesIO(content)).read()
        table.validate(full=True)
        found = table.to_pylist()
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise MalformedError(f"{where} is not a Parquet file ({reason}); save it again.") from None
    rows: list[tuple[str, Entry | MalformedError]] = [
        (f"{where} row {number}", {name: _cell(value) for name, value in row.items()})
        for number, row in enumerate(found, 1)
    ]
    return Table(table.column_names, rows)


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        # Parquet keeps UTC without a zone as often as with one.
        value = (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return "" if value is None else str(value)


def values_of(entry: Entry, where: str, schema: Schema, **names: str) -> dict[str, Any]:
    """Columns of `schema` from the fields `names` of an entry; MalformedError names `where` and the field at fault."""
    readers = {pl.Int64: count, AT: moment, MONEY: amount}
    return {column: readers.get(schema[column], text)(entry, name, where) for column, name in names.items()}


def text(entry: Entry, name: str, where: str = "") -> str | None:
    """A text; None where it is missing or empty."""
    return str(entry[name]).strip() or None if entry.get(name) is not None else None


def json_object(entry: Entry, name: str, where: str) -> Entry:
    """A JSON object in a text; empty where it is missing."""
    with reading(f"{where}: {name}", "FOCUS requires a JSON object"):
        found = parse_json(entry.get(name) or "{}")
    return found if isinstance(found, Mapping) else {}


def moment(entry: Entry, name: str, where: str, wanted: str = "a time as RFC 3339 with its zone") -> datetime | None:
    """A naive UTC time, to the millisecond, from a datetime, RFC 3339 text with its zone or seconds since 1970."""

    def read(at: Any) -> datetime:
        if isinstance(at, str):
            at = datetime.fromisoformat(at)
        elif isinstance(at, int | float) and not isinstance(at, bool):
            at = (_EPOCH + timedelta(milliseconds=round(at * 1000))).replace(tzinfo=UTC)
        if not isinstance(at, datetime) or at.tzinfo is None:
            raise ValueError
        at = at.astimezone(UTC).replace(tzinfo=None)
        return at.replace(microsecond=at.microsecond // 1000 * 1000)

    return _value(entry, name, where, read, wanted)


def count(entry: Entry, name: str, where: str, unit: str = "instances", most: int = 1_000_000) -> int | None:
    def read(number: Any) -> int:
        if isinstance(number, bool) or not str(number).isascii() or not str(number).isdigit() or int(number) > most:
            raise ValueError
        return int(number)

    return _value(entry, name, where, read, f"a whole number of {unit}")


def amount(entry: Entry, name: str, where: str) -> Decimal | None:
    def read(number: Any) -> Decimal:
        money = Decimal(str(number))
        if not money.is_finite() or abs(money) >= 10**9:
            raise ValueError
        return money.quantize(Decimal("1e-10"))

    return _value(entry, name, where, read, "an amount of money such as 1234.50")


def _value(entry: Entry, name: str, where: str, read: Callable[[Any], Any], wanted: str) -> Any:
    """A field of an entry as `read`; None where it is missing or empty, MalformedError with what is `wanted`."""
    if (value := entry.get(name)) is None or value == "":
        return None
    try:
        return read(value)
    except (ValueError, ArithmeticError):
        raise MalformedError(f"{where} has {name} {str(value)[:80]!r}; write {wanted}.") from None
