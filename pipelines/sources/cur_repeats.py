"""Lines that stand twice in one delivered file: AWS's id of a line is unique within a delivery (facts aws-billing 1.3).

The ids are looked at as they pass. Only where one comes again is the file read once more, for two lines are one and the
same only if every value of theirs is; exports without ids are not looked at, for there equal lines may be two charges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import SourceError
from pipelines.sources.cur_columns import snake
from pipelines.sources.cur_lines import rows
from pipelines.sources.cur_unpack import Allowance, unpacked
from pipelines.sources.cur_values import MISSING, total

# An id comes again hour by hour, so both together name a line.
IDENTITY = ("identity_line_item_id", "identity_time_interval")
_BATCH_ROWS = 1 << 18


class Identities:
    """The ids of a file's lines, met block by block; kept as one number each."""

    def __init__(self, names: Sequence[str]):
        found = {snake(name): position for position, name in enumerate(names)}
        self.positions = [found[name] for name in IDENTITY if name in found] if IDENTITY[0] in found else []
        self._met: list[pl.Series] = []

    def meet(self, block: Sequence[pa.Array]) -> None:
        """The columns at `positions` of the next lines; a line without an id is passed over."""
        if block:
            ids = pl.DataFrame([pl.Series(str(at), values) for at, values in enumerate(block)])
            self._met.append(ids.filter(pl.col("0").fill_null("") != "").hash_rows())

    def come_again(self) -> bool:
        """Whether any id was met twice."""
        met = pl.concat(self._met) if self._met else pl.Series(dtype=pl.UInt64)
        return met.n_unique() < len(met)


def repeated_in_csv(delivered: Path, names: Sequence[str], billed: str, allowed: Allowance) -> list[str]:
    """A sentence on the lines of a csv that repeat another one; SourceError where the whole file is there twice."""
    cost, name = _places(names, billed)
    with unpacked(delivered, allowed) as stream:
        blocks = (_frame(block, cost, name) for block in rows(stream, names, skipped=1))
        return _told(blocks, 2, allowed.where)


def repeated_in_parquet(stored: Path, names: Sequence[str], billed: str, where: str) -> list[str]:
    """The same of a Parquet file, if an id of it comes again; maps are not compared."""
    identities = Identities(names)
    if not identities.positions:
        return []
    with pq.ParquetFile(stored) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=[names[at] for at in identities.positions]):
            identities.meet([batch.column(names[at]).cast(pa.string()) for at in identities.positions])
        if not identities.come_again():
            return []
        flat = [field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)]
        cost, name = _places(flat, billed)
        blocks = (_frame(batch, cost, name) for batch in file.iter_batches(_BATCH_ROWS, columns=flat))
        return _told(blocks, 1, where)


def _places(names: Sequence[str], billed: str) -> tuple[int, int]:
    found = [snake(name) for name in names]
    return found.index(billed), found.index(IDENTITY[0])


def _frame(block: pa.RecordBatch, cost: int, name: int) -> pl.DataFrame:
    """Of each line one number for all its values, what it bills and its id."""
    # The codes of a batch are its own.
    plain = [held.dictionary_decode() if pa.types.is_dictionary(held.type) else held for held in block.columns]
    values = pl.DataFrame([pl.Series(str(at), held) for at, held in enumerate(plain)])
    told = values.select(pl.col(str(cost)).cast(pl.String).alias("cost"), pl.col(str(name)).cast(pl.String).alias("id"))
    return told.with_columns(values.hash_rows().alias("line"))


def _told(blocks: Iterable[pl.DataFrame], first_row: int, where: str) -> list[str]:
    lines = pl.concat(list(blocks)).with_row_index("row", first_row)
    lines = lines.filter(pl.col("id").is_in(MISSING).fill_null(True).not_())
    again = lines.filter(pl.col("line").is_first_distinct().not_()).sort("row")
    if again.is_empty():
        return []
    row = again["row"][0]
    other = lines.filter(pl.col("line") == again["line"][0])["row"].min()
    dollars = total(again["cost"].to_arrow().cast(pa.string()))
    said = f"repeat another line in every value and in its id (first row {row}, as row {other}) and bill {dollars:,.2f}"
    if lines["line"].is_duplicated().all():
        raise SourceError(f"{where}: all its {len(lines):,} lines {said} twice; have the file delivered again.")
    return [f"{len(again):,} lines {said} more than once; have the file delivered again."]
