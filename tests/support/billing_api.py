"""AWS's billing services, as far as they are called: a server on loopback that answers what a test lays down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class BillingApi:
    """Answers by operation (`ListExports`); an operation without one is denied. `calls` are the operations met."""

    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, operation: str, request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        self.calls.append(operation)
        answer = self.answers.get(operation)
        if answer is None:
            return 400, {"__type": "AccessDeniedException", "message": f"User is not authorized to {operation}"}
        if isinstance(answer, list):
            # Page after page, each but the last with the number of the next as its token.
            page = int(request.get("NextToken", 0))
            return 200, answer[page] | ({"NextToken": str(page + 1)} if page + 1 < len(answer) else {})
        return 200, answer


@contextmanager
def billing_api() -> Iterator[BillingApi]:
    """The server, up for as long as the block lasts."""
    api = BillingApi()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            status, answer = api.answer(operation, json.loads(body or b"{}"))
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
