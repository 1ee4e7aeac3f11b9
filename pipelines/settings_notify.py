"""Who is told what: the `[notify]` section. Addresses that open something and passwords come from the environment."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from pipelines.settings_sources import Frozen

Topic = Literal["report", "check", "anomaly", "budget", "failure"]
# Host and port, without a user and without what urllib would read as another host.
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?)(:[0-9]+)?")


class SlackChannel(Frozen):
    """A Slack channel, by its incoming webhook: $TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL."""

    webhook_url: SecretStr | None = None

    @field_validator("webhook_url")
    @classmethod
    def _is_private(cls, url: SecretStr | None) -> SecretStr | None:
        # Whoever reads the address on its way may write to the channel; no words of ours, nor urllib's, repeat it.
        if url is not None and not _is_sealed(url.get_secret_value()):
            raise ValueError("write the https address that Slack gives of an incoming webhook")
        return url


class MailChannel(Frozen):
    """Mail by SMTP; the password is $TRAINLEDGER_NOTIFY__MAIL__PASSWORD."""

    host: str = Field(min_length=1)
    port: int = Field(default=587, ge=1, le=65535)
    # "starttls" on port 587, "tls" from the first byte on port 465.
    security: Literal["starttls", "tls", "none"] = "starttls"
    # Of a private certificate authority; else the system's are trusted.
    ca_file: str | None = None
    sender: str = Field(pattern=r"^[^@\s]+@[^@\s]+$")
    recipients: tuple[str, ...] = Field(min_length=1)
    username: str | None = None
    password: SecretStr | None = None

    @field_validator("recipients")
    @classmethod
    def _are_addresses(cls, recipients: tuple[str, ...]) -> tuple[str, ...]:
        for one in recipients:
            if one.count("@") != 1 or any(c.isspace() or c in ",;<>" for c in one):
                raise ValueError(f"{one!r} is no address; write such as finops@acme.dev")
        return recipients

    @model_validator(mode="after")
    def _password_is_sealed(self) -> MailChannel:
        if self.username and self.security == "none" and not is_loopback(self.host):
            raise ValueError("a password is sent in the open with security 'none'; write 'starttls' or 'tls'")
        return self


class Notify(Frozen):
    """Off unless a channel is configured; `about` says what is told there."""

    slack: SlackChannel | None = None
    mail: MailChannel | None = None
    about: tuple[Topic, ...] = get_args(Topic)
    # Kinds of report whose PDF goes with the mail of a closed month.
    reports: tuple[str, ...] = ("training_cost",)

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of those that are configured."""
        return tuple(name for name in ("slack", "mail") if getattr(self, name))


def _is_sealed(url: str) -> bool:
    """Whether a URL is a plain one, without a user, that nobody can read on its way."""
    if not (url.isascii() and url.isprintable()) or " " in url:
        return False
    try:
        parts = urlsplit(url)
        # A port that is no number is found out here alone.
        is_a_port = parts.port != 0
    except ValueError:
        return False
    return bool(
        is_a_port
        and _AUTHORITY.fullmatch(parts.netloc)
        and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname)))
    )


def is_loopback(host: str | None) -> bool:
    """Whether what is sent there stays on this machine."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False
