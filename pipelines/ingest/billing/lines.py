"""Whether every line of a csv became a row: an unclosed quote swallows the rows after it."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.unpack import Allowance, unpacked
from pipelines.ingest.billing.values import pc

# Small enough to stay near the processor; no row is that long.
BLOCK_BYTES = 2 << 20
_NEWLINE = 10


class Lines:
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


def refuse_swallowed_rows(
    delivered: Path, names: Sequence[str], allowed: Allowance, lines: Lines, row_count: int
) -> None:
    """SourceError, by row and column, where a value swallowed rows. Cheap where each line made a row.

    Text may break its lines within quotes: only then, or where lines are blank, is the file read again.
    """
    if lines.count == row_count + 1:
        *_, row = rows(pa.BufferReader(lines.last + b"\n"), names)
        if row.num_rows and row.columns[-1][-1].as_py().endswith(b"\n"):
            raise _swallowed(allowed, row_count + 1, names[-1])
        return
    # The separators of a whole row: no text holds so many, and no row can be taken in without them.
    separators = len(names) - 1
    row = 2
    with unpacked(delivered, allowed) as stream:
        for block in rows(stream, names, skipped=1):
            for name, values in zip(names, block.columns, strict=True):
                broken = pc.match_substring_regex(values, "[\r\n]")
                if broken.true_count:
                    taken = pc.and_(broken, pc.greater_equal(pc.count_substring(values, ","), separators))
                    if (at := pc.index(taken, True).as_py()) >= 0:
                        raise _swallowed(allowed, row + at, name)
            row += block.num_rows


def rows(stream: pa.NativeFile, names: Sequence[str], skipped: int = 0) -> Iterator[pa.RecordBatch]:
    """Every value of every column, as it stands."""
    positions = [str(position) for position in range(len(names))]
    yield from pyarrow.csv.open_csv(
        stream,
        pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES, skip_rows=skipped, column_names=positions),
        pyarrow.csv.ParseOptions(newlines_in_values=True),
        pyarrow.csv.ConvertOptions(check_utf8=False, column_types=dict.fromkeys(positions, pa.binary())),
    )


def ahead(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
