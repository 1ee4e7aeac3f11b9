"""Telling people: the command, what Slack and SMTP servers are given, and what is refused without telling a secret."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.commands import run_command
from support.mailboxes import certificate_of, raw_server, smtp_server, webhook_server
from support.ports import free_port
from support.small_company import Company

from pipelines.errors import SourceError, TrainledgerError, UnreachableError, UsageError
from pipelines.notify.mail import message_of, send
from pipelines.notify.news import News, Notice
from pipelines.notify.record import Record
from pipelines.notify.slack import body_of, post
from pipelines.settings import load_settings
from pipelines.settings_notify import MailChannel, SlackChannel
from pipelines.storage import open_store

Captured = pytest.CaptureFixture[str]
AT = datetime(2026, 8, 3, 6, tzinfo=UTC)
NEWS = News("anomaly/run/a/2026-07-14/USD", "anomaly", "run a, 2026-07-14: 30.00 USD per run")
NOTICE = Notice((NEWS,), "trainledger: a cost")
PASSWORD = "s3cret-Zx81-of-mail"
WEBHOOK_URL = "TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL"
PATH = "/services/T0AAAA/B0BBBB/q7Xn2VbLw9RtYcKd"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.notify.slack._PAUSE", 0)
    monkeypatch.setattr("pipelines.notify.mail._PAUSE", 0)


def mail_to(port: int, **more: object) -> MailChannel:
    told = {"host": "127.0.0.1", "port": port, "sender": "t@acme.dev", "recipients": ["a@acme.dev"], **more}
    return MailChannel.model_validate(told)


def test_slack_is_given_text_that_is_no_link_and_no_mention() -> None:
    """Slack wants &, < and > as entities; `<!channel>` would call everybody."""
    told = json.loads(body_of("3 < 4", "run <!channel> & <http://evil|click> *bold*"))
    assert told["text"] == "3 &lt; 4\nrun &lt;!channel&gt; &amp; &lt;http://evil|click&gt; *bold*"
    assert told["mrkdwn"] is False


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (
            404,
            SourceError,
            f"Slack's webhook answers 404; make a new one and set {WEBHOOK_URL}.",
        ),
        # What is meant for Slack is not carried elsewhere.
        (
            302,
            SourceError,
            f"Slack's webhook answers 302; make a new one and set {WEBHOOK_URL}.",
        ),
        (503, UnreachableError, "Slack's webhook answers 503, 3 times; what was to be told is kept for the next time."),
    ],
)
def test_a_webhook_that_refuses_is_told_without_its_address(
    answer: int, kind: type[TrainledgerError], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with webhook_server(PATH) as webhook:
        webhook.answers = [answer] * 3
        with pytest.raises(kind) as refused:
            post(SlackChannel.model_validate({"webhook_url": webhook.url}), "s", "t")
        assert webhook.posts == []
    assert str(refused.value) == said
    assert "q7Xn" not in caplog.text


def test_a_webhook_that_is_not_there_is_unreachable() -> None:
    channel = SlackChannel.model_validate({"webhook_url": f"http://127.0.0.1:{free_port()}{PATH}"})
    with pytest.raises(UnreachableError) as refused:
        post(channel, "s", "t")
    assert str(refused.value).startswith("Slack's webhook does not answer (ConnectionRefusedError), 3 times;")
    assert "q7Xn" not in repr(channel)


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "https://127.0.0.1:9499/services/q7Xn TOKEN",
        "https://127.0.0.1/services/q7Xn\tTOKEN",
        "https://127.0.0.1/services/q7Xn\nTOKEN",
        "https://127.0.0.1/services/q7Xné",
        "https://hooks.slack.com:q7Xn/services/T",
        "https://hooks.slack.com:99999/services/q7Xn",
        "https://q7Xn:pw@h\u2100x.com/services/T",
        "https://q7Xn:pw@hooks.slack.com/services/T",
        "https://q7Xn%40hooks.slack.com/services/T",
        "https://[q7Xn]/services/T",
        "https:///services/q7Xn",
        "https://a..b/services/q7Xn",
    ],
)
def test_a_webhook_that_is_no_plain_address_is_refused_without_telling_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """What urllib says of each of them quotes it, so none may come as far."""
    config = tmp_path / "trainledger.toml"
    config.write_text("[notify.slack]\n")
    monkeypatch.setenv(WEBHOOK_URL, url)
    with pytest.raises(UsageError) as refused:
        load_settings(config)
    assert str(refused.value) == (
        f"environment variable {WEBHOOK_URL}: key 'notify.slack.webhook_url': write the https address that Slack "
        "gives of an incoming webhook."
    )


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"garbage q7Xn\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"q7Xn" * 20_000 + b"\r\n\r\n", "LineTooLong"),
    ],
)
def test_a_webhook_that_answers_garbage_is_unreachable(answer: bytes, kind: str) -> None:
    """A status line is HTTP/x and a number, and http.client takes lines of 65,536 bytes."""
    with raw_server(answer) as port:
        channel = SlackChannel.model_validate({"webhook_url": f"http://127.0.0.1:{port}{PATH}"})
        with pytest.raises(UnreachableError) as refused:
            post(channel, "s", "t")
    assert str(refused.value) == (
        f"Slack's webhook does not answer ({kind}), 3 times; what was to be told is kept for the next time."
    )


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate_of(tmp_path_factory.mktemp("certificate"))


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_goes_sealed_and_with_a_password(security: str, certificate: Path) -> None:
    with smtp_server(security=security, password=PASSWORD, certificate=certificate) as mailbox:
        channel = mail_to(
            mailbox.port, security=security, ca_file=str(certificate), username="trainledger", password=PASSWORD
        )
        send(channel, message_of(channel, NOTICE, AT, {"page.pdf": b"%PDF-1.7"}))
        (mail,) = mailbox.mails
        body = mail.get_body()
        assert body is not None and body.get_content().strip() == NEWS.line
        assert [(file.get_filename(), file.get_content()) for file in mail.iter_attachments()] == [
            ("page.pdf", b"%PDF-1.7")
        ]
        assert mail["Date"] == "Mon, 03 Aug 2026 06:00:00 +0000"


def test_a_server_nobody_vouches_for_gets_no_password(certificate: Path) -> None:
    with smtp_server(security="starttls", password=PASSWORD, certificate=certificate) as mailbox:
        channel = mail_to(mailbox.port, username="trainledger", password=PASSWORD)
        with pytest.raises(SourceError, match=r"cannot be trusted \(CERTIFICATE_VERIFY_FAILED\); check host"):
            send(channel, message_of(channel, NOTICE, AT, {}))
        assert mailbox.mails == []


def test_a_wrong_password_is_told_without_telling_it(certificate: Path) -> None:
    with smtp_server(security="tls", password="another", certificate=certificate) as mailbox:
        channel = mail_to(
            mailbox.port, security="tls", ca_file=str(certificate), username="trainledger", password=PASSWORD
        )
        with pytest.raises(SourceError) as refused:
            send(channel, message_of(channel, NOTICE, AT, {}))
    assert str(refused.value) == (
        f"127.0.0.1:{mailbox.port} refuses the user name or password; set TRAINLEDGER_NOTIFY__MAIL__PASSWORD to the "
        "right one."
    )
    assert PASSWORD not in repr(channel)


def test_a_server_without_tls_gets_no_mail_where_tls_is_wanted() -> None:
    with smtp_server() as mailbox:
        channel = mail_to(mailbox.port)
        with pytest.raises(SourceError, match=r"does not offer what \[notify.mail\] wants \(starttls\)"):
            send(channel, message_of(channel, NOTICE, AT, {}))
        assert mailbox.mails == []


def test_a_mail_server_that_is_not_there_is_unreachable() -> None:
    channel = mail_to(free_port(), security="none")
    with pytest.raises(UnreachableError, match=r"does not take mail \(ConnectionRefusedError\), 3 times; what"):
        send(channel, message_of(channel, NOTICE, AT, {}))


@pytest.fixture
def company(built_company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Company]:
    company = built_company.copy(tmp_path)
    company.config.write_text(company.config.read_text() + "\n[notify.slack]\n")
    yield company


def test_a_dry_run_says_what_would_be_told_and_tells_nobody(
    company: Company, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """July and August are closed: 110.08 and four hours at 21.50."""
    with webhook_server(PATH) as webhook:
        monkeypatch.setenv("TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL", webhook.url)
        for _ in (1, 2):
            dry = run_command(capsys, "notify", "--dry-run", "--config", str(company.config))
            assert dry.code == 0
            assert "Would tell slack: trainledger: training cost of July 2026" in dry.out
            assert "$110.08 effective, of it $110.08 in runs" in dry.out
            assert "$86.00 effective, of it $86.00 in runs" in dry.out
        assert webhook.posts == []
        told = run_command(capsys, "notify", "--config", str(company.config))
        assert told.out == dry.out.replace("Would tell", "Told")
        assert len(webhook.posts) == 2
        again = run_command(capsys, "notify", "--config", str(company.config))
        assert again.out.strip() == "Everything was told before."
        assert len(webhook.posts) == 2


def test_a_webhook_that_answers_garbage_holds_up_no_mail(
    company: Company, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """July and August are closed: a mail of each."""
    with raw_server(b"garbage\r\n\r\n") as port, smtp_server() as mailbox:
        monkeypatch.setenv(WEBHOOK_URL, f"http://127.0.0.1:{port}{PATH}")
        company.config.write_text(
            f'{company.config.read_text()}\n[notify.mail]\nhost = "127.0.0.1"\nport = {mailbox.port}\n'
            'security = "none"\nsender = "t@acme.dev"\nrecipients = ["a@acme.dev"]\n'
        )
        said = run_command(capsys, "notify", "--config", str(company.config))
        assert len(mailbox.mails) == 2
    assert said.code == 3
    assert said.error.startswith("Slack's webhook does not answer (BadStatusLine), 3 times;")
    assert "q7Xn" not in said.error + said.out


def test_what_another_process_is_telling_was_not_told_before(
    company: Company, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two months are closed, and a claim of this minute is that of a process that is still sending."""
    record = Record(open_store(load_settings(company.config).warehouse.location), "slack")
    for month in ("2026-07", "2026-08"):
        assert record.claim([News(f"report/training_cost/{month}", "report", "")])
    with webhook_server(PATH) as webhook:
        monkeypatch.setenv(WEBHOOK_URL, webhook.url)
        said = run_command(capsys, "notify", "--config", str(company.config))
        assert webhook.posts == []
    assert " ".join(said.out.split()) == (
        "Another process is telling the rest; what it cannot deliver is told the next time."
    )


@pytest.mark.parametrize(
    ("section", "environment", "said"),
    [
        ("", {}, "Nobody is to be told; add [notify.slack] or [notify.mail] (docs/notifications.md)."),
        (
            "[notify.slack]",
            {},
            "[notify.slack] has no webhook; set the environment variable TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL.",
        ),
        (
            "[notify.slack]",
            {"SLACK__WEBHOOK_URL": f"http://hooks.slack.com{PATH}"},
            f"environment variable {WEBHOOK_URL}: key 'notify.slack.webhook_url': write the https "
            "address that Slack gives of an incoming webhook.",
        ),
        (
            f'[notify.slack]\nwebhook_url = "https://hooks.slack.com{PATH}"',
            {},
            "{config}: key 'notify.slack.webhook_url' is a secret; take it out of the file and set the environment "
            "variable TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL.",
        ),
        (
            '[notify.mail]\nhost = "m.acme.dev"\nsender = "t@acme.dev"\nrecipients = ["a@x"]\npassword = "q7Xn"',
            {},
            "{config}: key 'notify.mail.password' is a secret; take it out of the file and set the environment "
            "variable TRAINLEDGER_NOTIFY__MAIL__PASSWORD.",
        ),
        (
            '[notify.mail]\nhost = "m.acme.dev"\nsecurity = "none"\nusername = "u"\nsender = "t@acme.dev"\n'
            'recipients = ["a@acme.dev"]',
            {"MAIL__PASSWORD": "q7Xn"},
            "{config}: key 'notify.mail': a password is sent in the open with security 'none'; write 'starttls' or "
            "'tls'.",
        ),
        (
            '[notify.mail]\nhost = "m.acme.dev"\nsender = "t@acme.dev"\nrecipients = ["a@acme.dev>,b@x"]',
            {},
            "{config}: key 'notify.mail.recipients.0': 'a@acme.dev>,b@x' is no address; write such as finops@acme.dev.",
        ),
        ('[notify]\nabout = ["all"]', {}, "{config}: key 'notify.about.0': Input should be 'report', 'check', "),
    ],
)
def test_what_is_configured_wrongly_is_one_sentence_without_a_secret(
    built_company: Company, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch,
    section: str, environment: dict[str, str], said: str,
) -> None:  # fmt: skip
    company = built_company.copy(tmp_path)
    company.config.write_text(f"{company.config.read_text()}\n{section}\n")
    for name, value in environment.items():
        monkeypatch.setenv(f"TRAINLEDGER_NOTIFY__{name}", value)
    refused = run_command(capsys, "notify", "--config", str(company.config))
    assert refused.code == 2
    assert refused.error.startswith(said.format(config=company.config))
    assert "q7Xn" not in refused.error + refused.out


def test_what_another_process_is_telling_is_left_to_it_and_taken_over_once_it_was_killed(tmp_path: Path) -> None:
    """A claim without an end is that of a process at work, or after a quarter of an hour of one that died."""
    record = Record(open_store(str(tmp_path)), "slack")
    assert record.claim([NEWS])
    assert not record.claim([NEWS]) and record.state(NEWS) == "claimed"
    (place,) = tmp_path.rglob("*.json")
    note = json.loads(place.read_text())
    place.write_text(json.dumps({**note, "at": (datetime.now(UTC) - timedelta(minutes=16)).isoformat()}))
    assert record.state(NEWS) == "open" and record.claim([NEWS])
    record.done([NEWS])
    place.write_text(place.read_text().replace(str(datetime.now(UTC).year), "2020"))
    assert record.state(NEWS) == "told" and not record.claim([NEWS])


def test_settings_show_no_secret(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL", f"https://hooks.slack.com{PATH}")
    settings = load_settings(company.config)
    assert "q7Xn" not in f"{settings!r} {settings} {settings.model_dump_json()}"
    with pytest.raises(UsageError, match="is a secret"):
        company.config.write_text(company.config.read_text() + f'webhook_url = "https://hooks.slack.com{PATH}"\n')
        load_settings(company.config)
