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
