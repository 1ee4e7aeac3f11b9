"""A proxy in front of a real or recorded service that damages answers, as a broken gateway or another service would."""

from __future__ import annotations

import http.client
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from support.mutations import mutated

_LOGIN = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><p>Sign in & go on<br></body></html>"
# What becomes of an answer. Most are damaged within.
_WAYS = (*("damaged",) * 7, "page", "page with its type", "redirect", "empty", "broken off")


def _name(path: str, content: bytes) -> str:
    """The name of the file that an answer is: what `mutated` goes by."""
    name = path.partition("?")[0]
    return name if not name.endswith(".gz") or content[:2] == b"\x1f\x8b" else ""


@dataclass
class Damage:
    """The proxy: its address, which answers it damages, and how many it has given."""

    url: str = ""
    chance: random.Random | None = None
    first: int = 0
    last: int = 0
    count: int = 0
    struck: int = 0

    def begin(self, chance: random.Random | None = None, first: int = 0, last: int = 0) -> None:
        """Count anew and damage the answers from `first` to `last`; none without a `chance`."""
        self.chance, self.first, self.last, self.count, self.struck = chance, first, last, 0, 0


@contextmanager
def damaged_answers(upstream: str) -> Iterator[Damage]:
    """A proxy in front of the service at `upstream`."""
    damage, lock = Damage(), threading.Lock()
    host, port = urlsplit(upstream).hostname or "", urlsplit(upstream).port

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/login":
                return self._answer(200, {"content-type": "text/html"}, _LOGIN)
            connection = http.client.HTTPConnection(host, port)
            try:
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                status, content = answer.status, answer.read()
                kept = ("content-type", "etag", "last-modified", "x-amz-id-2", "x-amz-request-id")
                headers = {name.lower(): value for name, value in answer.getheaders() if name.lower() in kept}
            finally:
                connection.close()
            with lock:
                number, damage.count = damage.count, damage.count + 1
                if not damage.chance or not damage.first <= number <= damage.last:
                    return self._answer(status, headers, content)
                damage.struck += 1
                way = damage.chance.choice(_WAYS)
                if way == "damaged":
                    content = mutated(_name(self.path, content), content, damage.chance)
            if way.startswith("page"):
                content = _LOGIN
                headers |= {"content-type": "text/html"} if way == "page with its type" else {}
            elif way == "redirect":
                status, content, headers = 302, b"", headers | {"location": "/login"}
            elif way == "empty":
                content = b""
            self._answer(status, headers, content, len(content) // 2 if way == "broken off" else None)

        def _answer(self, status: int, headers: dict[str, str], content: bytes, sent: int | None = None) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[:sent])
            self.close_connection = self.close_connection or sent is not None

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                # The client is gone.
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    damage.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield damage
    finally:
        server.shutdown()
        server.server_close()
