"""The `[notify]` section: channels and topics. Webhook addresses and passwords come from the environment."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator

from pipelines.base.resources import known_reports
from pipelines.config.fields import Frozen, Text

Topic = Literal["report", "check", "anomaly", "budget", "failure"]
# Words between dots, as on both sides of an address's one @.
_DOTTED = re.compile(r"[^@.]+(\.[^@.]+)*")
# Host and port, without a user and without what urllib would read as another host.
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?)(:[0-9]+)?")


def _valid(is_valid: Callable[[Any], bool], otherwise: str) -> AfterValidator:
    """Refuse a value, with `otherwise` as the fix; None and secrets that are empty pass, and no secret is repeated."""

    def check(value: Any) -> Any:
        plain = value.get_secret_value() if isinstance(value, SecretStr) else value
        if plain is not None and not is_valid(plain):
            raise ValueError(otherwise.format(plain))
        return value

    return AfterValidator(check)


def _is_address(address: str) -> bool:
    name, _, domain = address.partition("@")
    is_plain = address.isprintable() and not any(c in ' ,;:\\"<>()[]' for c in address)
    return bool(is_plain and _DOTTED.fullmatch(name) and _DOTTED.fullmatch(domain))


def _is_a_host(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host) is not None
    with suppress(UnicodeError):
        host.encode("idna")
        return len(host) <= 253 and re.fullmatch(r"[\w.-]+", host) is not None
    return False


def _is_sealed(url: str) -> bool:
    """Whether a URL is plain, without a user, and encrypted on its way."""
    if not (url.isascii() and url.isprintable()) or " " in url:
        return False
    try:
        parts = urlsplit(url)
        # Only here a port that is not a number raises.
        is_a_port = parts.port != 0
    except ValueError:
        return False
    is_private = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))
    return bool(is_a_port and is_private and _AUTHORITY.fullmatch(parts.netloc))


def is_loopback(host: str | None) -> bool:
    """Whether what is sent there stays on this machine."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


_ASCII = "mail servers take plain ASCII letters, digits and signs alone"
Address = Annotated[str, _valid(_is_address, "{!r} is not a mail address; write one such as finops@acme.dev")]
WebhookUrl = Annotated[SecretStr, _valid(_is_sealed, "write the https address that Slack gives of an incoming webhook")]
Host = Annotated[str, _valid(_is_a_host, "write the name of a mail server, such as smtp.acme.dev")]
CertificateFile = Annotated[
    str, _valid(lambda file: file and file.isprintable(), "write the path of a file of certificates")
]
Username = Annotated[str, _valid(str.isascii, _ASCII)]
# An empty variable counts as unset.
Password = Annotated[
    SecretStr | None,
    _valid(str.isascii, f"{_ASCII}; choose another password"),
    AfterValidator(lambda password: password or None),
]


class SlackChannel(Frozen):
    """A Slack channel, by its incoming webhook: $TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL.

    `reader`: the reader of the access policy whose teams the channel may see; without one it sees all.
    """

    reader: Text | None = None
    webhook_url: WebhookUrl | None = None


class MailChannel(Frozen):
    """Mail by SMTP; the password is $TRAINLEDGER_NOTIFY__MAIL__PASSWORD. `reader` as of a Slack channel."""

    reader: Text | None = None
    host: Host
    port: int = Field(default=587, ge=1, le=65535)
    # "starttls" on port 587, "tls" from the first byte on port 465.
    security: Literal["starttls", "tls", "none"] = "starttls"
    # Of a private certificate authority; else the system's are trusted.
    ca_file: CertificateFile | None = None
    sender: Address
    recipients: tuple[Address, ...] = Field(min_length=1)
    username: Username | None = None
    password: Password = None

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
