"""The recorder: one object a process, used as a context around the training or from its first event on."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from trainledger_recorder.identity import IMDS, NoIdentity, identity, interruption
from trainledger_recorder.journal import Journal, folder_of, is_uploaded, now
from trainledger_recorder.launch import attempt, file_of, files_of, local_rank, rank

_REASONS: tuple[tuple[type[BaseException], str], ...] = ((MemoryError, "oom"), (KeyboardInterrupt, "user_stop"))


class Recorder:
    """Writes one run's events to `folder/<run>/attempt-<n>/rank-<r>….jsonl` and copies them to `upload` (s3://...).

    `facts` are the fields of a `run_started` event: model, dataset, seq_len, target_metric and so on. `environment` and
    `imds` default to those of the process. Nothing here raises once the run id is sound. Nothing waits for the network
    but the making of a recorder with `upload`, for a few seconds at most, which looks for earlier attempts there, and
    the end, for `patience_seconds` at most.

    The attempt starts where the recorder is entered, else with its first event. It ends with the `with` block, else at
    `end`, `close` or the exit of the interpreter, whichever comes first.
    """

    def __init__(
        self,
        run_id: str,
        folder: str | os.PathLike[str] = "trainledger-runs",
        *,
        upload: str | None = None,
        accelerators_used: int | None = None,
        environment: Mapping[str, str] | None = None,
        imds: str = IMDS,
        upload_every_seconds: float = 30.0,
        patience_seconds: float = 10.0,
        **facts: object,
    ):
        if not run_id or not isinstance(run_id, str):
            raise ValueError("run_id must be a text that names the run")
        if upload is not None and not upload.startswith("s3://"):
            raise ValueError(f"upload must be s3://bucket/prefix, not {upload}")
        environment = os.environ if environment is None else environment
        self.run_id = run_id
        self.rank = rank(environment)
        self._is_first_of_node = local_rank(environment) == 0
        home = Path(folder) / folder_of(run_id)
        self.attempt = attempt(environment, home, self.rank)
        unlisted = self._follow_uploaded(upload, home.name) if upload and find_spec("boto3") else None
        self._environment, self._imds = environment, imds
        self._facts, self._accelerators_used = facts, accelerators_used
        self._patience = patience_seconds
        self._stay: dict[str, Any] = {}
        self._started_at = now()
        # Reentrant: the handler of a signal may record an event while the attempt starts.
        self._lock = threading.RLock()
        self._is_started = self._is_open = self._is_entered = False
        self._earlier_error: object = None
        # The step of the last blocking save, and how long its saves took together.
        self._stalled: tuple[int | None, float] = (None, 0.0)
        path = home / f"attempt-{self.attempt}" / file_of(environment)
        self._journal = Journal(path, upload, upload_every_seconds, f"attempt-*/{files_of(self.rank)}*")
        if unlisted:
            self._journal.warn(
                f"earlier attempts in {upload} are unknown ({unlisted}); this one replaces what a machine that is gone "
                f"uploaded as attempt {self.attempt}; allow s3:ListBucket"
            )

    def __enter__(self) -> Recorder:
        self._is_entered = True
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_entered = False
        self.close(*_outcome(error))

    def _follow_uploaded(self, upload: str, home: str) -> Exception | None:
        """Count on from what this rank uploaded from a disk that is gone; returns why that is unknown."""
        try:
            while is_uploaded(upload, f"{home}/attempt-{self.attempt}/{files_of(self.rank)}"):
                self.attempt += 1
        except Exception as error:  # Whatever it is, training goes on.
            return error
        return None

    def start(self) -> None:
        """Start the attempt unless it is running; after `end` it runs again."""
        with self._lock:
            if self._is_open:
                return
            self._is_open = True
            self._process_id = os.getpid()
            is_first = not self._is_started
            at = self._started_at if is_first else now()
            if is_first and self.rank == 0:
                self._write("run_started", at=at, **self._facts)
            self._write("attempt_started", at=at)
            if is_first:
                self._earlier_error = getattr(sys, "last_value", None)
                self._journal.start(*[self._join] if self._is_first_of_node else [])
                atexit.register(self._exit)
            elif self._stay:
                self._write("resource_joined", at=at, **self._stay)
            self._is_started = True

    def end(self, error: BaseException | None = None) -> None:
        """End the attempt and the run, unless a `with` block does; what is recorded after this still counts."""
        if not self._is_entered:
            self._end(*_outcome(error))

    def close(self, reason: str | None = "completed", status: str = "completed") -> None:
        """End the attempt and the run unless they have ended. A run that is started again after this is open again."""
        if not self._is_started:
            self.start()
        # A forked child that leaves the `with` block of its parent leaves the run to it.
        if os.getpid() != self._process_id:
            return
        self._end(reason, status)
        atexit.unregister(self._exit)
        self._journal.close(self._patience)

    def _end(self, reason: str | None, status: str) -> None:
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            ended_at = now()
            if self._stay:
                self._write("resource_left", at=ended_at, resource=self._stay["resource"])
            self._write("attempt_ended", at=ended_at, reason=reason)
            if self.rank == 0:
                self._write("run_ended", at=ended_at, status=status)

    def _exit(self) -> None:
        # A forked child leaves the run to its parent.
        if os.getpid() != self._process_id:
            return
        error = getattr(sys, "last_value", None)
        if isinstance(error, BaseException) and error is not self._earlier_error:
            self._end(*_outcome(error))
        # How the training went is unknown: a failure that the job caught itself also ends in an exit.
        self._end(None, "unknown")
        self._journal.close(self._patience)

    def attached(self, resource: str) -> None:
        """A volume or file system (`vol-…`, `fs-…`) this node has, from now until the attempt ends."""
        self._record(self._is_first_of_node, "resource_joined", resource=resource)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A phase such as init, compile, restore, train, eval; it ends with the block."""
        self._lead("phase_started", phase=name)
        try:
            yield
        finally:
            self._lead("phase_ended", phase=name)

    def epoch_completed(
        self,
        epoch: int,
        *,
        step: int | None = None,
        tokens_seen: float | None = None,
        samples_seen: float | None = None,
        fraction: float | None = None,
    ) -> None:
        """An epoch is over; tokens and samples count from the run's beginning, over all attempts."""
        seen = {"step": step, "tokens_seen": tokens_seen, "samples_seen": samples_seen, "fraction": fraction}
        self._lead("epoch_completed", epoch=epoch, **seen)

    @contextmanager
    def checkpoint(self, *, step: int, uri: str | os.PathLike[str], resumable: bool = True) -> Iterator[None]:
        """A blocking save: saved when the block ends, stalled as long as it took. A failed save records nothing.

        Several saves of one step, one after the other, are one checkpoint that stalled for all of them.
        """
        began, started_at = time.monotonic(), now()
        yield
        stalled = time.monotonic() - began + (self._stalled[1] if self._stalled[0] == step else 0)
        self._stalled = step, stalled
        self.checkpoint_saved(
            step=step,
            uri=uri,
            stall_seconds=stalled,
            save_started_at=started_at,
            resumable=resumable,
        )

    def checkpoint_saved(
        self, *, step: int, uri: str | os.PathLike[str], stall_seconds: float | None = None, **more: object
    ) -> None:
        """A checkpoint is durable now; `bytes` is looked up where it is a local file or folder."""
        name = os.fspath(uri)
        self._lead(
            "checkpoint_saved",
            checkpoint_id=f"{self.run_id}/{step}",
            step=step,
            uri=name,
            stall_seconds=None if stall_seconds is None else round(stall_seconds, 3),
            **{"bytes": _size(name), **more},
        )

    def evaluation(self, metric: str, value: float, *, step: int | None = None, split: str | None = None) -> None:
        """A score; one that is no finite number is not a score."""
        if value == value and abs(value) != float("inf"):
            self._lead("evaluation", metric=metric, value=float(value), step=step, split=split)

    def heartbeat(self, *, step: int | None = None, tokens_seen: float | None = None) -> None:
        """The run is still working: the end of a killed run is inferred from its last heartbeat."""
        self._record(True, "heartbeat", step=step, tokens_seen=tokens_seen)

    def is_interrupted(self) -> bool:
        """Whether AWS takes this spot instance back within two minutes; asks the metadata service."""
        try:
            return interruption(self._imds)
        except NoIdentity:
            return False

    def _join(self) -> None:
        try:
            fields = identity(self._environment, self._imds)
        except NoIdentity as error:
            self._journal.warn(f"the instance is unknown: {error}")
            return
        self._stay = {"node_rank": self.rank, "accelerators_used": self._accelerators_used, **fields}
        self._write("resource_joined", at=self._started_at, **self._stay)

    def _lead(self, event: str, **fields: object) -> None:
        """An event of all ranks together, recorded once."""
        self._record(self.rank == 0, event, **fields)

    def _record(self, is_mine: bool, event: str, **fields: object) -> None:
        """An event of the job, recorded by the ranks it `is_mine` of; the first one starts the attempt."""
        if not self._is_started:
            self.start()
        if is_mine:
            self._write(event, **fields)

    def _write(self, event: str, at: str | None = None, **fields: object) -> None:
        attempt = {} if event in ("run_started", "run_ended") else {"attempt": self.attempt}
        self._journal.write({"event": event, "run_id": self.run_id, **attempt, "at": at or now(), **fields})


def _outcome(error: BaseException | None) -> tuple[str | None, str]:
    """Reason and status of a training that ended with `error`."""
    if error is None:
        return "completed", "completed"
    # An exit without an error may be that of a job which AWS takes its machines from.
    if isinstance(error, SystemExit) and not error.code:
        return None, "unknown"
    reason = next((word for of, word in _REASONS if isinstance(error, of)), "sw_error")
    return reason, "killed" if reason == "user_stop" else "failed"


def _size(name: str) -> int | None:
    path = Path(name)
    try:
        if path.is_dir():
            return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None
