"""What Slack and mail servers receive, and how they refuse, without a secret shown."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.mailboxes import certificate_of, raw_server, smtp_server, webhook_server
from support.ports import free_port

from pipelines.base.errors import SourceError, TrainledgerError, UnreachableError, UsageError
from pipelines.config.notify import MailChannel, SlackChannel
from pipelines.config.settings import load_settings
from pipelines.notify.channels import body_of, message_of, post, send
from pipelines.notify.news import News, Notice, notices_of

AT = datetime(2026, 8, 3, 6, tzinfo=UTC)
NEWS = News("anomaly/run/a/2026-07-14/USD", "anomaly", "run a, 2026-07-14: 30.00 USD per run")
NOTICE = Notice((NEWS,), "trainledger: a cost")
PASSWORD = "s3cret-Zx81-of-mail"
WEBHOOK_URL = "TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL"
PATH = "/services/T0AAAA/B0BBBB/q7Xn2VbLw9RtYcKd"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.notify.channels._PAUSE", 0)
    monkeypatch.setattr("pipelines.notify.channels._PAUSE", 0)


def mail_to(port: int, **more: object) -> MailChannel:
    settings = {"host": "127.0.0.1", "port": port, "sender": "t@acme.dev", "recipients": ["a@acme.dev"], **more}
    return MailChannel.model_validate(settings)


def test_a_name_adds_no_line_to_a_message() -> None:
    """A run could else announce a saving, and turn the amount behind its name around."""
    news = News("k", "anomaly", "Run a\nJuly 2026 is closed: $9 was avoided\u202e cost $110")
    assert (
        Notice((news, news), "s").text.splitlines()
        == [r"Run a\nJuly 2026 is closed: $9 was avoided\u202e cost $110"] * 2
    )


def test_slack_receives_text_that_is_no_link_and_no_mention() -> None:
    """Slack wants &, < and > as entities; `<!channel>` would call everybody."""
    document = json.loads(body_of("3 < 4", "run <!channel> & <http://evil|click> *bold*"))
    assert document["text"] == "3 &lt; 4\nrun &lt;!channel&gt; &amp; &lt;http://evil|click&gt; *bold*"
    assert document["mrkdwn"] is False


def test_slack_receives_all_of_what_counts_as_sent() -> None:
    """Of 200 warnings of 300 characters, more than Slack shows of a message, each is in one."""
    lines = [f"{number:03}".ljust(300, "x") for number in range(200)]
    notices = notices_of(News(line, "check", line) for line in lines)
    texts = [json.loads(body_of(one.subject, one.text))["text"].splitlines()[1:] for one in notices]
    assert [line for text in texts for line in text] == lines


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (
            404,
            SourceError,
            f"Slack's webhook returned 404; create a new one and set {WEBHOOK_URL}.",
        ),
        # What is meant for Slack is not carried elsewhere.
        (
            302,
            SourceError,
            f"Slack's webhook returned 302; create a new one and set {WEBHOOK_URL}.",
        ),
        (
            503,
            UnreachableError,
            "Slack's webhook returned 503, 3 times; the message is kept for the next time.",
        ),
    ],
)
def test_a_webhook_that_refuses_is_reported_without_its_address(
    answer: int, kind: type[TrainledgerError], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with webhook_server(PATH) as webhook:
        webhook.answers = [answer] * 3
        with pytest.raises(kind) as refused:
            post(SlackChannel.model_validate({"webhook_url": webhook.url}), "s", "t")
        assert webhook.posts == []
    assert str(refused.value) == message
    assert "q7Xn" not in caplog.text


def test_a_webhook_that_is_not_there_is_unreachable() -> None:
    channel = SlackChannel.model_validate({"webhook_url": f"http://127.0.0.1:{free_port()}{PATH}"})
    with pytest.raises(UnreachableError) as refused:
        post(channel, "s", "t")
    assert str(refused.value).startswith("Slack's webhook did not respond (ConnectionRefusedError), 3 times;")
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
def test_a_webhook_that_is_no_plain_address_is_refused_without_showing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """The error of urllib quotes each of them, so none may come as far."""
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
        f"Slack's webhook did not respond ({kind}), 3 times; the message is kept for the next time."
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


def test_a_server_without_a_trusted_certificate_gets_no_password(certificate: Path) -> None:
    with smtp_server(security="starttls", password=PASSWORD, certificate=certificate) as mailbox:
        channel = mail_to(mailbox.port, username="trainledger", password=PASSWORD)
        with pytest.raises(SourceError, match=r"cannot be trusted \(CERTIFICATE_VERIFY_FAILED\); check host"):
            send(channel, message_of(channel, NOTICE, AT, {}))
        assert mailbox.mails == []


def test_a_wrong_password_is_reported_without_showing_it(certificate: Path) -> None:
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
        with pytest.raises(SourceError, match=r"does not support what \[notify.mail\] requires \(starttls\)"):
            send(channel, message_of(channel, NOTICE, AT, {}))
        assert mailbox.mails == []


def test_a_server_that_is_slow_to_answer_or_to_part_gets_a_mail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mail is taken before the answer, and for some servers 421 ends the conversation."""
    monkeypatch.setattr("pipelines.notify.channels._TIMEOUT", 0.3)
    with smtp_server() as mailbox:
        mailbox.seconds, mailbox.farewell = 0.6, "421 Service closing"
        channel = mail_to(mailbox.port, security="none")
        assert send(channel, message_of(channel, NOTICE, AT, {})) == []
        assert len(mailbox.mails) == 1


def test_a_recipient_that_is_refused_is_named_and_the_others_get_the_mail() -> None:
    with smtp_server() as mailbox:
        channel = mail_to(mailbox.port, security="none", recipients=["gone@acme.dev", "finops@acme.dev"])
        mailbox.strangers = ["gone@acme.dev"]
        assert send(channel, message_of(channel, NOTICE, AT, {})) == ["gone@acme.dev"]
        assert len(mailbox.mails) == 1


def test_a_mail_server_that_is_not_there_is_unreachable() -> None:
    channel = mail_to(free_port(), security="none")
    with pytest.raises(
        UnreachableError, match=r"did not accept the mail \(ConnectionRefusedError\), 3 times; the message"
    ):
        send(channel, message_of(channel, NOTICE, AT, {}))
