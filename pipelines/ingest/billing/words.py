"""Columns of few allowed words: what else a delivered file says in them, counted and told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.ingest.billing.columns import ColumnList, Delivered, Layout

_BATCH_ROWS = 1 << 18


class Words:
    """The words met in the columns of a list that allow only some."""

    def __init__(self, listed: ColumnList):
        self._allowed = {name: (None, "", *words) for name, words in listed.words}
        self._odd: dict[str, Counter[str]] = {}

    def look(self, name: str, values: pa.Array) -> None:
        """Count what a normalised column holds and should not."""
        for met in values.value_counts().to_pylist() if name in self._allowed else ():
            if met["values"] not in self._allowed[name]:
                self._odd.setdefault(name, Counter())[met["values"]] += met["counts"]

    def warnings(self) -> list[str]:
        """A sentence for each column, the most frequent word first."""
        return [
            f"{odd.total()} values of {name} are none of {', '.join(filter(None, self._allowed[name]))} (most often "
            f"{odd.most_common(1)[0][0][:80]!r}); these lines count by what else they say."
            for name, odd in self._odd.items()
        ]


def odd_words(stored: Path, columns: tuple[Delivered, ...], found: Layout, listed: ColumnList) -> list[str]:
    """The warnings of a Parquet file."""
    words = Words(listed)
    for name, _ in listed.words:
        for source in found.sources[name][:1]:
            column = columns[source.position].name
            with pq.ParquetFile(stored, read_dictionary=[column]) as file:
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[column]):
                    words.look(name, batch.column(0).cast(pa.string()))
    return words.warnings()
