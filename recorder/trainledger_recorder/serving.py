"""The recorder of a server: what it serves, counted by the minute."""

from __future__ import annotations

import atexit
import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trainledger_recorder.identity import IMDS, NoIdentity, identity
from trainledger_recorder.journal import Journal, folder_of, now


class Request:
    """One request while it runs; its handler sets the token counts before it ends."""

    def __init__(self) -> None:
        self.input_tokens = self.cached_input_tokens = self.output_tokens = 0
        self._started = time.monotonic()
        self._first: float | None = None

    def first_token(self) -> None:
        """The first token is sent."""
        self._first = time.monotonic()

    def latencies(self) -> tuple[float | None, float | None]:
        """Seconds to the first token and between the others; None where the handler did not report the first."""
        if self._first is None:
            return None, None
        between = (time.monotonic() - self._first) / (self.output_tokens - 1) if self.output_tokens > 1 else None
        return self._first - self._started, between


class ServingRecorder:
    """Writes a server's events to `folder/<server_id>/serving/<process>.jsonl` and copies them to `upload` (s3://...).

    `facts` are fields of a `server_started` event: model, precision, engine, accelerators_used, max_tokens_per_second,
    team; also `resource` where the metadata service does not have it. One process records a server. Counts are written
    every `every_seconds`; nothing here raises once the id is sound, and no request waits for the disk or the network.
    """

    def __init__(
        self,
        server_id: str,
        folder: str | os.PathLike[str] = "trainledger-serving",
        *,
        model: str,
        upload: str | None = None,
        every_seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        imds: str = IMDS,
        patience_seconds: float = 10.0,
        **facts: object,
    ):
        if not server_id or not isinstance(server_id, str):
            raise ValueError("server_id must be a text that names the server")
        if upload is not None and not upload.startswith("s3://"):
            raise ValueError(f"upload must be s3://bucket/prefix, not {upload}")
        self.server_id, self._facts = server_id, {"model": model, **facts}
        self._environment, self._imds = os.environ if environment is None else environment, imds
        self._every, self._patience = every_seconds, patience_seconds
        self._since = self._started_at = now()
        home = Path(folder) / folder_of(server_id) / "serving"
        self._journal = Journal(home / f"{re.sub('[^0-9]', '', self._since)}-{os.getpid()}.jsonl", upload, 30.0)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._is_started = self._is_closed = False
        self._process_id = os.getpid()
        self._running, self._running_seconds, self._changed = 0, 0.0, time.monotonic()
        self._begun = self._changed
        self._reset()
        self._thread = threading.Thread(target=self._count, name="trainledger-serving", daemon=True)

    def __enter__(self) -> ServingRecorder:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Record from now on; the first request starts too. The server is up since the recorder was made."""
        with self._lock:
            if self._is_started:
                return
            self._is_started = True
        self._journal.start(self._start)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._journal.warn(f"requests are counted at the end only ({error})")
        atexit.register(self._exit)

    def close(self) -> None:
        """Write what was counted last, and that the server stopped, once."""
        self.start()
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        atexit.unregister(self._exit)
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(self._patience)
        self._write_traffic()
        self._write("server_stopped", at=self._since)
        self._journal.close(self._patience)

    @contextmanager
    def request(self) -> Iterator[Request]:
        """A request from its arrival to its last token. One whose handler raises is an error."""
        self.start()
        request = Request()
        self._step(1)
        try:
            yield request
        except BaseException:
            with self._lock:
                self._errors += 1
            raise
        finally:
            self._step(-1)
            self._add(request)

    def _exit(self) -> None:
        # A forked child leaves the server to its parent.
        if os.getpid() == self._process_id:
            self.close()

    def _add(self, request: Request) -> None:
        ttft, itl = request.latencies()
        with self._lock:
            self._requests += 1
            self._input += request.input_tokens
            self._cached += request.cached_input_tokens
            self._output += request.output_tokens
            if ttft is not None:
                self._ttft.append(ttft)
            if itl is not None:
                self._itl.append(itl)

    def _step(self, change: int) -> None:
        with self._lock:
            at = time.monotonic()
            self._running_seconds += self._running * (at - self._changed)
            self._running, self._changed = self._running + change, at

    def _reset(self) -> None:
        self._requests = self._errors = self._input = self._cached = self._output = 0
        self._running_seconds = 0.0
        self._ttft: list[float] = []
        self._itl: list[float] = []

    def _count(self) -> None:
        while not self._over.wait(self._every):
            self._write_traffic()

    def _write_traffic(self) -> None:
        self._step(0)
        with self._lock:
            until, at = now(), time.monotonic()
            if until <= self._since:
                return
            counted = {
                "requests": self._requests,
                "errors": self._errors,
                "input_tokens": self._input,
                "cached_input_tokens": self._cached,
                "output_tokens": self._output,
                "running": round(self._running_seconds / max(at - self._begun, 1e-3), 6),
                "ttft_p90": _p90(self._ttft),
                "itl_p90": _p90(self._itl),
            }
            span = {"from": self._since, "to": until}
            self._since, self._begun = until, at
            self._reset()
        self._write("traffic", **span, **counted)

    def _start(self) -> None:
        fields: dict[str, object] = {}
        if "resource" not in self._facts:
            try:
                fields = {
                    key: value for key, value in identity(self._environment, self._imds).items() if key != "market"
                }
            except NoIdentity as error:
                self._journal.warn(f"the instance is unknown: {error}; set `resource`")
                return
        self._write("server_started", at=self._started_at, **fields, **self._facts)

    def _write(self, event: str, **fields: object) -> None:
        self._journal.write({"event": event, "server_id": self.server_id, **fields})


def _p90(values: list[float]) -> float | None:
    return round(sorted(values)[math.ceil(0.9 * len(values)) - 1], 6) if values else None
