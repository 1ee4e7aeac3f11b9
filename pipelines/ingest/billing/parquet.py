"""A delivered Parquet file: kept as it is, inspected once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.base.errors import SourceError, counted
from pipelines.ingest.billing.columns import MONEY, ColumnList, Delivered, Layout, RawFile, Tag, TagKey, snake
from pipelines.ingest.billing.identities import write_ids
from pipelines.ingest.billing.unpack import Allowance
from pipelines.ingest.billing.values import CALENDAR, MAP, MISSING, maps, pc

_BATCH_ROWS = 1 << 18
_TOO_MUCH = 1e10
_AGAIN = "have the file delivered again"
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6}
_KINDS = {MONEY: "a number below 10 billion", "TIMESTAMP": "a time of the years 1 to 9999"}


def read_amounts(
    file: pq.ParquetFile, columns: tuple[Delivered, ...], found: Layout, listed: ColumnList, where: str
) -> tuple[Decimal, list[str]]:
    """The billed total, to 10 places a line, and a warning for each column with values read as missing.

    SourceError, by row and column, for a value no bill can hold.
    """
    total, warnings = Decimal(0), []
    for column in listed.columns:
        for source in found.sources[column.name]:
            name = columns[source.position].name
            if column.type not in _KINDS or source.key is not None:
                continue
            if not column.is_filled and _null_count(file, name) == file.metadata.num_rows:
                continue
            kind, unread, first, row = _KINDS[column.type], 0, "", 1
            for values in _batches(file, name):
                if column.is_filled and values.null_count:
                    at = row + pc.index(values.is_null(), True).as_py()
                    raise SourceError(f"{where}, row {at}, column {name}: the amount is missing; {_AGAIN}.")
                bad = _no_amounts(values) if column.type == MONEY else _no_times(values)
                if bad is not None and bad.true_count:
                    at = pc.index(bad, True).as_py()
                    value, at = _shown(values[at]), row + at
                    if column.refuses or column.type != MONEY:
                        raise SourceError(f"{where}, row {at}, column {name}: {value} is not {kind}; {_AGAIN}.")
                    first = first or f"first {value} in row {at}"
                    unread += bad.true_count
                if column.name == listed.billed:
                    total += _total(values)
                row += len(values)
            if unread:
                warnings.append(
                    f"{counted(unread, 'value', 'are')} not {_KINDS[column.type]} in {name} ({first}); read as missing."
                    " Have the file delivered again."
                )
    return total, warnings


def silent_amounts(
    file: pq.ParquetFile, columns: tuple[Delivered, ...], found: Layout, listed: ColumnList
) -> list[str]:
    """A warning for lines without a billed amount, and for lines where a column that is not read has another value."""
    billed, price = (
        next((columns[source.position].name for source in found.sources[name]), None)
        for name in (listed.billed, listed.list_price)
    )
    warnings = []
    if billed and _null_count(file, billed) != 0:
        count, amount = _where(file, billed, None, price)
        if count:
            warnings.append(
                f"{counted(count, 'line', 'bill')} 0 without {billed}, so the cost of that usage is unknown; at public "
                f"prices it is {amount:,.2f}. Have the file delivered again."
            )
    read = {columns[source.position].name for sources in found.sources.values() for source in sources}
    twins = {name.lower(): name for name in read}
    for column in columns:
        twin = twins.get(column.name.lower(), column.name)
        if billed and column.form == "null" and twin != column.name:
            count, amount = _where(file, column.name, twin, billed)
            if count:
                warnings.append(
                    f"{counted(count, 'line', 'bill')} {amount:,.2f} with another value in {column.name}, which is not "
                    f"read, than in {twin}. Keep one of the columns in the export."
                )
    return warnings


def _null_count(file: pq.ParquetFile, name: str) -> int | None:
    """Lines without a value by the file's statistics, None where it has none; most columns of a bill are empty."""
    facts = file.metadata
    leaf = next(at for at in range(facts.num_columns) if file.schema.column(at).path == name)
    groups = [facts.row_group(number).column(leaf).statistics for number in range(facts.num_row_groups)]
    is_known = all(group is not None and group.has_null_count for group in groups)
    return sum(group.null_count for group in groups) if is_known else None


def _where(file: pq.ParquetFile, name: str, other: str | None, amounts: str | None) -> tuple[int, Decimal]:
    """How many lines have another value in one column than in `other`, or none, and the sum of `amounts` over them."""
    count, total = 0, Decimal(0)
    names = list(dict.fromkeys(filter(None, (name, other, amounts))))
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=names):
        if other is None:
            lines = batch.column(name).is_null()
        else:
            lines = pc.fill_null(pc.not_equal(*(batch.column(each).cast(pa.string()) for each in (name, other))), True)
        count += lines.true_count
        if amounts and lines.true_count:
            total += _total(batch.column(amounts).filter(lines))
    return count, total


def _batches(file: pq.ParquetFile, name: str) -> Iterator[pa.Array]:
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[name]):
        values = batch.column(0)
        yield values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _no_amounts(values: pa.Array) -> pa.Array | None:
    """A mask of those that are NaN, infinite or too large; None where none can be."""
    kind = values.type
    if pa.types.is_decimal(kind) and kind.scale <= 10 and kind.precision - kind.scale <= 10:
        return None
    return pc.invert(pc.less(pc.abs(values.cast(pa.float64(), safe=False)), _TOO_MUCH))


def _no_times(values: pa.Array) -> pa.Array | None:
    """A mask of those outside the calendar; None where none can be."""
    kind = values.type
    if pa.types.is_date32(kind):
        values, steps = values.cast(pa.timestamp("s"), safe=False), 1
    elif pa.types.is_date64(kind):
        steps = 1000
    elif kind.unit in _PER_SECOND:
        steps = _PER_SECOND[kind.unit]
    else:
        return None
    passed = values.view(pa.int64())
    first, last = (end * steps for end in CALENDAR)
    return pc.or_(pc.less(passed, first), pc.greater_equal(passed, last))


def _total(costs: pa.Array) -> Decimal:
    if pa.types.is_floating(costs.type):
        costs = costs.cast(pa.float64())
    exact = pl.Series(values=costs).cast(pl.Decimal(20, 10), strict=False)
    return Decimal(exact.cast(pl.Decimal(38, 10)).sum() or 0)


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value.as_py())
    except (OverflowError, ValueError):
        # Outside of Python's calendar.
        return f"{value.cast(pa.int64()).as_py()} {value.type}"


def unlisted_values(stored: Path, sources: Mapping[str, str], listed: ColumnList) -> list[str]:
    """A warning, with the most frequent one, for each column of a Parquet file with values that are not allowed.

    `sources` has the file's column of each normalized one.
    """
    warnings = []
    for wanted in listed.columns:
        if wanted.name not in sources or not wanted.allowed:
            continue
        counts: Counter[str | None] = Counter()
        column = sources[wanted.name]
        with pq.ParquetFile(stored, read_dictionary=[column]) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[column]):
                for met in batch.column(0).cast(pa.string()).value_counts().to_pylist():
                    counts[met["values"]] += met["counts"]
        unknown = Counter({value: count for value, count in counts.items() if value and value not in wanted.allowed})
        if unknown:
            warnings.append(
                f"{unknown.total()} values of {wanted.name} are not among {', '.join(wanted.allowed)} (most often "
                f"{unknown.most_common(1)[0][0][:80]!r}); these lines are classified by their other columns. Check "
                "them, and report a new value of AWS as an issue."
            )
    return warnings


def tag_keys_of(stored: Path, tags: Iterable[tuple[Tag, str]]) -> tuple[TagKey, ...]:
    """Every tag in these tag columns of a Parquet file, each with its name there."""
    return tuple(
        TagKey(key, tag.container, column, in_map=tag.key is None)
        for tag, column in tags
        for key in ([tag.key] if tag.key else _map_keys(stored, column))
    )


def inspect(stored: Path, *, key: str, allowed: Allowance, listed: ColumnList) -> RawFile:
    """The record of the Parquet file `stored`, delivered as `key`, by the columns of `listed`; writes its lines' ids.

    Raises SourceError when it is cut short, unpacks to more than it may, lacks a column, or has one of a type or with
    a value it cannot have.
    """
    where = allowed.where
    try:
        unread_maps = _read_maps(stored, listed)
        with pq.ParquetFile(stored, page_checksum_verification=True) as file:
            pages = sum(file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups))
            # A value counts at least a byte, also where one stands for a million.
            allowed.check(max(pages, file.metadata.num_rows * file.metadata.num_columns))
            columns, ambiguous = delivered_columns(file.schema_arrow)
            found = listed.layout(columns, where)
            total, unread = read_amounts(file, columns, found, listed, where)
            silent = silent_amounts(file, columns, found, listed)
            line_count = file.metadata.num_rows
            write_ids(file, [column.name for column in columns], stored)
        sources = {name: columns[held[0].position].name for name, held in found.sources.items() if held}
        unlisted = unlisted_values(stored, sources, listed)
        tag_keys = tag_keys_of(stored, ((tag, columns[tag.position].name) for tag in found.tags))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{where} is not a complete Parquet file ({reason}); have it delivered again.") from None
    others = (*ambiguous, *found.warnings, *unread_maps, *unread, *silent, *unlisted)
    warnings = tuple(f"{key}: {warning}" for warning in others)
    return RawFile(
        *(key, stored.name, stored.stat().st_size, line_count, total, columns, tag_keys, warnings),
        focus_version=listed.version([column.name for column in columns]),
    )


def _read_maps(stored: Path, listed: ColumnList) -> list[str]:
    """Make maps of columns that hold them as JSON text, as our own FOCUS export does; warnings of other texts."""
    with pq.ParquetFile(stored, page_checksum_verification=True) as file:
        kinds = {field.name: field.type for field in file.schema_arrow}
        texts = [name for name, kind in kinds.items() if snake(name) in listed.map_names and _form(kind) == "text"]
        if not texts:
            return []
        schema = pa.schema((name, MAP if name in texts else kind) for name, kind in kinds.items())
        unread: Counter[str] = Counter()
        made = stored.with_suffix(".maps")
        with pq.ParquetWriter(made, schema, compression="zstd") as writer:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
                for name in texts:
                    text = arrays[name].cast(pa.string())
                    text = pc.if_else(pc.is_in(text, pa.array(MISSING)), None, text)
                    arrays[name] = maps(text)
                    unread[name] += arrays[name].null_count - text.null_count
                writer.write_batch(pa.RecordBatch.from_arrays([*arrays.values()], schema=schema))
    made.replace(stored)
    found = ((name, count) for name, count in unread.items() if count)
    return [
        f"{counted(count, 'value', 'are')} no JSON in {name}; read as missing. Have the file delivered again."
        for name, count in found
    ]


def delivered_columns(schema: pa.Schema) -> tuple[tuple[Delivered, ...], list[str]]:
    """The columns, and a warning for each whose name differs from an earlier one only by case."""
    columns: list[Delivered] = []
    warnings: list[str] = []
    taken: set[str] = set()
    for field in schema:
        is_repeated = field.name.lower() in taken
        taken.add(field.name.lower())
        if is_repeated:
            warnings.append(
                f"column {field.name} differs only by case from an earlier one and is not read. Export one of them."
            )
        columns.append(Delivered(field.name, "null" if is_repeated else _form(field.type), str(field.type)))
    return tuple(columns), warnings


def _form(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_dictionary(kind):
        return _form(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "time"
    if types.is_floating(kind) or types.is_decimal128(kind) or types.is_integer(kind):
        return "number"
    if types.is_map(kind) and _form(kind.key_type) == _form(kind.item_type) == "text":
        return "map"
    return "null" if types.is_null(kind) else "other"


def _map_keys(stored: Path, column: str) -> list[str]:
    """Every key in a column of maps; the keys alone are read, and as codes, for a bill repeats a few."""
    with pq.ParquetFile(stored) as file:
        leaves = [file.schema.column(at).path for at in range(len(file.schema.names))]
    key_leaf = next(leaf for leaf in leaves if leaf.startswith(f"{column}."))
    try:
        return _distinct(stored, key_leaf, as_codes=True)
    except pa.ArrowNotImplementedError:
        # The writer stopped coding them because there are too many.
        return _distinct(stored, key_leaf, as_codes=False)


def _distinct(stored: Path, key_leaf: str, *, as_codes: bool) -> list[str]:
    met: dict[str, None] = {}
    with pq.ParquetFile(stored, read_dictionary=[key_leaf] if as_codes else None) as file:
        for group in range(file.num_row_groups):
            # Codes hold within one row group.
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group], columns=[key_leaf]):
                keys = batch.column(0).flatten().flatten()[0]
                met.update(dict.fromkeys(keys.unique().to_pylist()))
    return list(met)
