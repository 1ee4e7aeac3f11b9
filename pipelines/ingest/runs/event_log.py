"""The run-event files of a source, read once into one typed frame per kind of event.

Files are read one after the other, a few ahead for stores that answer slowly, and block by block. Lines of a plain
form are read as columns; a line with anything odd in it is read by itself, with the same values or a message. Unknown
events leave only a time behind, heartbeats the tokens seen as well.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, date, datetime
from io import BytesIO
from typing import Any

import polars as pl

from pipelines.base.errors import MalformedError, shown
from pipelines.base.parse import parse_json
from pipelines.ingest.json_lines import blocks_of_file
from pipelines.ingest.runs.event import (
    EPOCH,
    FIELDS,
    MS,
    TARGET,
    Event,
    Form,
    Wrong,
    clock,
    parse_event,
    plain_lines,
    run_of,
)
from pipelines.ingest.runs.records import set_aside
from pipelines.ingest.schema import AHEAD, FUTURE
from pipelines.warehouse.storage import Object, Store

# The first columns of every frame: run, attempt, time (ms since 1970 UTC), and the line for messages.
BASE = {"run_id": pl.String, "attempt_no": pl.Int64, "at": pl.Int64, "file_no": pl.UInt32, "line_no": pl.UInt32}
_LINES = {"file_no": pl.UInt32, "line_no": pl.Int64, "line": pl.String}
_SEEN = {
    "run_id": pl.String, "attempt_no": pl.Int64, "first_at": pl.Int64, "last_at": pl.Int64, "tokens_seen": pl.Float64
}  # fmt: skip
_OWNERS = {"run_id": pl.String, "file_no": pl.UInt32}
# An event of the run as a whole belongs to no attempt.
NO_ATTEMPT = 0
_OF_THE_RUN = ("run_started", "run_ended")
_KEEPS_NOTHING = ("heartbeat",)
# What of the start of a run decides with which runs it may be compared.
_UNREAD_FACTS = ("workload_id", "model", "dataset", "seq_len", "global_batch_samples", "precision", *TARGET)
_AHEAD_BYTES, _BATCH_BYTES = 64 << 20, 1 << 20
_BLOCK_BYTES = 16 << 20
# The times of an event.
_TIMES = ("at", "save_started_at", "durable_at")
# So much the clocks of machines may differ.
_SKEW_MS = 60_000
# What closes, with what it closes and by which key.
_CLOSES = {"resource_left": ("resource_joined", "resource"), "phase_ended": ("phase_started", "phase")}
Forms = dict[str, dict[tuple[str, ...], tuple[str, dict[str, Form]] | None]]
"""The forms of lines met so far, by kind and keys: a writer has a few, which differ in the keys they have."""


class EventLog:
    """All events of a source: `frame(kind)`, when each attempt was seen, and the warnings of reading.

    A run with an event that is wrong is set aside: its events are left out, and a warning names the first wrong one.
    What cannot be read and names no run is skipped, and may be of any run of its file.
    """

    def __init__(self, store: Store, today: date):
        self._store = store
        self._keys: list[str] = []
        # By kind of event; those of "" have when each attempt was seen.
        self._frames: dict[str, list[pl.DataFrame]] = {}
        # The runs of each file.
        self._owners: list[pl.DataFrame] = []
        self._runs = pl.Enum([])
        self._forms: Forms = {}
        # Blocks that wait to be read together: the number of their file and of their first line.
        self._waiting: list[tuple[int, int, bytes]] = []
        # Fields by kind that are unknown, None where the kind is, and where the first of each lies.
        self._unknown: Counter[tuple[str, str | None]] = Counter()
        self._first: dict[tuple[str, str | None], str] = {}
        self._cut: list[str] = []
        # The first fault of each file with something that is of no run, and how many it has.
        self._faults: dict[int, str] = {}
        self._fault_counts: Counter[int] = Counter()
        self._odd_ends: dict[str, str] = {}
        self.aside: dict[str, str] = {}
        self._too_late = (datetime(today.year, today.month, today.day, tzinfo=UTC) + AHEAD - EPOCH) // MS

    def read(self, objects: Sequence[Object]) -> None:
        """Read event files."""
        waiting_bytes = 0
        for key, content in _contents(self._store, objects):
            self._keys.append(key)
            first_line = 1
            try:
                if isinstance(content, MalformedError):
                    raise content
                for block in blocks_of_file(key, BytesIO(content), len(content), self._store.uri(key)):
                    self._waiting.append((len(self._keys) - 1, first_line, block))
                    first_line += block.count(b"\n")
                    waiting_bytes += len(block)
                    if waiting_bytes >= _BLOCK_BYTES:
                        self._read_waiting()
                        waiting_bytes = 0
            except MalformedError as error:
                # What came before it is wrong first.
                self._read_waiting()
                self._fault(len(self._keys) - 1, str(error))
        self._read_waiting()
        # Run ids become numbers in their order: millions of events are sorted, grouped and joined by them.
        found = {kind: pl.concat(frames) for kind, frames in self._frames.items()}
        self._runs = pl.Enum(found[""]["run_id"].unique().sort() if found else [])
        late = _late_starts(found["attempt_started"]) if "attempt_started" in found else pl.DataFrame()
        if late.height:
            found |= {kind: _renumbered(kind, found, late) for kind in found if kind}
        self._frames = {kind: [frame.cast({"run_id": self._runs})] for kind, frame in found.items()}

    def frame(self, kind: str) -> pl.DataFrame:
        """The events of one kind: BASE and a column per field of FIELDS[kind]; null where a line lacks it."""
        return self._without_aside(self._all(kind))

    def ordered(self, kind: str) -> pl.DataFrame:
        """The events of one kind by run and time, equal times by content: no order of delivery shows."""
        return self.frame(kind).sort("run_id", "at", "attempt_no", *FIELDS[kind], nulls_last=True)

    def seen(self) -> pl.DataFrame:
        """First and last event, and most tokens of a heartbeat by (run_id, attempt_no); NO_ATTEMPT is the whole run."""
        return self._without_aside(_spans(self._all("")))

    def place(self, file_no: int, line_no: int) -> str:
        return f"{self._store.uri(self._keys[file_no])} line {line_no}"

    def warnings(self) -> list[str]:
        """One sentence for each thing that was skipped."""
        unknown = (
            f"{self._first[kind, field]}: unknown kind {shown(kind)} skipped{_more(count)}; correct the kind."
            if field is None
            else f"{self._first[kind, field]}: unknown field {shown(field)} of {kind} skipped{_more(count)}; "
            "correct its name."
            for (kind, field), count in self._unknown.items()
        )
        aside = (set_aside(run, why) for run, why in self.aside.items())
        odd_ends = (
            f"Run {shown(run)} counts as a run of unknown end: {why}"
            for run, why in self._odd_ends.items()
            if run not in self.aside
        )
        faults = (
            f"{fault} It is skipped{_more(self._fault_counts[file_no])}, and comparisons with runs of that file stay "
            "indicative."
            for file_no, fault in self._faults.items()
        )
        return [*unknown, *self._cut, *odd_ends, *faults, *aside]

    def unread(self) -> pl.DataFrame:
        """The runs of which an event cannot be read, with what the others record; a null run for a file without one."""
        owners = pl.concat([pl.DataFrame(schema=_OWNERS), *self._owners])
        of_fault = owners.filter(pl.col("file_no").is_in([*self._faults]))
        known = {*of_fault["file_no"]}
        run_ids = {*of_fault["run_id"], *self.aside}
        found = pl.DataFrame(
            {"run_id": [*sorted(run_ids), *(None for file_no in self._faults if file_no not in known)]},
            schema={"run_id": pl.String},
        )
        events = {"run_started": pl.col(*_UNREAD_FACTS).first(ignore_nulls=True)}
        # One machine of several may be the other kind.
        kind = pl.col("instance_type")
        events["resource_joined"] = pl.when(kind.n_unique() == 1).then(kind.first())
        for name, facts in events.items():
            frame = self._all(name).cast({"run_id": pl.String})
            found = found.join(frame.sort("at").group_by("run_id").agg(facts), on="run_id", how="left")
        seen = self._all("").cast({"run_id": pl.String})
        times = seen.group_by("run_id").agg(started_at=pl.col("first_at").min(), last_seen_at=pl.col("last_at").max())
        return found.join(times, on="run_id", how="left")

    def _fault(self, file_no: int, fault: str) -> None:
        self._faults.setdefault(file_no, fault)
        self._fault_counts[file_no] += 1

    def _all(self, kind: str) -> pl.DataFrame:
        empty = pl.DataFrame(schema=(_schema(kind) if kind else _SEEN) | {"run_id": self._runs})
        return pl.concat([empty, *self._frames.get(kind, ())])

    def _without_aside(self, found: pl.DataFrame) -> pl.DataFrame:
        return found.filter(~pl.col("run_id").cast(pl.String).is_in([*self.aside])) if self.aside else found

    def _read_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        texts, found, odd = [], {}, []
        for file_no, first_line, block in waiting:
            try:
                texts.append((file_no, first_line, block.decode()))
            except UnicodeDecodeError:
                odd += [(file_no, number, line) for number, line in enumerate(block.split(b"\n"), first_line)]
        lines = pl.DataFrame(texts, _LINES, orient="row").with_columns(pl.col("line").str.split("\n"))
        lines = lines.with_columns(line_no=pl.int_ranges("line_no", pl.col("line_no") + pl.col("line").list.len()))
        lines = lines.explode("line_no", "line").cast({"line_no": pl.UInt32})
        found, left = plain_events(lines.filter(pl.col("line") != ""), self._forms)
        odd += [(file_no, number, line.encode()) for file_no, number, line in left.iter_rows()]
        # The last line of each block but a whole one is empty.
        cut = {(file_no, first + block.count(b"\n")) for file_no, first, block in waiting}
        rows: dict[str, list[dict[str, Any]]] = {}
        for file_no, number, line in sorted(odd):
            if event := self._parsed(file_no, number, line, (file_no, number) not in cut):
                base = {"run_id": event.run_id, "attempt_no": event.attempt, "at": event.at}
                of_kind = rows.setdefault(event.kind if event.kind in FIELDS else "", [])
                of_kind.append({**base, "file_no": file_no, "line_no": number, **event.values})
        for kind, of_kind in rows.items():
            found.setdefault(kind, []).append(pl.DataFrame(of_kind, _schema(kind)))
        for kind, frames in found.items():
            self._keep(kind, frames)

    def _parsed(self, file_no: int, number: int, line: bytes, is_whole: bool) -> Event | None:
        """The event of a line; None where it is skipped or its run is set aside, with a warning."""
        if not line or line.isspace():
            return None
        place = self.place(file_no, number)
        try:
            event = parse_event(line)
        except Wrong as wrong:
            # A crash can only cut the very end: it leaves the start of an object and no line end.
            if not is_whole and line.lstrip().startswith(b"{") and not line.rstrip().endswith(b"}"):
                end = f"{self._store.uri(self._keys[file_no])} ends in the middle of line {number}"
                self._cut.append(f"{end}; that event is skipped. Write it again if it is lost.")
            elif (run := run_of(line)) is None:
                self._fault(file_no, f"{place} {wrong}")
            else:
                self.aside.setdefault(run, f"{place} {wrong}")
            return None
        if event.odd_end:
            self._odd_ends.setdefault(event.run_id, f"{place} {event.odd_end}")
        for field in event.strange if event.kind in FIELDS else (None,):
            self._unknown[event.kind, field] += 1
            self._first.setdefault((event.kind, field), place)
        return event

    def _keep(self, kind: str, frames: list[pl.DataFrame]) -> None:
        """Add events of one kind, "" for unknown ones, in frames with some of its columns."""
        if not frames:
            return
        attempt = pl.col("attempt_no").fill_null(1 if kind else NO_ATTEMPT)
        found = pl.concat([pl.DataFrame(schema=_schema(kind)), *frames], how="diagonal").with_columns(attempt)
        tokens = pl.col("tokens_seen") if kind == "heartbeat" else pl.lit(None, pl.Float64)
        seen = found.select("run_id", "attempt_no", first_at="at", last_at="at", tokens_seen=tokens)
        if kind in _OF_THE_RUN:
            seen = seen.with_columns(attempt_no=pl.lit(NO_ATTEMPT, pl.Int64))
        self._set_future_aside(found)
        self._frames.setdefault("", []).append(_spans(seen))
        self._owners.append(found.select(*_OWNERS).unique())
        if kind and kind not in _KEEPS_NOTHING:
            self._frames.setdefault(kind, []).append(found.sort("file_no", "line_no"))

    def _set_future_aside(self, found: pl.DataFrame) -> None:
        """What has not happened yet has a wrong time: nothing shows when, and for how long, its run held machines."""
        times = [name for name in _TIMES if name in found.columns]
        late = found.with_columns(at=pl.max_horizontal(times)).filter(pl.col("at") >= self._too_late)
        for row in late.sort("file_no", "line_no").unique("run_id", keep="first").iter_rows(named=True):
            place = self.place(row["file_no"], row["line_no"])
            self.aside.setdefault(row["run_id"], f"{place} has the time {clock(row['at'])}, {FUTURE}; fix the times.")


def _late_starts(started: pl.DataFrame) -> pl.DataFrame:
    """When an attempt begins again, long after its start and with a later one under way, and the number of that.

    A rank on an empty disk that joins an elastic group counts as attempt 1 what is another one of the others.
    """
    attempt = ["run_id", "attempt_no"]
    first = started.group_by(attempt).agg(first_at=pl.col("at").min())
    later = first.rename({"attempt_no": "later_no", "first_at": "later_at"})
    return (
        started.join(first, on=attempt)
        .filter(pl.col("at") > pl.col("first_at") + _SKEW_MS)
        .join(later, on="run_id")
        .filter(pl.col("later_no") > pl.col("attempt_no"), pl.col("later_at") <= pl.col("at") + _SKEW_MS)
        .group_by(*attempt, "at")
        .agg(pl.col("later_no").max())
        .sort("at")
    )


def _renumbered(kind: str, found: dict[str, pl.DataFrame], late: pl.DataFrame) -> pl.DataFrame:
    """The events of a kind; what follows a `late` start is of the later attempt, and what closes, of what it closes."""
    attempt = ["run_id", "attempt_no"]
    moved_at = pl.col("at") - (_SKEW_MS if kind == "attempt_ended" else 0)
    events = found[kind].with_columns(moved_at=moved_at).sort("at")
    opening, key = _CLOSES.get(kind, (None, ""))
    if opening in found:
        opened = found[opening].select(*attempt, key, "at", opened_at="at").sort("at")
        events = events.join_asof(opened, on="at", by=[*attempt, key], check_sortedness=False)
        events = events.with_columns(moved_at=pl.coalesce("opened_at", "moved_at")).drop("opened_at")
    return (
        events.sort("moved_at")
        .join_asof(late, left_on="moved_at", right_on="at", by=attempt, check_sortedness=False)
        .with_columns(attempt_no=pl.coalesce("later_no", "attempt_no"))
        .select(found[kind].columns)
        .sort("file_no", "line_no")
    )


def _spans(seen: pl.DataFrame) -> pl.DataFrame:
    """One row per run and attempt: first and last time, most tokens."""
    return seen.group_by("run_id", "attempt_no", maintain_order=True).agg(
        pl.col("first_at").min(), pl.col("last_at").max(), pl.col("tokens_seen").max()
    )


def _schema(kind: str) -> dict[str, type[pl.DataType]]:
    return {**BASE, **{name: form.dtype for name, form in FIELDS.get(kind, {}).items()}}


def _contents(store: Store, objects: Sequence[Object]) -> Iterator[tuple[str, bytes | MalformedError]]:
    """Key and bytes of each object in order, or why it has none, read a little ahead.

    Of thousands of small ones several are read together: handing one to a thread takes longer than reading it.
    """
    count = max(1, min(len(objects) // 1024, len(objects) * _BATCH_BYTES // max(_size(objects), 1)))
    batches = deque(objects[start : start + count] for start in range(0, len(objects), count))
    waiting: deque[tuple[Sequence[Object], Future[list[bytes | MalformedError]]]] = deque()
    ahead = 0
    with ThreadPoolExecutor(8, thread_name_prefix="run-events") as pool:
        try:
            while batches or waiting:
                if batches and len(waiting) < 32 and (not waiting or ahead + _size(batches[0]) <= _AHEAD_BYTES):
                    batch = batches.popleft()
                    waiting.append((batch, pool.submit(_read_each, store, batch)))
                    ahead += _size(batch)
                else:
                    batch, contents = waiting.popleft()
                    ahead -= _size(batch)
                    yield from zip((item.key for item in batch), contents.result(), strict=True)
        finally:
            for _, contents in waiting:
                contents.cancel()


def _read_each(store: Store, objects: Sequence[Object]) -> list[bytes | MalformedError]:
    found: list[bytes | MalformedError] = []
    for item in objects:
        try:
            found.append(store.read(item.key))
        except MalformedError as error:
            found.append(error)
    return found


def _size(objects: Sequence[Object]) -> int:
    return sum(item.size for item in objects)


def _more(count: int) -> str:
    return "" if count == 1 else f" here and in {count - 1:,} more line{'s' * (count > 2)}"


# Lines whose form is tried in each block, of each kind, and the most forms that are known of a kind.
_SAMPLES, _MOST_FORMS = 8, 32
_KIND = r'"event"[ \t]*:[ \t]*"([a-z_]+)"'


def plain_events(lines: pl.DataFrame, known: Forms) -> tuple[dict[str, list[pl.DataFrame]], pl.DataFrame]:
    """Frames of events by kind, `at` in ms and a column for each field of theirs, and the lines that are left over.

    `lines` has file_no, line_no and `line`, its text. Null is a missing value; attempt_no may be null. New forms are
    added to `known`.
    """
    found: dict[str, list[pl.DataFrame]] = {}
    left = [lines.clear()]
    by_kind = lines.with_columns(kind=pl.col("line").str.extract(_KIND)).partition_by("kind", as_dict=True)
    for (kind,), rest in by_kind.items():
        rest = rest.drop("kind")
        forms = known.setdefault(kind, {}) if kind else {}
        for form in [*forms.values()]:
            rest = _take(rest, form, found.setdefault(kind, []))
        for line in rest["line"].gather_every(max(1, rest.height // _SAMPLES)) if kind else ():
            keys = _keys(line)
            if keys and keys not in forms and len(forms) < _MOST_FORMS:
                forms[keys] = plain_lines(kind, keys)
                rest = _take(rest, forms[keys], found.setdefault(kind, []))
        left.append(rest)
    return found, pl.concat(left).sort("file_no", "line_no")


def _take(lines: pl.DataFrame, form: tuple[str, dict[str, Form]] | None, found: list[pl.DataFrame]) -> pl.DataFrame:
    """Add the events of the lines of a form to `found`; the other lines."""
    if form is None or lines.is_empty():
        return lines
    pattern, fields = form
    groups = pl.col("line").str.extract_groups(pattern).struct.rename_fields([*fields]).struct.unnest()
    texts = lines.select("file_no", "line_no", groups)
    values = texts.select("file_no", "line_no", *(_value(texts[name], form) for name, form in fields.items()))
    # What does not cast, such as February 30, is left over.
    is_read = pl.all_horizontal(
        texts["run_id"].is_not_null(),
        *(
            texts[name].is_null() | values[name].is_not_null()
            for name, form in fields.items()
            if form.dtype != pl.String
        ),
    )
    is_read = pl.select(is_read).to_series()
    events = values.filter(is_read)
    if events.is_empty():
        return lines
    found.append(events.rename({"attempt": "attempt_no"}, strict=False))
    return lines.filter(~is_read)


def _value(text: pl.Series, form: Form) -> pl.Series:
    if form.plain.endswith('Z"'):
        # Whole seconds are read several times as fast.
        fraction = "%.f" if text.str.contains(".", literal=True).any() else ""
        return text.str.to_datetime(f"%Y-%m-%dT%H:%M:%S{fraction}", time_unit="ms", strict=False).cast(pl.Int64)
    if form.dtype == pl.Boolean:
        return text == "true"
    if form.dtype == pl.String:
        return text.replace("", None)
    return text.cast(form.dtype, strict=False)


def _keys(line: str) -> tuple[str, ...]:
    """The keys of a line in their order; empty where it is no object."""
    try:
        pairs = parse_json(line, object_pairs_hook=list)
        return tuple(key for key, _ in pairs)
    except (ValueError, TypeError):
        return ()
