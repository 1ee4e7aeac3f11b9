"""One build at a time in a warehouse, also across machines; a killed build releases it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipelines.base.errors import SourceError, UsageError
from pipelines.base.parse import parse_json
from pipelines.warehouse.storage import Store
from pipelines.warehouse.storage_s3 import S3Store

LEASE_KEY = "locks/build.json"
LEASE = timedelta(minutes=5)


class BuildBusy(UsageError):
    """Another build holds the warehouse."""

    exit_code = 4


@contextmanager
def build_lock(store: Store, work: Path) -> Iterator[Callable[[], None]]:
    """Hold the warehouse: by a file lock in a folder, by a renewed lease object on S3.

    Yields a check to call before writing: it raises BuildBusy when the hold was lost meanwhile.
    """
    if isinstance(store, S3Store):
        lease = _Lease(store)
        lease.take()
        try:
            yield lease.check
        finally:
            lease.release()
        return
    work.mkdir(parents=True, exist_ok=True)
    with (work / ".build.lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise _busy(store, file.read().strip()) from None
        file.truncate(0)
        file.write(_holder())
        file.flush()
        try:
            yield lambda: None
        finally:
            file.truncate(0)


class _Lease:
    """An object with the name of a build and its expiry. Each write depends on the one before: one holder wins."""

    def __init__(self, store: S3Store):
        self._store = store
        self._holder = _holder()
        # No two leases are equal, so a holder recognizes its own.
        self._token = secrets.token_hex(8)
        self._tag: str | None = None
        self._valid_to = 0.0
        self._stop = threading.Event()
        self._renewer = threading.Thread(target=self._renew, daemon=True)

    def take(self) -> None:
        """Begin to hold, or raise BuildBusy."""
        for _ in range(5):
            there = self._store.read_tagged(LEASE_KEY)
            if there:
                holder, until = _note(there[0])
                if until > datetime.now(UTC):
                    raise _busy(self._store, holder)
            # Free or expired; of several builds the first gets it.
            if self._put(there[1] if there else None):
                self._renewer.start()
                return
        raise _busy(self._store, "")

    def check(self) -> None:
        """BuildBusy when it could not be renewed in time, for then another build may have begun."""
        if time.monotonic() > self._valid_to:
            raise BuildBusy(f"This build lost its hold on {self._store.location}; run it again.")

    def release(self) -> None:
        """Release the lease; without S3 it expires by itself."""
        self._stop.set()
        self._renewer.join()
        if time.monotonic() < self._valid_to:
            with suppress(SourceError):
                self._put(self._tag, timedelta(0))

    def _renew(self) -> None:
        while not self._stop.wait(LEASE.total_seconds() / 5):
            # A store that does not answer is tried again until the lease expires.
            with suppress(SourceError):
                if not self._put(self._tag):
                    self._valid_to = 0.0
                    return

    def _put(self, tag: str | None, lasting: timedelta | None = None) -> bool:
        lasting = LEASE if lasting is None else lasting
        valid_to = time.monotonic() + lasting.total_seconds()
        until = (datetime.now(UTC) + lasting).isoformat()
        note = json.dumps({"holder": self._holder, "until": until, "token": self._token})
        written = self._store.write_if(LEASE_KEY, note.encode(), tag)
        if written:
            self._tag, self._valid_to = written, valid_to
        return written is not None


def _note(data: bytes) -> tuple[str, datetime]:
    """The holder and expiry of a lease; a damaged one has expired."""
    try:
        note = parse_json(data)
        return note["holder"], datetime.fromisoformat(note["until"])
    except (ValueError, KeyError, TypeError):
        return "", datetime.fromtimestamp(0, UTC)


def _holder() -> str:
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"process {os.getpid()} on {socket.gethostname()} since {since}"


def _busy(store: Store, holder: str) -> BuildBusy:
    return BuildBusy(f"{store.location} is being built by {holder or 'another build'}; wait for it to end.")
