"""One append-only file of JSON lines, made durable and copied to S3 by a background thread."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any

log = logging.getLogger("trainledger_recorder")
# By so much time services correct a clock; of one that was wrong by more, the correct time is written.
_STEP_SECONDS = 60


class Journal:
    """A file of events. `write` costs one system call and never raises; what goes wrong is logged once by kind."""

    def __init__(self, path: Path, upload: str | None, every_seconds: float, earlier: str = ""):
        self._path, self._upload, self._every, self._earlier = path, upload, every_seconds, earlier
        self._warned: set[str] = set()
        self._dirty = self._is_cut = self._is_closed = False
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._file = -1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            self.warn(f"{path} cannot be written ({error.strerror}); nothing is recorded")
        # Shown at once: a job that is never closed ends before the thread would try.
        if upload and not find_spec("boto3"):
            self.warn("the upload needs boto3: pip install boto3")
            self._upload = None
        self._thread: threading.Thread | None = None

    def start(self, *chores: Callable[[], None]) -> None:
        """Start the background thread, with `chores` first."""
        thread = threading.Thread(target=self._work, args=(chores,), name="trainledger-recorder", daemon=True)
        try:
            thread.start()
            self._thread = thread
        except RuntimeError as error:
            self.warn(f"the instance is unknown and nothing is uploaded ({error})")

    def write(self, event: Mapping[str, object]) -> None:
        """Append one event; what it leaves out as None is not written."""
        try:
            known = {name: value for name, value in event.items() if value is not None}
            line = json.dumps(known, default=_plain) + "\n"
            # One write of one line: another thread's line never falls into it.
            with self._lock:
                if self._is_closed:
                    self.warn("events after close() are not recorded; make a new Recorder to go on")
                elif self._file >= 0:
                    data = ("\n" * self._is_cut + line).encode()
                    # A full disk may take half a line; the next one then begins on its own.
                    self._is_cut = os.write(self._file, data) < len(data)
                    self._dirty = True
        except Exception as error:  # Whatever it is, training goes on.
            self.warn(f"an event is lost ({type(error).__name__}: {error})")

    def warn(self, what: str) -> None:
        """Log a problem once."""
        if what not in self._warned:
            self._warned.add(what)
            log.warning("trainledger recorder: %s.", what)

    def close(self, patience_seconds: float) -> None:
        """Make everything durable and uploaded, but wait no longer than `patience_seconds`."""
        self._done.set()
        if self._thread:
            self._thread.join(patience_seconds)
        with self._lock:
            self._is_closed = True
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _work(self, chores: tuple[Callable[[], None], ...]) -> None:
        for chore in chores:
            self._try(chore)
        self._try(self._upload_left_behind)
        while not self._done.wait(self._every):
            self._try(self._keep)
        self._try(self._keep)

    def _try(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception as error:  # Whatever it is, training goes on.
            self.warn(f"{type(error).__name__}: {error}")

    def _keep(self) -> None:
        with self._lock:
            is_due, self._dirty = self._dirty and self._file >= 0, False
            handle = os.dup(self._file) if is_due else -1
        if not is_due:
            return
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        if self._upload:
            _put(self._path, self._upload, self._path.parent.parent.parent)

    def _upload_left_behind(self) -> None:
        """What an attempt that was killed had written and not yet uploaded."""
        if self._upload:
            # Imported while threads may start: at the exit of the interpreter it is too late.
            import boto3.s3.transfer  # noqa: F401

            for path in sorted(self._path.parent.parent.glob(self._earlier)) if self._earlier else ():
                if path != self._path:
                    _put(path, self._upload, self._path.parent.parent.parent)


def folder_of(name: str) -> str:
    """The folder of an id, which is anybody's text: its own letters, and its digest where they are not plain."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100]
    if plain == name and name.strip("."):
        return plain
    return f"{plain}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]}"


def _plain(value: Any) -> object:
    """A number of NumPy or PyTorch as Python's own; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)


def is_uploaded(upload: str, start: str) -> bool:
    """Whether a file whose path below `upload` begins like this is there already; takes a few seconds at most."""
    bucket, prefix = _place(upload, start)
    limits = {"connect_timeout": 2, "read_timeout": 2, "retries": {"total_max_attempts": 1}}
    return "Contents" in _client(**limits).list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)


def _put(path: Path, upload: str, root: Path) -> None:
    from boto3.s3.transfer import TransferConfig

    # Without threads of its own, which the exit of the interpreter does not let start.
    config = TransferConfig(use_threads=False)
    _client().upload_file(str(path), *_place(upload, path.relative_to(root).as_posix()), Config=config)


def _place(upload: str, path: str) -> tuple[str, str]:
    """Bucket and key of a path below `upload`."""
    bucket, _, prefix = upload.removeprefix("s3://").partition("/")
    return bucket, f"{prefix.rstrip('/')}/{path}".lstrip("/")


def _client(**limits: Any) -> Any:
    import boto3
    from botocore.config import Config

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return boto3.client("s3", endpoint_url=endpoint, config=Config(**limits))


class _Clock:
    """The clock of the machine; one that is set back by less than a minute stands still for as long."""

    newest = 0.0

    def now(self) -> str:
        """This moment as events write it."""
        at = time.time()
        self.newest = at if self.newest - at > _STEP_SECONDS else max(at, self.newest)
        moment = datetime.fromtimestamp(self.newest, timezone.utc)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


now = _Clock().now
