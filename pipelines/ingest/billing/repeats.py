"""Repeated lines in one delivery: AWS's id of a line is unique within it (facts aws-billing 1.3).

The ids are written down while a file is read. Only if one repeats are the stored files read again, for two lines are
the same only if all their values are; maps are not compared. Exports without ids are not checked, for there equal lines
may be two charges. Memory does not grow with lines, only with those that repeat.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.columns import snake
from pipelines.ingest.billing.values import total

# An id repeats every hour, so both columns together identify a line.
IDENTITY = ("identity_line_item_id", "identity_time_interval")
_BATCH_ROWS = 1 << 18
_ID_BYTES = 8
# Ids that are compared at once; of more, each such part is a pass over all of them.
_MOST_AT_ONCE = 1 << 24


class Identities:
    """Writes the ids of a file's lines to a file next to `stored`, block by block.

    Each is one number of 8 bytes, 0 where a line has none; a file without ids gets no such file.
    """

    def __init__(self, names: Sequence[str], stored: Path):
        found = {snake(name): position for position, name in enumerate(names)}
        self.positions = [found[name] for name in IDENTITY if name in found] if IDENTITY[0] in found else []
        self._out = ids_of(stored)

    def add(self, block: Sequence[pa.Array]) -> None:
        """The columns at `positions` of the next lines."""
        if block:
            ids = pl.DataFrame([pl.Series(str(at), values) for at, values in enumerate(block)])
            has_id = ids["0"].fill_null("") != ""
            numbers = ids.select(pl.when(has_id).then(ids.hash_rows()).otherwise(pl.lit(0, pl.UInt64)))
            with self._out.open("ab") as out:
                out.write(numbers.to_series().to_numpy().tobytes())


def ids_of(stored: Path) -> Path:
    """The file with the ids of the lines of `stored`."""
    return stored.with_suffix(".ids")


def write_ids(file: pq.ParquetFile, names: Sequence[str], stored: Path) -> None:
    """Write the ids of the lines of the Parquet file `stored`, open as `file`, with the columns `names`."""
    identities = Identities(names, stored)
    wanted = [names[at] for at in identities.positions]
    for batch in file.iter_batches(_BATCH_ROWS, columns=wanted) if wanted else ():
        identities.add([batch.column(name).cast(pa.string()) for name in wanted])


def repeated_lines(stored: Mapping[str, Path], billed: str, uri: Callable[[str], str]) -> dict[str, list[str]]:
    """By key of a file a sentence on its lines that repeat one of its own, and one on those an earlier file has too.

    SourceError, naming the file by its `uri`, where all of a file is repeated.
    """
    with_ids = {key: file for key, file in stored.items() if ids_of(file).exists()}
    again = _repeated([*with_ids.values()])
    if again.is_empty():
        return {}
    lines = pl.concat([_lines_of(key, file, again, billed) for key, file in with_ids.items()])
    warnings: dict[str, list[str]] = {}
    for (key,), of_file in lines.group_by("file", maintain_order=True):
        repeats = _repeats(of_file)
        if repeats.is_empty():
            continue
        finding = f"repeat another line {_first(repeats)} and bill {_dollars(repeats)}"
        count = (_ids(stored[str(key)]) != 0).sum()
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


def _ids(stored: Path) -> pl.Series:
    return pl.Series("id", np.fromfile(ids_of(stored), dtype=np.uint64))


def _repeated(stored: Sequence[Path]) -> pl.Series:
    """The ids that several lines of these files have."""
    count = sum(ids_of(file).stat().st_size for file in stored) // _ID_BYTES
    parts = -(-count // _MOST_AT_ONCE)
    repeated = [pl.Series("id", dtype=pl.UInt64)]
    for part in range(parts):
        ids = pl.concat([ids.filter((ids != 0) & (ids % parts == part)) for ids in map(_ids, stored)])
        if ids.n_unique() < len(ids):
            repeated.append(ids.filter(ids.is_duplicated()).unique())
    return pl.concat(repeated)


def _repeats(lines: pl.DataFrame) -> pl.DataFrame:
    first = lines.unique(["id", "line"], keep="first", maintain_order=True)
    repeats = lines.join(first, on=["id", "line"], suffix="_first", maintain_order="left")
    return repeats.filter((pl.col("row") != pl.col("row_first")) | (pl.col("file") != pl.col("file_first")))


def _first(repeats: pl.DataFrame, of_file: str = "") -> str:
    at = repeats.row(0, named=True)
    return f"in every value and in its id (first row {at['row']}, as row {at['row_first']}{of_file.format(**at)})"


def _dollars(lines: pl.DataFrame) -> str:
    return f"{total(lines['cost'].to_arrow().cast(pa.string())):,.2f}"


def _lines_of(key: str, stored: Path, wanted: pl.Series, billed: str) -> pl.DataFrame:
    """For each line with one of these ids: its row, its id, one number for all its values, its cost and its file."""
    # The header of a csv is its row 1.
    facts = pl.DataFrame({"id": _ids(stored)}).with_row_index("row", 1 if key.endswith(".parquet") else 2)
    is_wanted = facts["id"].is_in(wanted.implode())
    with pq.ParquetFile(stored) as file:
        flat = [field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)]
        cost = [snake(name) for name in flat].index(billed)
        blocks, at = [], 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=flat):
            here = is_wanted.slice(at, batch.num_rows)
            blocks.append(_frame(batch.filter(here.to_arrow()), cost))
            at += batch.num_rows
    return pl.concat([facts.filter(is_wanted), pl.concat(blocks)], how="horizontal").with_columns(file=pl.lit(key))


def _frame(block: pa.RecordBatch, cost: int) -> pl.DataFrame:
    """For each line: one number for all its values, and its cost."""
    # Dictionary codes differ between batches.
    plain = [held.dictionary_decode() if pa.types.is_dictionary(held.type) else held for held in block.columns]
    values = pl.DataFrame([pl.Series(str(at), held) for at, held in enumerate(plain)])
    return values.select(cost=pl.col(str(cost)).cast(pl.String)).with_columns(line=values.hash_rows())
