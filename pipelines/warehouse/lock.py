"""Who may write to a warehouse, also across machines: one build, or jobs side by side; a killed one lets go.

A job holds parts of the warehouse: months (2026-07), or months of a source (2026-07/payer-a). Who holds the whole or
a month holds all that lies in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

from pipelines.base.errors import SourceError, UsageError
from pipelines.base.parse import parse_json
from pipelines.warehouse.part import file_name, month_of, shown_part, source_of
from pipelines.warehouse.storage import Store
from pipelines.warehouse.storage_s3 import S3Store

LEASE_KEY = "locks/build.json"
LEASE = timedelta(minutes=5)
# The part of a warehouse that is not kept by month: records of runs, and the tables that months are made from.
TABLES = "tables"
# Between two looks at whether another build has ended.
PAUSE = 1.0


def shared(month: str) -> str:
    """The part of a month that is not kept by source; no source has this name."""
    return f"{month}/_{TABLES}"


Waiting = Callable[[str], None]
"""Called once with a sentence that names each build that is waited for."""


class BuildBusy(UsageError):
    """Another build holds the warehouse, or the part of it that this one needs."""

    exit_code = 4


@contextmanager
def build_lock(
    store: Store, work: Path, parts: Sequence[str] = (), waiting: Waiting | None = None
) -> Iterator[Callable[[], None]]:
    """Hold the whole warehouse, or of it only `parts`: months, months of a source, or TABLES. Who holds parts shares it
    with other parts.

    By file locks in a folder, by renewed lease objects on S3. Where another holds it BuildBusy is raised; with
    `waiting` this waits. Yields a check to call before writing: it raises
    BuildBusy when the hold was lost meanwhile.
    """
    noted = ""
    with ExitStack() as held:
        while True:
            try:
                # What was taken before one part is refused is released again.
                with ExitStack() as taken:
                    take = _leases if isinstance(store, S3Store) else _files
                    check = take(taken, store, work, sorted(parts))
                    held.push(taken.pop_all())
                break
            except BuildBusy as busy:
                if waiting is None:
                    raise
                if str(busy) != noted:
                    waiting(noted := str(busy))
                time.sleep(PAUSE)
        yield check


def _files(held: ExitStack, store: Store, work: Path, parts: Sequence[str]) -> Callable[[], None]:
    """Lock the file of each part, or of the warehouse, and, shared, the files of what it lies in."""
    work.mkdir(parents=True, exist_ok=True)
    for part in parts or [""]:
        for outer in _outer(part):
            _take(held, store, work, outer, fcntl.LOCK_SH)
        file = _take(held, store, work, part, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(_holder())
        file.flush()
        held.callback(file.truncate, 0)
    return lambda: None


def _take(held: ExitStack, store: Store, work: Path, part: str, kind: int) -> TextIO:
    file = held.enter_context((work / f"{_lock_name(part)}.lock").open("a+", encoding="utf-8"))
    if _flock(file, kind):
        return file
    # Killed builds leave their names in files; only the file of a part in use cannot be locked.
    for inner in sorted(work.glob(f"{_lock_name(part)}[-!]*.lock")):
        with inner.open("a+", encoding="utf-8") as other:
            if not _flock(other, fcntl.LOCK_SH):
                raise _busy(store, _held(other), inner.stem.removeprefix(".build-").replace("!", "/"))
    raise _busy(store, _held(file), part)


def _lock_name(part: str) -> str:
    return f".build-{file_name(part)}" if part else ".build"


def _outer(part: str) -> list[str]:
    """What a part lies in: the warehouse and, of a source's month, the month."""
    return [] if not part else ["", month_of(part)] if source_of(part) else [""]


def _flock(file: TextIO, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _held(file: TextIO) -> str:
    file.seek(0)
    return file.read().strip()


def _leases(held: ExitStack, store: Store, work: Path, parts: Sequence[str]) -> Callable[[], None]:
    """Take the lease of the warehouse, or of each part, then look for those that it excludes.

    Of two that take theirs at the same time, each sees the other's: never do both go on.
    """
    assert isinstance(store, S3Store)
    leases = [_Lease(store, part) for part in parts or [""]]
    for lease in leases:
        lease.take()
        held.callback(lease.release)
    ours = {lease.key for lease in leases}
    keys = {_lease_key(outer) for part in parts for outer in _outer(part)}
    keys |= {item.key for part in parts or [""] for item in store.list(f"locks/{part}/" if part else "locks/")}
    for key in sorted(keys - ours):
        there = store.read_tagged(key)
        holder, until = _note(there[0]) if there else ("", _LONG_AGO)
        if until > datetime.now(UTC):
            part = key.removeprefix("locks/").removesuffix(".json")
            raise _busy(store, holder, "" if key == LEASE_KEY else part)

    def check() -> None:
        for lease in leases:
            lease.check()

    return check


_LONG_AGO = datetime.fromtimestamp(0, UTC)


def _lease_key(part: str) -> str:
    return f"locks/{part}.json" if part else LEASE_KEY


class _Lease:
    """An object with the name of a build and its expiry. Each write depends on the one before: one holder wins."""

    def __init__(self, store: S3Store, part: str):
        self._store, self._part = store, part
        self.key = _lease_key(part)
        self._holder = _holder()
        # No two leases are equal, so a holder recognizes its own.
        self._token = secrets.token_hex(8)
        self._tag: str | None = None
        self._valid_to, self._until = 0.0, _LONG_AGO
        self._stop = threading.Event()
        self._renewer = threading.Thread(target=self._renew, daemon=True)

    def take(self) -> None:
        """Begin to hold, or raise BuildBusy."""
        for _ in range(5):
            there = self._store.read_tagged(self.key)
            if there:
                holder, until = _note(there[0])
                if until > datetime.now(UTC):
                    raise _busy(self._store, holder, self._part)
            # Free or expired; of several builds the first gets it.
            if self._put(there[1] if there else None):
                self._renewer.start()
                return
        raise _busy(self._store, "", self._part)

    def check(self) -> None:
        """BuildBusy when it could not be renewed in time, for then another build may have begun."""
        if not self._is_valid:
            raise BuildBusy(f"This build lost its hold on {self._store.location}; run it again.")

    def release(self) -> None:
        """Release the lease; without S3 it expires by itself."""
        self._stop.set()
        self._renewer.join()
        if self._is_valid:
            with suppress(SourceError):
                self._put(self._tag, timedelta(0))

    @property
    def _is_valid(self) -> bool:
        # The first clock stands still while a machine sleeps, the second one may be set.
        return time.monotonic() < self._valid_to and datetime.now(UTC) < self._until

    def _renew(self) -> None:
        # One that has expired is lost: another build may have begun on another part.
        while not self._stop.wait(LEASE.total_seconds() / 5) and self._is_valid:
            # A store that does not answer is tried again until the lease expires.
            with suppress(SourceError):
                if not self._put(self._tag):
                    self._valid_to = 0.0
                    return

    def _put(self, tag: str | None, lasting: timedelta | None = None) -> bool:
        lasting = LEASE if lasting is None else lasting
        valid_to = time.monotonic() + lasting.total_seconds()
        until = datetime.now(UTC) + lasting
        note = json.dumps({"holder": self._holder, "until": until.isoformat(), "token": self._token})
        written = self._store.write_if(self.key, note.encode(), tag)
        if written:
            self._tag, self._valid_to, self._until = written, valid_to, until
        return written is not None


def _note(data: bytes) -> tuple[str, datetime]:
    """The holder and expiry of a lease; a damaged one has expired."""
    try:
        note = parse_json(data)
        return note["holder"], datetime.fromisoformat(note["until"])
    except (ValueError, KeyError, TypeError):
        return "", _LONG_AGO


def _holder() -> str:
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"process {os.getpid()} on {socket.gethostname()} since {since}"


def _busy(store: Store, holder: str, part: str = "") -> BuildBusy:
    names = {"": store.location, TABLES: f"A table that all months of {store.location} share"}
    if part == shared(month_of(part)):
        names[part] = f"A table that all sources of {month_of(part)} of {store.location} share"
    what = names.get(part, f"{shown_part(part)} of {store.location}")
    return BuildBusy(f"{what} is being built by {holder or 'another build'}; wait for it to end.")
