"""A message by mail, with the report as a PDF, or to Slack by an incoming webhook.

The address of a webhook is a secret: no log and no error contains it.
"""

import hashlib
import json
import smtplib
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pipelines.base.errors import SourceError, UnreachableError, UsageError, counted
from pipelines.config.notify import MailChannel, SlackChannel
from pipelines.notify.news import LONGEST, Notice

TRIES = 3
_TIMEOUT = 30
# A mail server may look into a mail for so long before it answers (RFC 5321, 4.5.3.2); who gives up sends it twice.
_ANSWER_TIMEOUT = 600
_PAUSE = 1.0
# No more tries after so long: a claim of the message ends after 15 minutes.
_PATIENCE = 120
_PASSWORD = "TRAINLEDGER_NOTIFY__MAIL__PASSWORD"
_WEBHOOK = "TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL"


def message_of(channel: MailChannel, notice: Notice, at: datetime, files: Mapping[str, bytes]) -> EmailMessage:
    """The mail. Its id derives from its news, so that mail programs show a mail that was sent twice once."""
    message = EmailMessage()
    message["Subject"] = notice.subject
    message["From"] = channel.sender
    message["To"] = ", ".join(channel.recipients)
    message["Date"] = format_datetime(at)
    seal = hashlib.sha256("\n".join(one.key for one in notice.news).encode()).hexdigest()
    message["Message-ID"] = f"<{seal[:32]}@trainledger>"
    message.set_content(notice.text + "\n")
    for name, content in files.items():
        message.add_attachment(content, maintype="application", subtype="pdf", filename=name)
    return message


def send(channel: MailChannel, message: EmailMessage) -> list[str]:
    """Send the message; the recipients that the server refuses while it takes the mail for others.

    UsageError, SourceError or UnreachableError where that fails.
    """
    where = f"{channel.host}:{channel.port}"
    if channel.username and not channel.password:
        raise UsageError(f"[notify.mail] has a username and no password; set the environment variable {_PASSWORD}.")
    refused: list[str] = []

    def attempt() -> str:
        try:
            refused[:] = _hand_over(channel, message)
            return ""
        except smtplib.SMTPAuthenticationError:
            problem = f"refuses the user name or password; set {_PASSWORD} to the right one"
        except smtplib.SMTPNotSupportedError:
            password = ", a password" if channel.username else ""
            problem = (
                f"does not support what [notify.mail] requires ({channel.security}{password}); check port and security"
            )
        except smtplib.SMTPRecipientsRefused:
            problem = "refuses every recipient; check `recipients` under [notify.mail]"
        except smtplib.SMTPSenderRefused:
            problem = f"refuses {channel.sender}; check `sender` under [notify.mail]"
        except ssl.SSLError as error:
            problem = f"cannot be trusted ({error.reason}); check host and security, or name its authority by ca_file"
        except (smtplib.SMTPException, OSError, ValueError) as error:
            # The type alone: the message may quote what cannot be encoded.
            return f"did not accept the mail ({type(error).__name__})"
        raise SourceError(f"{where} {problem}.")

    _try(where, attempt)
    return refused


def _try(where: str, attempt: Callable[[], str]) -> None:
    """Try until `attempt` returns no problem; UnreachableError after the last try."""
    problem, number, begun = "", 0, time.monotonic()
    while number < TRIES and time.monotonic() - begun < _PATIENCE:
        time.sleep(_PAUSE * number)
        number += 1
        if not (problem := attempt()):
            return
    raise UnreachableError(f"{where} {problem}, {counted(number, 'time')}; the message is kept for the next time.")


def _hand_over(channel: MailChannel, message: EmailMessage) -> list[str]:
    kind = smtplib.SMTP_SSL if channel.security == "tls" else smtplib.SMTP
    try:
        trust = ssl.create_default_context(cafile=channel.ca_file)
    except (OSError, ValueError):
        raise UsageError(f"{channel.ca_file} is not a certificate file; check ca_file under [notify.mail].") from None
    more = {"context": trust} if channel.security == "tls" else {}
    with kind(channel.host, channel.port, timeout=_TIMEOUT, **more) as server:  # type: ignore[arg-type]
        if channel.security == "starttls":
            server.starttls(context=trust)
        if channel.username and channel.password:
            server.login(channel.username, channel.password.get_secret_value())
        if server.sock:
            server.sock.settimeout(_ANSWER_TIMEOUT)
        refused = server.send_message(message)
        # The mail is on its way, whatever the server answers from here on.
        if server.sock:
            server.sock.settimeout(_TIMEOUT)
        with suppress(smtplib.SMTPServerDisconnected):
            server.quit()
    return sorted(refused)


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the message is for Slack only."""

    def redirect_request(self, *args: object) -> None:
        return None


def body_of(subject: str, text: str) -> bytes:
    """The request body: plain text without markup, link or mention, as a run may have any name."""
    whole = f"{subject}\n{text}"
    cut = whole if len(whole) <= LONGEST else whole[:LONGEST] + " …"
    escaped = cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return json.dumps({"text": escaped, "mrkdwn": False, "unfurl_links": False}).encode()


def post(channel: SlackChannel, subject: str, text: str) -> None:
    """Send it; UsageError, SourceError or UnreachableError never contain the address."""
    if channel.webhook_url is None:
        raise UsageError(f"[notify.slack] has no webhook; set the environment variable {_WEBHOOK}.")
    address, body = channel.webhook_url.get_secret_value(), body_of(subject, text)

    def attempt() -> str:
        try:
            # Of the standard library, which logs nothing: urllib3 writes the path of what it tries again into its log.
            request = Request(address, body, {"Content-Type": "application/json"})
            with build_opener(_NoRedirect).open(request, timeout=_TIMEOUT):
                return ""
        except HTTPError as error:
            error.close()
            problem = f"returned {error.code}"
            if error.code == 429 or error.code >= 500:
                return problem
        except (OSError, HTTPException, ValueError) as error:
            # The type alone: the message of an error about a URL quotes it.
            reason = error.reason if isinstance(error, URLError) else error
            return f"did not respond ({type(reason).__name__})"
        raise SourceError(f"Slack's webhook {problem}; create a new one and set {_WEBHOOK}.")

    _try("Slack's webhook", attempt)
