"""A message by mail, with the report as a PDF."""

from __future__ import annotations

import hashlib
import smtplib
import ssl
import time
from collections.abc import Mapping
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime

from pipelines.base.errors import SourceError, UnreachableError, UsageError
from pipelines.config.notify import MailChannel
from pipelines.notify.news import Notice

TRIES = 3
_TIMEOUT = 30
_PAUSE = 1.0
VARIABLE = "TRAINLEDGER_NOTIFY__MAIL__PASSWORD"


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


def send(channel: MailChannel, message: EmailMessage) -> None:
    """Send the message; UsageError, SourceError or UnreachableError where that fails."""
    where = f"{channel.host}:{channel.port}"
    if channel.username and not channel.password:
        raise UsageError(f"[notify.mail] has a username and no password; set the environment variable {VARIABLE}.")
    problem = ""
    for number in range(TRIES):
        time.sleep(_PAUSE * number)
        try:
            _hand_over(channel, message)
            return
        except smtplib.SMTPAuthenticationError:
            raise SourceError(f"{where} refuses the user name or password; set {VARIABLE} to the right one.") from None
        except smtplib.SMTPNotSupportedError:
            raise SourceError(
                f"{where} does not support what [notify.mail] requires ({channel.security}"
                f"{', a password' if channel.username else ''}); check port and security."
            ) from None
        except smtplib.SMTPRecipientsRefused:
            raise SourceError(f"{where} refuses every recipient; check `recipients` under [notify.mail].") from None
        except smtplib.SMTPSenderRefused:
            raise SourceError(f"{where} refuses {channel.sender}; check `sender` under [notify.mail].") from None
        except ssl.SSLError as error:
            raise SourceError(
                f"{where} cannot be trusted ({error.reason}); check host and security, or name its authority by "
                "ca_file."
            ) from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            # The type alone: the message may quote what cannot be encoded.
            problem = type(error).__name__
    raise UnreachableError(
        f"{where} did not accept the mail ({problem}), {TRIES} times; the message is kept for the next time."
    )


def _hand_over(channel: MailChannel, message: EmailMessage) -> None:
    kind = smtplib.SMTP_SSL if channel.security == "tls" else smtplib.SMTP
    try:
        trust = ssl.create_default_context(cafile=channel.ca_file)
    except (OSError, ValueError):
        raise UsageError(f"{channel.ca_file} is no certificate file; check ca_file under [notify.mail].") from None
    more = {"context": trust} if channel.security == "tls" else {}
    with kind(channel.host, channel.port, timeout=_TIMEOUT, **more) as server:  # type: ignore[arg-type]
        if channel.security == "starttls":
            server.starttls(context=trust)
        if channel.username and channel.password:
            server.login(channel.username, channel.password.get_secret_value())
        server.send_message(message)
