"""The run-event files of a source, read once into one typed frame per kind of event.

Files are read one after the other, a few ahead for stores that answer slowly. Events leave Python for a frame
every so often; unknown events leave only a time behind, heartbeats the tokens seen as well.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import polars as pl

from pipelines.base.errors import SourceError, shown
from pipelines.ingest.json_lines import lines_of_file
from pipelines.ingest.runs.event import FIELDS, Event, Wrong, parse_event, run_of
from pipelines.warehouse.storage import Object, Store

# The first columns of every frame: run, attempt, time (ms since 1970 UTC), and the line for messages.
BASE = {"run_id": pl.String, "attempt_no": pl.Int64, "at": pl.Int64, "file_no": pl.UInt32, "line_no": pl.UInt32}
# An event of the run as a whole belongs to no attempt.
NO_ATTEMPT = 0
_OF_THE_RUN = ("run_started", "run_ended")
_KEEPS_NOTHING = ("heartbeat",)
# What follows the run in the warning of one.
ASIDE = " is set aside"
_AHEAD_BYTES = 64 << 20
_FLUSH_ROWS = 8_000


class EventLog:
    """All events of a source: `frame(kind)`, when each attempt was seen, and the warnings of reading.

    A run with an event that is wrong is set aside: its events are left out, and a warning names the first wrong one.
    """

    def __init__(self, store: Store):
        self._store = store
        self._keys: list[str] = []
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._frames: dict[str, list[pl.DataFrame]] = {}
        self._seen: dict[tuple[str, int], list[int]] = {}
        self._tokens: dict[tuple[str, int], float] = {}
        self._strange: Counter[tuple[str, str]] = Counter()
        self._unknown: Counter[str] = Counter()
        self._cut: list[str] = []
        self.aside: dict[str, str] = {}

    def read(self, objects: Sequence[Object]) -> None:
        """Read event files; SourceError names file, line and fix of the first line that is of no run."""
        for key, content in _contents(self._store, objects):
            self._keys.append(key)
            self._read_file(key, content, self._store.uri(key))

    def frame(self, kind: str) -> pl.DataFrame:
        """The events of one kind: BASE and a column per field of FIELDS[kind]; null where a line lacks it."""
        self._flush(kind)
        found = pl.concat([pl.DataFrame(schema=_schema(kind)), *self._frames.get(kind, ())])
        return found.filter(~pl.col("run_id").is_in([*self.aside])) if self.aside else found

    def ordered(self, kind: str) -> pl.DataFrame:
        """The events of one kind by run and time, equal times by content: no order of delivery shows."""
        return self.frame(kind).sort("run_id", "at", "attempt_no", *FIELDS[kind], nulls_last=True)

    def seen(self) -> pl.DataFrame:
        """First and last event, and most tokens of a heartbeat by (run_id, attempt_no); NO_ATTEMPT is the whole run."""
        seen = ((alive, span) for alive, span in self._seen.items() if alive[0] not in self.aside)
        rows = [(*alive, *span, self._tokens.get(alive)) for alive, span in seen]
        numbers = dict.fromkeys(("attempt_no", "first_at", "last_at"), pl.Int64)
        return pl.DataFrame(rows, {"run_id": pl.String, **numbers, "tokens_seen": pl.Float64}, orient="row")

    def place(self, file_no: int, line_no: int) -> str:
        return f"{self._store.uri(self._keys[file_no])} line {line_no}"

    def warnings(self) -> list[str]:
        """One sentence for each thing that was skipped."""
        unknown = (
            f"{self._store.location}: {_lines(count)} of unknown kind {kind!r} skipped; correct the kind."
            for kind, count in self._unknown.items()
        )
        strange = (
            f"{self._store.location}: unknown field {field!r} of {kind} skipped in {_lines(count)}; correct its name."
            for (kind, field), count in self._strange.items()
        )
        aside = (
            f"Run {shown(run)}{ASIDE}, so what its machines cost is no run's: {why}" for run, why in self.aside.items()
        )
        return [*unknown, *strange, *self._cut, *aside]

    def _read_file(self, key: str, content: bytes, where: str) -> None:
        file_no = len(self._keys) - 1
        for number, (line, is_whole) in enumerate(lines_of_file(key, content, where), start=1):
            if not line or line.isspace():
                continue
            try:
                event = parse_event(line)
            except Wrong as wrong:
                # A crash can only cut the very end: it leaves the start of an object and no line end.
                if is_whole or not line.lstrip().startswith(b"{") or line.rstrip().endswith(b"}"):
                    if (run := run_of(line)) is None:
                        raise SourceError(f"{where} line {number} {wrong}") from None
                    self.aside.setdefault(run, f"{where} line {number} {wrong}")
                    continue
                self._cut.append(
                    f"{where} ends in the middle of line {number}; that event is skipped. Write it again if it is lost."
                )
                continue
            self._take(event, file_no, number)

    def _take(self, event: Event, file_no: int, line_no: int) -> None:
        kind, run_id, attempt, at, values, strange = event
        for field in strange:
            self._strange[kind, field] += 1
        fields = FIELDS.get(kind)
        if fields is None:
            self._unknown[kind] += 1
            attempt = attempt or NO_ATTEMPT
        else:
            attempt = attempt or 1
        alive = (run_id, NO_ATTEMPT if kind in _OF_THE_RUN else attempt)
        if (span := self._seen.get(alive)) is None:
            self._seen[alive] = [at, at]
        elif at > span[1]:
            span[1] = at
        elif at < span[0]:
            span[0] = at
        if kind == "heartbeat" and (tokens := values.get("tokens_seen")) is not None:
            self._tokens[alive] = max(tokens, self._tokens.get(alive, tokens))
        if fields is None or kind in _KEEPS_NOTHING:
            return
        rows = self._rows.setdefault(kind, [])
        rows.append((run_id, attempt, at, file_no, line_no, *map(values.get, fields)))
        if len(rows) >= _FLUSH_ROWS:
            self._flush(kind)

    def _flush(self, kind: str) -> None:
        if kind in self._rows:
            columns = zip(_schema(kind), zip(*self._rows.pop(kind), strict=True), strict=True)
            self._frames.setdefault(kind, []).append(pl.DataFrame(dict(columns), schema=_schema(kind)))


def _schema(kind: str) -> dict[str, type[pl.DataType]]:
    return {**BASE, **{name: form.dtype for name, form in FIELDS[kind].items()}}


def _contents(store: Store, objects: Sequence[Object]) -> Iterator[tuple[str, bytes]]:
    """Key and bytes of each object in order, read a little ahead."""
    with ThreadPoolExecutor(8, thread_name_prefix="run-events") as pool:
        waiting: deque[tuple[Object, Future[bytes]]] = deque()
        ahead = 0
        try:
            for item in objects:
                while waiting and (ahead + item.size > _AHEAD_BYTES or len(waiting) >= 32):
                    done, content = waiting.popleft()
                    ahead -= done.size
                    yield done.key, content.result()
                waiting.append((item, pool.submit(store.read, item.key)))
                ahead += item.size
            while waiting:
                done, content = waiting.popleft()
                yield done.key, content.result()
        finally:
            for _, content in waiting:
                content.cancel()


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"
