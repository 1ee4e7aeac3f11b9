"""An instance metadata service (IMDSv2) on loopback, as an instance's own would answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

DOCUMENT = {
    "instanceId": "i-0rec",
    "instanceType": "g5.xlarge",
    "accountId": "000033334444",
    "region": "us-west-2",
    "availabilityZone": "us-west-2a",
}


@contextmanager
def metadata_service(*, life_cycle: str = "spot", interrupted: bool = False) -> Iterator[str]:
    """The address of a service that knows DOCUMENT; it answers no question without its token."""
    pages = {
        "/latest/dynamic/instance-identity/document": json.dumps(DOCUMENT),
        "/latest/meta-data/instance-life-cycle": life_cycle,
    }
    if interrupted:
        pages["/latest/meta-data/spot/instance-action"] = '{"action": "terminate", "time": "2026-07-01T10:02:00Z"}'

    class Service(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            has_ttl = "X-aws-ec2-metadata-token-ttl-seconds" in self.headers
            self._answer(200 if has_ttl and self.path == "/latest/api/token" else 400, "the-token")

        def do_GET(self) -> None:
            if self.headers.get("X-aws-ec2-metadata-token") != "the-token":
                self._answer(401, "")
            else:
                self._answer(200 if self.path in pages else 404, pages.get(self.path, ""))

        def _answer(self, status: int, body: str) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
