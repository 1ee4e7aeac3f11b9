"""The `[notify]` section: channels and topics. Webhook addresses and passwords come from the environment."""

import re
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, Secret, field_validator

from pipelines.base.resources import known_reports
from pipelines.config.fields import Frozen, Text

Topic = Literal["report", "check", "anomaly", "budget", "failure"]
# Plain signs; host and port without a user and without what urllib would read as another host.
_PLAIN_URL = re.compile(
    r"https?://(\[[0-9A-F:.]+\]|[A-Z0-9_-]+(\.[A-Z0-9_-]+)*\.?)(:[0-9]+)?([/?#][!-~]*)?", re.ASCII | re.IGNORECASE
)


def _sealed(url: str) -> str:
    """A URL that is plain, without a user, and encrypted on its way."""
    # Raised for a port that is too large or no number.
    with suppress(ValueError):
        parts = urlsplit(url)
        is_private = parts.scheme == "https" or is_loopback(parts.hostname)
        if _PLAIN_URL.fullmatch(url) and is_private and parts.port != 0:
            return url
    raise ValueError("write the https address that Slack gives of an incoming webhook")


def is_loopback(host: str | None) -> bool:
    """Whether what is sent there stays on this machine."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


# Neither spaces nor what separates addresses or encloses one; printable, as a header is.
_WORD = r'[^@.,:;\\"<>()\[\]\p{C}\p{Z}]+'
_WORDS = rf"{_WORD}(\.{_WORD})*"
Address = Annotated[str, Field(pattern=f"^{_WORDS}@{_WORDS}$")]
# Labels of a name (RFC 1035), or an IP address of version 6.
_HOST = r"^([\w-]{1,63}(\.[\w-]{1,63})*\.?|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[\w:.%]*)$"
Host = Annotated[str, Field(max_length=253, pattern=_HOST)]
Ascii = Annotated[str, Field(pattern=r"^[\x00-\x7f]*$")]


class SlackChannel(Frozen):
    """A Slack channel, by its incoming webhook: $TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL.

    `reader`: the reader of the access policy whose teams the channel may see; without one it sees all.
    """

    reader: Text | None = None
    webhook_url: Secret[Annotated[str, AfterValidator(_sealed)]] | None = None


class MailChannel(Frozen):
    """Mail by SMTP; the password is $TRAINLEDGER_NOTIFY__MAIL__PASSWORD. `reader` as of a Slack channel."""

    reader: Text | None = None
    host: Host
    port: int = Field(default=587, ge=1, le=65535)
    # "starttls" on port 587, "tls" from the first byte on port 465.
    security: Literal["starttls", "tls", "none"] = "starttls"
    # Of a private certificate authority; else the system's are trusted.
    ca_file: Text | None = None
    sender: Address
    recipients: tuple[Address, ...] = Field(min_length=1)
    username: Ascii | None = None
    # An empty variable counts as unset.
    password: Annotated[Secret[Ascii] | None, BeforeValidator(lambda password: password or None)] = None

    def mistakes(self) -> Iterator[str]:
        if self.username and self.security == "none" and not is_loopback(self.host):
            yield "a password is sent in the open with security 'none'; write 'starttls' or 'tls'"


class Notify(Frozen):
    """Off unless a channel is configured; `about` are the topics sent there."""

    slack: SlackChannel | None = None
    mail: MailChannel | None = None
    about: tuple[Topic, ...] = get_args(Topic)
    # Kinds of report whose PDF goes with the mail of a closed month.
    reports: tuple[str, ...] = ("training_cost",)

    @field_validator("reports")
    @classmethod
    def _are_known(cls, reports: tuple[str, ...]) -> tuple[str, ...]:
        known = known_reports()
        for kind in reports:
            if kind not in known:
                raise ValueError(f"there is no report {kind!r}; choose from {', '.join(known)}")
        return tuple(dict.fromkeys(reports))

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(name for name in ("slack", "mail") if getattr(self, name))
