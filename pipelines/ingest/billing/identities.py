"""The ids of delivered lines, written down while a file is read; AWS gives each once in a delivery (facts 1.3)."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.ingest.billing.columns import snake

# An id repeats every hour, so both columns together identify a line.
IDENTITY = ("identity_line_item_id", "identity_time_interval")
_BATCH_ROWS = 1 << 18


def id_positions(names: Sequence[str]) -> list[int]:
    """The positions of the columns that identify a line; none of a file without ids."""
    found = {snake(name): position for position, name in enumerate(names)}
    return [found[name] for name in IDENTITY if name in found] if IDENTITY[0] in found else []


def add_ids(stored: Path, block: Sequence[pa.Array]) -> None:
    """Add the ids of the next lines, the columns of `id_positions`, to the file next to `stored`.

    Each is one number of 8 bytes, 0 where a line has none; a file without ids gets no such file.
    """
    if block:
        ids = pl.DataFrame([pl.Series(str(at), values) for at, values in enumerate(block)])
        has_id = ids["0"].fill_null("") != ""
        numbers = ids.select(pl.when(has_id).then(ids.hash_rows()).otherwise(pl.lit(0, pl.UInt64)))
        with ids_of(stored).open("ab") as out:
            out.write(numbers.to_series().to_numpy().tobytes())


def ids_of(stored: Path) -> Path:
    """The file with the ids of the lines of `stored`."""
    return stored.with_suffix(".ids")


def write_ids(file: pq.ParquetFile, names: Sequence[str], stored: Path) -> None:
    """Write the ids of the lines of the Parquet file `stored`, open as `file`, with the columns `names`."""
    wanted = [names[at] for at in id_positions(names)]
    for batch in file.iter_batches(_BATCH_ROWS, columns=wanted) if wanted else ():
        add_ids(stored, [batch.column(name).cast(pa.string()) for name in wanted])
