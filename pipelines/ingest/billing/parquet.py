"""A delivered Parquet file: kept as it is, inspected once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.amounts import read_amounts, unlisted_values
from pipelines.ingest.billing.columns import ColumnList, Delivered, Layout, RawFile, TagKey
from pipelines.ingest.billing.repeats import repeated_in_parquet
from pipelines.ingest.billing.unpack import Allowance

_BATCH_ROWS = 1 << 18


def inspect(stored: Path, *, key: str, allowed: Allowance, listed: ColumnList) -> tuple[RawFile, pl.Series]:
    """The record of the Parquet file `stored`, delivered as `key`, by the columns of `listed`; the ids of its lines.

    Raises SourceError when it is cut short, unpacks to more than it may, lacks a column, or has one of a type or with
    a value it cannot have.
    """
    where = allowed.where
    try:
        with pq.ParquetFile(stored, page_checksum_verification=True) as file:
            allowed.check(_unpacked_bytes(file.metadata))
            columns, ambiguous = _columns(file.schema_arrow)
            found = listed.layout(columns, where)
            total, unread = read_amounts(file, columns, found, listed, where)
            line_count = file.metadata.num_rows
        repeated, ids = repeated_in_parquet(stored, [column.name for column in columns], listed.billed, where)
        unlisted = unlisted_values(stored, columns, found, listed)
        tag_keys = tuple(_tag_keys(stored, columns, found, listed.tag_containers))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{where} is not a complete Parquet file ({reason}); have it delivered again.") from None
    warnings = tuple(f"{key}: {warning}" for warning in (*ambiguous, *found.warnings, *unread, *unlisted, *repeated))
    return RawFile(key, stored.name, stored.stat().st_size, line_count, total, columns, tag_keys, warnings), ids


def _unpacked_bytes(facts: pq.FileMetaData) -> int:
    """The unpacked size by the file's metadata; a value counts at least a byte, also where one stands for a million."""
    pages = sum(facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
    return max(pages, facts.num_rows * facts.num_columns)


def _columns(schema: pa.Schema) -> tuple[tuple[Delivered, ...], list[str]]:
    """The columns, and a warning for each whose name differs from an earlier one only by case."""
    columns: list[Delivered] = []
    warnings: list[str] = []
    taken: set[str] = set()
    for field in schema:
        is_repeated = field.name.lower() in taken
        taken.add(field.name.lower())
        if is_repeated:
            warnings.append(f"column {field.name} differs only by case from an earlier one and is not read.")
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


def _tag_keys(
    stored: Path, columns: tuple[Delivered, ...], found: Layout, containers: Sequence[str]
) -> Iterator[TagKey]:
    for container in containers:
        for tag in found.tags:
            name = columns[tag.position].name
            if tag.container == container and tag.key:
                yield TagKey(tag.key, container, name, in_map=False)
            elif tag.container == container:
                for key in _map_keys(stored, name):
                    yield TagKey(key, container, name, in_map=True)


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
