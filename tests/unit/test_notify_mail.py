"""Mail settings that cannot be sent with are refused when the configuration is read, without showing a password."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings
from pipelines.notify.channels import message_of, send
from pipelines.notify.news import News, Notice

PASSWORD = "TRAINLEDGER_NOTIFY__MAIL__PASSWORD"
MAIL = '[notify.mail]\nhost = "m.acme.dev"\nsender = "t@acme.dev"\nrecipients = ["a@acme.dev"]\n'
NO_ADDRESS = "write a mail address such as finops@acme.dev."
NO_HOST = "write the name of a mail server, such as smtp.acme.dev."


@pytest.mark.parametrize(
    ("section", "environment", "message"),
    [
        *(
            (MAIL.replace('"m.acme.dev"', host), {}, f"{{config}}: key 'notify.mail.host': {NO_HOST}")
            for host in ('""', '"a..b"', f'"{"a" * 64}"', '"a\\u0000b"', '"a b"', '"u@m.acme.dev"')
        ),
        (
            MAIL + 'ca_file = "/etc/\\u0000ca.pem"',
            {},
            "{config}: key 'notify.mail.ca_file': write the path of a file of certificates.",
        ),
        *(
            (
                MAIL.replace('"a@acme.dev"', f"'{address}'").replace('"t@acme.dev"', f"'{sender}'"),
                {},
                f"{{config}}: key 'notify.mail.{key}': {NO_ADDRESS}",
            )
            for wrong in ("@", "a@", "@b", "a@b@c", '"a"@b', "<a@b>", "a@b>", "a@b..c", "a b@c", "a@b,c@d")
            for key, sender, address in (("recipients.0", "t@b", wrong), ("sender", wrong, "t@b"))
        ),
        (
            MAIL.replace('"t@', '"t\\u0007@'),
            {},
            f"{{config}}: key 'notify.mail.sender': {NO_ADDRESS}",
        ),
        (
            MAIL + 'username = "u"',
            {"MAIL__PASSWORD": "q7Xné"},
            "environment variable TRAINLEDGER_NOTIFY__MAIL__PASSWORD: key 'notify.mail.password': mail servers take "
            "plain ASCII letters, digits and signs alone; choose another password.",
        ),
        (
            '[notify]\nreports = ["trainig_cost"]',
            {},
            "{config}: key 'notify.reports': there is no report 'trainig_cost'; choose from ",
        ),
    ],
)
def test_what_cannot_be_sent_with_is_one_sentence_naming_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: str, environment: dict[str, str], message: str
) -> None:
    """A host is labels of 1 to 63 letters (RFC 1035); an address is words, one @ and a host (RFC 5322)."""
    config = tmp_path / "trainledger.toml"
    config.write_text(section)
    for name, value in environment.items():
        monkeypatch.setenv(f"TRAINLEDGER_NOTIFY__{name}", value)
    with pytest.raises(UsageError) as refused:
        load_settings(config)
    assert str(refused.value).startswith(message.format(config=config))
    assert "q7Xn" not in str(refused.value)


def test_a_password_that_is_empty_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logging in would be skipped, and the mail sent without an account."""
    config = tmp_path / "trainledger.toml"
    config.write_text(MAIL + 'username = "u"')
    monkeypatch.setenv(PASSWORD, "")
    channel = load_settings(config).notify.mail
    assert channel is not None
    notice = Notice((News("k", "check", "a line"),), "s")
    with pytest.raises(UsageError, match=f"has a username and no password; set the environment variable {PASSWORD}"):
        send(channel, message_of(channel, notice, datetime(2026, 8, 3, tzinfo=UTC), {}))


def test_a_kind_of_report_named_twice_is_sent_once(tmp_path: Path) -> None:
    config = tmp_path / "trainledger.toml"
    config.write_text('[notify]\nreports = ["training_cost", "savings", "training_cost"]')
    assert load_settings(config).notify.reports == ("training_cost", "savings")


@pytest.mark.parametrize(
    "host", ["smtp.acme.dev", "localhost", "10.0.0.5", "::1", "b\u00fccher.example", "m_1.acme.dev."]
)
def test_every_kind_of_host_is_taken(tmp_path: Path, host: str) -> None:
    config = tmp_path / "trainledger.toml"
    config.write_text(MAIL.replace("m.acme.dev", host), encoding="utf-8")
    mail = load_settings(config).notify.mail
    assert mail is not None and mail.host == host
