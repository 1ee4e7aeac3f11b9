"""An S3-compatible server with faults: a proxy in front of a real one that answers some requests wrongly or never."""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

# What the proxy does to a request. A lost answer is one of a request that was carried out.
FAULTS = ("500", "503", "reset", "lost answer", "truncation", "stale list", "wrong ETag", "slow")
_ERROR = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
NAMED = {"500": (500, "InternalError"), "503": (503, "SlowDown")}
_HOPS = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@dataclass(frozen=True)
class Request:
    """The number of a request since the rules were set, its method and its path with its query."""

    number: int
    method: str
    path: str

    @property
    def is_list(self) -> bool:
        return self.method == "GET" and "list-type=2" in self.path


Rule = Callable[[Request], str | None]
"""The fault of a request, if any. It may also end a process before the request is carried out."""


@dataclass
class Faults:
    """The proxy: its address, its rules, and how often each fault struck.

    `after` is called when a request was carried out and before it is answered.
    """

    url: str = ""
    rule: Rule = lambda request: None
    after: Callable[[Request], None] = lambda request: None
    struck: Counter[str] = field(default_factory=Counter)
    _count: int = 0
    _lists: dict[str, tuple[int, list[tuple[str, str]], bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, rule: Rule = lambda request: None, after: Callable[[Request], None] = lambda request: None) -> None:
        """Count requests anew, under these rules."""
        with self._lock:
            self.rule, self.after, self._count = rule, after, 0
            self.struck.clear()
            self._lists.clear()

    def at_random(self, seed: int, share: float, *only: str) -> None:
        """Every fault of `only` strikes alike, in all a share of the requests, never a request and the two after it."""
        chance, last = random.Random(seed), -3

        def rule(request: Request) -> str | None:
            nonlocal last
            fitting = [fault for fault in only or FAULTS if request.is_list or fault != "stale list"]
            if not fitting or request.number < last + 3 or chance.random() >= share:
                return None
            last = request.number
            return chance.choice(fitting)

        self.begin(rule)

    def next(self, method: str, path: str) -> tuple[Request, str | None]:
        with self._lock:
            request = Request(self._count, method, path)
            self._count += 1
            return request, self.rule(request)

    @property
    def count(self) -> int:
        return self._count


@contextmanager
def s3_faults(upstream: str) -> Iterator[Faults]:
    """A proxy in front of the server at `upstream`."""
    faults = Faults()
    host, port = urlsplit(upstream).hostname or "", urlsplit(upstream).port

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                # The client is gone, or its request was reset.
                self.close_connection = True

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request, fault = faults.next(self.command, self.path)
            if fault in NAMED:
                faults.struck[fault] += 1
                status, code = NAMED[fault]
                return self._answer(status, [("Content-Type", "application/xml")], _ERROR.format(code=code).encode())
            if fault == "reset":
                faults.struck[fault] += 1
                return self._reset()
            if fault == "slow":
                faults.struck[fault] += 1
                time.sleep(1)
            status, headers, content = self._carried_out(body)
            faults.after(request)
            if request.is_list:
                before = faults._lists.get(self.path)
                faults._lists.setdefault(self.path, (status, headers, content))
                if fault == "stale list" and before:
                    faults.struck[fault] += 1
                    status, headers, content = before
            if fault == "lost answer":
                faults.struck[fault] += 1
                return self._reset()
            if fault == "wrong ETag" and any(name.lower() == "etag" for name, _ in headers):
                faults.struck[fault] += 1
                headers = [(name, f'"{"0" * 32}"' if name.lower() == "etag" else value) for name, value in headers]
            if fault == "truncation" and content and self.command == "GET":
                faults.struck[fault] += 1
                return self._answer(status, headers, content, sent=len(content) // 2)
            self._answer(status, headers, content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

        def _carried_out(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection(host, port)
            try:
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                connection.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, sent: int | None = None) -> None:
            known: Mapping[str, str] = {name.lower(): value for name, value in headers}
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in _HOPS:
                    self.send_header(name, value)
            length = known.get("content-length", "0") if self.command == "HEAD" else str(len(content))
            if status != 204:
                self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content if sent is None else content[:sent])
            if sent is not None:
                self.close_connection = True

        def _reset(self) -> None:
            """Close with an RST, as a broken connection does."""
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    faults.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield faults
    finally:
        server.shutdown()
        server.server_close()
