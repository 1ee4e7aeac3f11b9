"""A delivered csv into one typed Parquet file, block by block: memory does not grow with its lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from pipelines.base.errors import SourceError, counted
from pipelines.ingest.billing import values
from pipelines.ingest.billing.columns import MONEY, Column, ColumnList, Delivered, RawFile, snake
from pipelines.ingest.billing.identities import add_ids, id_positions
from pipelines.ingest.billing.parquet import delivered_columns, tag_keys_of, unlisted_values
from pipelines.ingest.billing.unpack import Allowance, Tap, read_header, unpacked
from pipelines.ingest.billing.values import pc

ROW_GROUP_ROWS = 122_880
# Small enough to stay near the processor; no row is that long.
_BLOCK_BYTES = 2 << 20
_NEWLINE = 10

_READERS = {MONEY: values.numbers, "TIMESTAMP": values.times}
_TYPES = {MONEY: values.NUMBER, "TIMESTAMP": values.TIME, "VARCHAR": pa.string()}
_KINDS = {MONEY: "a number below 10 billion", "TIMESTAMP": "an ISO timestamp"}


def convert(
    delivered: Path, out: Path, *, key: str, allowed: Allowance, listed: ColumnList, on_bytes: Callable[[int], None]
) -> RawFile:
    """Write the columns of `listed` in the csv `delivered` to `out`, in order, and the ids of its lines; its record.

    `allowed` names the file in errors, `key` in the record. Raises SourceError for a csv that is cut short, ragged,
    too large for its packed size, lacks a column or holds an invalid value.
    """
    names, has_rows = read_header(delivered, allowed)
    bill = _Bill(names, key, allowed.where, listed, out)
    blocks = _blocks(delivered, bill, allowed, on_bytes) if has_rows else iter(())
    # Costs hardly repeat: neither a dictionary nor their bounds would help.
    # (The writer takes lists of columns though its annotations are bool.)
    repeating: Any = [field.name for field in bill.schema if field.type != values.NUMBER]
    with pq.ParquetWriter(
        out, bill.schema, compression="zstd", store_schema=False, use_dictionary=repeating, write_statistics=repeating
    ) as writer:
        waiting: list[pa.RecordBatch] = []
        for block in _ahead(blocks):
            waiting.append(bill.typed(block))
            if sum(batch.num_rows for batch in waiting) >= ROW_GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))
    columns, tags = delivered_columns(bill.schema)[0], tag_keys_of(out, bill.tags)
    warnings = bill.warnings(unlisted_values(out, {name: name for name in bill.schema.names}, listed))
    return RawFile(
        *(key, out.name, out.stat().st_size, bill.row_count, bill.billed_total, columns, tags, warnings),
        focus_version=listed.version(names),
    )


def _blocks(
    delivered: Path, bill: _Bill, allowed: Allowance, on_bytes: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    """The csv's needed columns as text, named by their position in the file."""
    wanted = [str(position) for position in bill.positions]
    ragged: list[pyarrow.csv.InvalidRow] = []

    def refuse(row: pyarrow.csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    try:
        with unpacked(delivered, allowed, on_bytes) as stream:
            lines = _Lines()
            row_count = 0
            for block in pyarrow.csv.open_csv(
                pa.PythonFile(Tap(stream, lines.met), "r"),
                # Only a single-threaded reader knows the number of a ragged row.
                pyarrow.csv.ReadOptions(
                    use_threads=False,
                    block_size=_BLOCK_BYTES,
                    skip_rows=1,
                    column_names=[str(position) for position in range(len(bill.names))],
                ),
                pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
                pyarrow.csv.ConvertOptions(
                    include_columns=wanted,
                    column_types=dict.fromkeys(wanted, pa.string()),
                    strings_can_be_null=True,
                    null_values=list(values.MISSING),
                ),
            ):
                row_count += block.num_rows
                yield block
        _refuse_swallowed_rows(delivered, bill.names, allowed, lines, row_count)
    except pa.ArrowInvalid as error:
        if ragged:
            row = ragged[0]
            raise SourceError(
                f"{bill.where}, row {row.number} (the header is row 1): {row.actual_columns} values under "
                f"{row.expected_columns} columns; have the file delivered again."
            ) from None
        raise SourceError(f"{bill.where} is not a CSV ({error}); have it delivered again.") from None


class _Bill:
    """One csv while it is converted to Parquet: its columns, and what was read so far."""

    def __init__(self, names: list[str], key: str, where: str, listed: ColumnList, out: Path):
        self.names, self.key, self.where, self.listed = names, key, where, listed
        forms = ("map" if self._is_map(name) else "any" for name in names)
        self._layout = listed.layout([Delivered(n, f, "text") for n, f in zip(names, forms, strict=True)], where)
        used = {source.position for sources in self._layout.sources.values() for source in sources}
        by_name: dict[str, int] = {}
        for source in (source for sources in self._layout.sources.values() for source in sources):
            by_name.setdefault(names[source.position].lower(), source.position)
        # SQL would take the two for one column. The second is not read, or only where the first is empty.
        self._twins = {
            position: first
            for position, name in enumerate(names)
            if (first := by_name.get(name.lower(), position)) != position
        }
        self._read_twins = used & self._twins.keys()
        self._columns = [column for column in listed.columns if self._layout.sources[column.name]]
        self.tags = list(zip(self._layout.tags, self._tag_columns(), strict=True))
        self._out, self._id_positions = out, id_positions(names)
        tagged = (tag.position for tag in self._layout.tags)
        self.positions = sorted({*used, *tagged, *self._id_positions, *self._twins})
        self._unread: Counter[int] = Counter()
        self._first_unread: dict[int, str] = {}
        # Lines, their amount and the first row by the words before and after the amount.
        self._silent: dict[tuple[str, str], tuple[int, Decimal, int]] = {}
        self.row_count = 0
        self.billed_total = Decimal(0)
        fields = [pa.field(column.name, _TYPES[column.type]) for column in self._columns]
        fields += [pa.field(name, pa.string() if tag.key else values.MAP) for tag, name in self.tags]
        self.schema = pa.schema(fields)

    def typed(self, block: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows under the schema."""
        texts = dict(zip(self.positions, block.columns, strict=True))
        add_ids(self._out, [texts[position] for position in self._id_positions])
        self._count_silent(texts)
        maps = {
            position: self._read(values.maps, text, position, None)
            for position, text in texts.items()
            if self._is_map(self.names[position])
        }
        arrays = [self._column(column, texts, maps) for column in self._columns]
        arrays += [texts[tag.position] if tag.key else maps[tag.position] for tag, _ in self.tags]
        self.row_count += block.num_rows
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def warnings(self, unlisted: Sequence[str]) -> tuple[str, ...]:
        """Values that could not be read and count as missing, after those that are not allowed."""
        unread = [
            f"{self.key}: {counted(count, 'value')} of {self.names[position]} cannot be read "
            f"({self._first_unread[position]}); read as missing. Have the file delivered again if that matters."
            for position, count in self._unread.items()
        ]
        silent = [
            f"{counted(count, 'line', 'bill')} {before}{amount:,.2f}{after}; the first is row {row}. Have the file "
            "delivered again."
            for (before, after), (count, amount, row) in self._silent.items()
        ]
        others = (*self._layout.warnings, *unlisted, *silent)
        return (*(f"{self.key}: {warning}" for warning in others), *unread)

    def _count_silent(self, texts: dict[int, pa.Array]) -> None:
        """Count the lines without a billed amount, those whose tags repeat a key, and those of a column not read."""
        billed, price = (self._amounts(name, texts) for name in (self.listed.billed, self.listed.list_price))
        if billed.null_count:
            before = f"0 without {self.listed.billed}, so the cost of that usage is unknown; at public prices it is "
            self._add_silent(before, "", billed.is_null(), price)
        for position, text in texts.items():
            name = self.names[position]
            if self._is_map(name):
                twice = pc.fill_null(values.repeats_a_key(text), False)
                self._add_silent("", f" with a key twice in {name}, of which the last counts", twice, billed)
        for position, read in self._twins.items():
            is_read = position in self._read_twins
            differs = pc.fill_null(pc.not_equal(texts[position], texts[read]), not is_read)
            which = "counts only where the other is empty" if is_read else "is not read"
            after = f" with another value in {self.names[position]}, which {which}, than in {self.names[read]}"
            self._add_silent("", after, differs, billed)

    def _amounts(self, name: str, texts: dict[int, pa.Array]) -> pa.Array:
        found = [texts[source.position] for source in self._layout.sources[name] if source.key is None]
        return pc.coalesce(*found) if found else pa.nulls(len(next(iter(texts.values()))), pa.string())

    def _add_silent(self, before: str, after: str, lines: pa.Array, amounts: pa.Array) -> None:
        if lines.true_count:
            first = (0, Decimal(0), self.row_count + pc.index(lines, True).as_py() + 2)
            count, amount, row = self._silent.get((before, after), first)
            amount += values.total(amounts.filter(lines))
            self._silent[before, after] = (count + lines.true_count, amount, row)

    def _column(self, column: Column, texts: dict[int, pa.Array], maps: dict[int, pa.Array]) -> pa.Array:
        sources = self._layout.sources[column.name]
        found = [
            texts[source.position]
            if source.key is None
            else pc.map_lookup(maps[source.position], pa.scalar(source.key), "first")
            for source in sources
        ]
        text = pc.coalesce(*found)
        if column.name == self.listed.billed:
            self.billed_total += values.total(text)
        if column.is_filled and text.null_count:
            at = pc.index(text.is_null(), True).as_py()
            raise self._refused(at, sources[0].position, "the amount is missing")
        if column.type not in _READERS:
            return text
        return self._read(_READERS[column.type], text, sources[0].position, column if column.refuses else None)

    def _refused(self, at: int, position: int, reason: str) -> SourceError:
        where = f"{self.where}, row {self.row_count + at + 2} (the header is row 1), column {self.names[position]}"
        return SourceError(f"{where}: {reason}; fix that value or have the file delivered again.")

    def _read(self, reader: Callable, text: pa.Array, position: int, refusing: Column | None) -> pa.Array:
        values = reader(text)
        if values.null_count == text.null_count:
            return values
        at = pc.index(pc.and_(values.is_null(), text.is_valid()), True).as_py()
        first = f"{text[at].as_py()[:80]!r}"
        if refusing:
            raise self._refused(at, position, f"{first} is not {_KINDS[refusing.type]}")
        self._unread[position] += values.null_count - text.null_count
        self._first_unread.setdefault(position, f"first {first} in row {self.row_count + at + 2}")
        return values

    def _is_map(self, name: str) -> bool:
        return snake(name) in self.listed.map_names

    def _tag_columns(self) -> Iterator[str]:
        """A name for each tag column that differs from other columns in more than case, which SQL ignores."""
        taken = {column.name for column in self._columns}
        for tag in self._layout.tags:
            name = self.names[tag.position]
            while name.lower() in taken:
                name += "+"
            taken.add(name.lower())
            yield name


class _Lines:
    """Counts the lines of a csv as its blocks are read."""

    def __init__(self) -> None:
        self._breaks = 0
        self._end: list[pa.Buffer] = []

    def met(self, block: pa.Buffer) -> None:
        if block.size:
            octets = pl.Series(values=pa.Array.from_buffers(pa.uint8(), block.size, [None, block]))
            self._breaks += int((octets == _NEWLINE).sum())
            # A row spans two blocks at most.
            self._end = [*self._end[-1:], block]

    @property
    def count(self) -> int:
        """Lines read, the last one also where nothing ends it."""
        return self._breaks + (not self._tail.endswith(b"\n"))

    @property
    def last(self) -> bytes:
        """The last line read, without its end."""
        return self._tail.removesuffix(b"\n").rpartition(b"\n")[2]

    @property
    def _tail(self) -> bytes:
        return b"".join(block.to_pybytes() for block in self._end)


def _refuse_swallowed_rows(
    delivered: Path, names: Sequence[str], allowed: Allowance, lines: _Lines, row_count: int
) -> None:
    """SourceError, by row and column, where a value swallowed rows. Cheap where each line made a row.

    Text may break its lines within quotes: only then, or where lines are blank, is the file read again.
    """
    if lines.count == row_count + 1:
        *_, row = _rows(pa.BufferReader(lines.last + b"\n"), names)
        if row.num_rows and row.columns[-1][-1].as_py().endswith(b"\n"):
            raise _swallowed(allowed, row_count + 1, names[-1])
        return
    # The separators of a whole row: no text holds so many, and no row can be taken in without them.
    separators = len(names) - 1
    row = 2
    with unpacked(delivered, allowed) as stream:
        for block in _rows(stream, names, skipped=1):
            for name, cells in zip(names, block.columns, strict=True):
                broken = pc.match_substring_regex(cells, "[\r\n]")
                if broken.true_count:
                    taken = pc.and_(broken, pc.greater_equal(pc.count_substring(cells, ","), separators))
                    if (at := pc.index(taken, True).as_py()) >= 0:
                        raise _swallowed(allowed, row + at, name)
            row += block.num_rows


def _rows(stream: pa.NativeFile, names: Sequence[str], skipped: int = 0) -> Iterator[pa.RecordBatch]:
    """Every value of every column, as it stands."""
    positions = [str(position) for position in range(len(names))]
    yield from pyarrow.csv.open_csv(
        stream,
        pyarrow.csv.ReadOptions(block_size=_BLOCK_BYTES, skip_rows=skipped, column_names=positions),
        pyarrow.csv.ParseOptions(newlines_in_values=True),
        pyarrow.csv.ConvertOptions(check_utf8=False, column_types=dict.fromkeys(positions, pa.binary())),
    )


def _ahead(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same blocks, the next one read while one is worked on."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            yield block


def _swallowed(allowed: Allowance, row: int, name: str) -> SourceError:
    return SourceError(
        f"{allowed.where}, row {row} (the header is row 1), column {name}: a quote is not closed and swallows the rows "
        "after it; have the file delivered again."
    )
