"""Repeated lines in one delivery: AWS's id of a line is unique within it (facts aws-billing 1.3).

The ids are collected while a file is read. Only if one repeats are the stored files read again, for two lines are the
same only if all their values are; maps are not compared. Exports without ids are not checked, for there equal lines may
be two charges.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.columns import snake
from pipelines.ingest.billing.values import total

# An id repeats every hour, so both columns together identify a line.
IDENTITY = ("identity_line_item_id", "identity_time_interval")
_BATCH_ROWS = 1 << 18


class Identities:
    """The ids of a file's lines, collected block by block as one number each, null where a line has none."""

    def __init__(self, names: Sequence[str]):
        found = {snake(name): position for position, name in enumerate(names)}
        self.positions = [found[name] for name in IDENTITY if name in found] if IDENTITY[0] in found else []
        self._ids: list[pl.Series] = []

    def add(self, block: Sequence[pa.Array]) -> None:
        """The columns at `positions` of the next lines."""
        if block:
            ids = pl.DataFrame([pl.Series(str(at), values) for at, values in enumerate(block)])
            has_id = ids["0"].fill_null("") != ""
            self._ids.append(ids.select(pl.when(has_id).then(ids.hash_rows()).alias("id"))["id"])

    @property
    def ids(self) -> pl.Series:
        """The number of each line, in their order; of no line where the file has no ids."""
        return pl.concat(self._ids) if self._ids else pl.Series("id", dtype=pl.UInt64)


def ids_in_parquet(file: pq.ParquetFile, names: Sequence[str]) -> pl.Series:
    """The ids of the lines of a Parquet file with the columns `names`."""
    identities = Identities(names)
    wanted = [names[at] for at in identities.positions]
    for batch in file.iter_batches(_BATCH_ROWS, columns=wanted) if wanted else ():
        identities.add([batch.column(name).cast(pa.string()) for name in wanted])
    return identities.ids


def repeated_lines(
    stored: Mapping[str, Path], ids: Mapping[str, pl.Series], billed: str, uri: Callable[[str], str]
) -> dict[str, list[str]]:
    """By key of a file a sentence on its lines that repeat one of its own, and one on those an earlier file has too.

    `ids` are those of each file with ids. SourceError, naming the file by its `uri`, where all of a file is repeated.
    """
    known = pl.concat([pl.Series("id", dtype=pl.UInt64), *ids.values()], rechunk=False).drop_nulls()
    if known.n_unique() == len(known):
        return {}
    again = known.filter(known.is_duplicated()).unique()
    lines = pl.concat([_lines_of(key, stored[key], of_file, again, billed) for key, of_file in ids.items()])
    warnings: dict[str, list[str]] = {}
    for (key,), of_file in lines.group_by("file", maintain_order=True):
        repeats = _repeats(of_file)
        if repeats.is_empty():
            continue
        finding = f"repeat another line {_first(repeats)} and bill {_dollars(repeats)}"
        count = ids[str(key)].count()
        if of_file.select("id", "line").is_duplicated().sum() == count:
            where = uri(str(key))
            raise SourceError(f"{where}: all its {count:,} lines {finding} twice; have the file delivered again.")
        warnings[str(key)] = [f"{len(repeats):,} lines {finding} more than once; have the file delivered again."]
    across = _repeats(lines).filter(pl.col("file") != pl.col("file_first"))
    for (key,), of_file in across.group_by("file", maintain_order=True):
        warnings.setdefault(str(key), []).append(
            f"{len(of_file):,} lines repeat a line of another file {_first(of_file, ' of {file_first}')} and bill "
            f"{_dollars(of_file)} more than once; have the month delivered again."
        )
    return warnings


def _repeats(lines: pl.DataFrame) -> pl.DataFrame:
    first = lines.unique(["id", "line"], keep="first", maintain_order=True)
    repeats = lines.join(first, on=["id", "line"], suffix="_first", maintain_order="left")
    return repeats.filter((pl.col("row") != pl.col("row_first")) | (pl.col("file") != pl.col("file_first")))


def _first(repeats: pl.DataFrame, of_file: str = "") -> str:
    at = repeats.row(0, named=True)
    return f"in every value and in its id (first row {at['row']}, as row {at['row_first']}{of_file.format(**at)})"


def _dollars(lines: pl.DataFrame) -> str:
    return f"{total(lines['cost'].to_arrow().cast(pa.string())):,.2f}"


def _lines_of(key: str, stored: Path, ids: pl.Series, wanted: pl.Series, billed: str) -> pl.DataFrame:
    """For each line with one of these ids: one number for all its values, its cost and its row."""
    with pq.ParquetFile(stored) as file:
        flat = [field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)]
        cost = [snake(name) for name in flat].index(billed)
        blocks = [_frame(batch, cost) for batch in file.iter_batches(_BATCH_ROWS, columns=flat)]
    # The header of a csv is its row 1.
    lines = pl.concat(blocks).with_row_index("row", 1 if key.endswith(".parquet") else 2)
    return lines.with_columns(ids.alias("id"), file=pl.lit(key)).filter(pl.col("id").is_in(wanted.implode()))


def _frame(block: pa.RecordBatch, cost: int) -> pl.DataFrame:
    """For each line: one number for all its values, and its cost."""
    # Dictionary codes differ between batches.
    plain = [held.dictionary_decode() if pa.types.is_dictionary(held.type) else held for held in block.columns]
    values = pl.DataFrame([pl.Series(str(at), held) for at, held in enumerate(plain)])
    return values.select(cost=pl.col(str(cost)).cast(pl.String)).with_columns(line=values.hash_rows())
