"""Repeated lines in one delivery: AWS's id of a line is unique within it (facts aws-billing 1.3).

The ids are collected while a file is read. Only if one repeats is the file read again, for two lines are the same only
if all their values are. Exports without ids are not checked, for there equal lines may be two charges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.columns import snake
from pipelines.ingest.billing.lines import rows
from pipelines.ingest.billing.unpack import Allowance, unpacked
from pipelines.ingest.billing.values import MISSING, total

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

    def are_repeated(self) -> bool:
        """Whether any id occurs twice."""
        return _has_repeats([self.ids])


def repeated_in_csv(delivered: Path, names: Sequence[str], billed: str, allowed: Allowance) -> list[str]:
    """A sentence on the lines of a csv that repeat another one; SourceError where the whole file is repeated."""
    cost, name = _positions(names, billed)
    with unpacked(delivered, allowed) as stream:
        blocks = (_frame(block, cost, name) for block in rows(stream, names, skipped=1))
        return _warnings(blocks, 2, allowed.where)


def repeated_in_parquet(stored: Path, names: Sequence[str], billed: str, where: str) -> tuple[list[str], pl.Series]:
    """The same of a Parquet file, if one of its ids repeats, and its ids; maps are not compared."""
    identities = Identities(names)
    if not identities.positions:
        return [], identities.ids
    with pq.ParquetFile(stored) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=[names[at] for at in identities.positions]):
            identities.add([batch.column(names[at]).cast(pa.string()) for at in identities.positions])
        if not identities.are_repeated():
            return [], identities.ids
        flat = _flat(file)
        cost, name = _positions(flat, billed)
        blocks = (_frame(batch, cost, name) for batch in file.iter_batches(_BATCH_ROWS, columns=flat))
        return _warnings(blocks, 1, where), identities.ids


def repeated_across(stored: Mapping[str, Path], ids: Mapping[str, pl.Series], billed: str) -> dict[str, str]:
    """By key of a file a sentence on its lines that an earlier file has too; `ids` are those of each file.

    Two lines are the same if their ids and all their values are; maps are not compared.
    """
    if not _has_repeats(list(ids.values())):
        return {}
    known = pl.concat(list(ids.values())).drop_nulls()
    again = known.filter(known.is_duplicated()).unique()
    lines = pl.concat([_lines_of(key, stored[key], of_file, again, billed) for key, of_file in ids.items()])
    first = lines.unique(["id", "line"], keep="first", maintain_order=True)
    repeats = lines.join(first, on=["id", "line"], suffix="_first").filter(pl.col("file") != pl.col("file_first"))
    warnings = {}
    for (key,), of_file in repeats.group_by("file", maintain_order=True):
        at = of_file.row(0, named=True)
        dollars = total(of_file["cost"].to_arrow().cast(pa.string()))
        warnings[str(key)] = (
            f"{len(of_file):,} lines repeat a line of another file in every value and in its id (first row "
            f"{at['row']}, as row {at['row_first']} of {at['file_first']}) and bill {dollars:,.2f} more than once; "
            "have the month delivered again."
        )
    return warnings


def _has_repeats(found: Sequence[pl.Series]) -> bool:
    """Whether an id occurs twice."""
    known = [ids.drop_nulls() for ids in found if len(ids)]
    return bool(known) and pl.concat(known, rechunk=False).n_unique() < sum(map(len, known))


def _lines_of(key: str, stored: Path, ids: pl.Series, wanted: pl.Series, billed: str) -> pl.DataFrame:
    """For each line with one of these ids: one number for all its values, its cost and its row."""
    with pq.ParquetFile(stored) as file:
        flat = _flat(file)
        cost = [snake(name) for name in flat].index(billed)
        blocks = [_frame(batch, cost, cost) for batch in file.iter_batches(_BATCH_ROWS, columns=flat)]
    # The header of a csv is its row 1.
    lines = pl.concat(blocks).with_row_index("row", 1 if key.endswith(".parquet") else 2)
    return lines.with_columns(ids.alias("id"), file=pl.lit(key)).filter(pl.col("id").is_in(wanted.implode()))


def _flat(file: pq.ParquetFile) -> list[str]:
    return [field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)]


def _positions(names: Sequence[str], billed: str) -> tuple[int, int]:
    found = [snake(name) for name in names]
    return found.index(billed), found.index(IDENTITY[0])


def _frame(block: pa.RecordBatch, cost: int, name: int) -> pl.DataFrame:
    """For each line: one number for all its values, its cost and its id."""
    # Dictionary codes differ between batches.
    plain = [held.dictionary_decode() if pa.types.is_dictionary(held.type) else held for held in block.columns]
    values = pl.DataFrame([pl.Series(str(at), held) for at, held in enumerate(plain)])
    named = values.select(
        pl.col(str(cost)).cast(pl.String).alias("cost"), pl.col(str(name)).cast(pl.String).alias("id")
    )
    return named.with_columns(values.hash_rows().alias("line"))


def _warnings(blocks: Iterable[pl.DataFrame], first_row: int, where: str) -> list[str]:
    lines = pl.concat(list(blocks)).with_row_index("row", first_row)
    lines = lines.filter(pl.col("id").is_in(MISSING).fill_null(True).not_())
    again = lines.filter(pl.col("line").is_first_distinct().not_()).sort("row")
    if again.is_empty():
        return []
    row = again["row"][0]
    other = lines.filter(pl.col("line") == again["line"][0])["row"].min()
    dollars = total(again["cost"].to_arrow().cast(pa.string()))
    finding = (
        f"repeat another line in every value and in its id (first row {row}, as row {other}) and bill {dollars:,.2f}"
    )
    if lines["line"].is_duplicated().all():
        raise SourceError(f"{where}: all its {len(lines):,} lines {finding} twice; have the file delivered again.")
    return [f"{len(again):,} lines {finding} more than once; have the file delivered again."]
