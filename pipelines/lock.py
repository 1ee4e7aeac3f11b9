"""One build at a time in a warehouse, also across machines; a killed build lets go."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipelines.errors import UsageError
from pipelines.storage import Store

LEASE_KEY = "locks/build.json"
LEASE = timedelta(minutes=5)


class BuildBusy(UsageError):
    """Another build holds the warehouse."""


@contextmanager
def build_lock(store: Store, work: Path) -> Iterator[None]:
    """Hold the warehouse: by a file lock in a folder, by a renewed lease object on S3."""
    if store.location.startswith("s3://"):
        with _lease(store):
            yield
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
            yield
        finally:
            file.truncate(0)


@contextmanager
def _lease(store: Store) -> Iterator[None]:
    holder = _holder()

    def record() -> bytes:
        return json.dumps({"holder": holder, "until": (datetime.now(UTC) + LEASE).isoformat()}).encode()

    if not store.write_new(LEASE_KEY, record()):
        held = json.loads(store.read(LEASE_KEY))
        if datetime.fromisoformat(held["until"]) > datetime.now(UTC):
            raise _busy(store, held["holder"])
        # The holder died. Of several that see it, one gets the key anew.
        store.delete(LEASE_KEY)
        if not store.write_new(LEASE_KEY, record()):
            raise _busy(store, "another build")
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(LEASE.total_seconds() / 5):
            store.write(LEASE_KEY, record())

    renewer = threading.Thread(target=renew, daemon=True)
    renewer.start()
    try:
        yield
    finally:
        stop.set()
        renewer.join()
        store.delete(LEASE_KEY)


def _holder() -> str:
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"process {os.getpid()} on {socket.gethostname()} since {since}"


def _busy(store: Store, holder: str) -> BuildBusy:
    return BuildBusy(f"{store.location} is being built by {holder or 'another build'}; wait for it to end.")
