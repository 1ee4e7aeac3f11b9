"""Real servers on loopback that take what is sent to people: an SMTP server and a webhook."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from support.ports import free_port


@dataclass
class Mailbox:
    """What an SMTP server took; `refusals` are answers it gives before it takes anything.

    It does not know `strangers`, and answers after so many `seconds`, to the last word with `farewell`.
    """

    port: int = 0
    strangers: list[str] = field(default_factory=list)
    seconds: float = 0
    farewell: str = "221 Bye"
    mails: list[EmailMessage] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    password: str = ""

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.refusals:
            return self.refusals.pop(0)
        mail = message_from_bytes(envelope.content or b"", policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        await asyncio.sleep(self.seconds)
        return "250 OK"

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.strangers:
            return "550 No such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_QUIT(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        return self.farewell

    def authenticate(self, server: SMTP, session: Session, envelope: Envelope, how: str, given: Any) -> AuthResult:
        is_right = isinstance(given, LoginPassword) and given.password == self.password.encode()
        return AuthResult(success=is_right, handled=False)


@contextmanager
def smtp_server(*, security: str = "none", password: str = "", certificate: Path | None = None) -> Iterator[Mailbox]:
    """An SMTP server; with a password it wants one, over TLS unless `security` is none."""
    mailbox = Mailbox(free_port(), password=password)
    sealed = None
    if certificate:
        sealed = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        sealed.load_cert_chain(certificate)
    wants = {"authenticator": mailbox.authenticate, "auth_required": True} if password else {}
    controller = Controller(
        mailbox,
        hostname="127.0.0.1",
        port=mailbox.port,
        ssl_context=sealed if security == "tls" else None,
        tls_context=sealed if security == "starttls" else None,
        require_starttls=security == "starttls",
        auth_require_tls=security == "starttls",
        **wants,
    )
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop(no_assert=True)


@dataclass
class Webhook:
    """What was posted to an address; `answers` are the statuses of the next posts, 200 after the last."""

    url: str = ""
    posts: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    request_count: int = 0


@contextmanager
def webhook_server(path: str) -> Iterator[Webhook]:
    """A server that takes what is posted to `path`, and refuses everything else."""
    webhook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            webhook.request_count += 1
            status = webhook.answers.pop(0) if webhook.answers else 200 if self.path == path else 404
            if status == 200:
                webhook.posts.append((self.path, dict(self.headers), body))
            self.send_response(status)
            if status in (301, 302, 307):
                self.send_header("Location", webhook.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    webhook.url = f"http://127.0.0.1:{server.server_address[1]}{path}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield webhook
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def raw_server(answer: bytes) -> Iterator[int]:
    """The port of a server that reads a request and answers with these bytes, whatever the request."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            left = 0
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    left = int(line.partition(b":")[2])
            self.rfile.read(left)
            self.wfile.write(answer)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def certificate_of(folder: Path, host: str = "127.0.0.1") -> Path:
    """A certificate that signs itself, and its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    plain = serialization.NoEncryption()
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file
