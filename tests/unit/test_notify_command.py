"""Notices by command: what is sent, to whom, once, and what is refused without showing a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.commands import run_command
from support.mailboxes import raw_server, smtp_server, webhook_server
from support.ports import free_port
from support.small_company import Company

from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings
from pipelines.notify.news import News, _line
from pipelines.notify.send import Record
from pipelines.warehouse.stores import open_store

Captured = pytest.CaptureFixture[str]
NEWS = News("anomaly/run/a/2026-07-14/USD", "anomaly", "run a, 2026-07-14: 30.00 USD per run")
WEBHOOK_URL = "TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL"
PATH = "/services/T0AAAA/B0BBBB/q7Xn2VbLw9RtYcKd"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.notify.channels._PAUSE", 0)
    monkeypatch.setattr("pipelines.notify.channels._PAUSE", 0)


@pytest.fixture
def company(built_company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Company]:
    company = built_company.copy(tmp_path)
    company.config.write_text(company.config.read_text() + "\n[notify.slack]\n")
    yield company


def test_a_dry_run_shows_what_would_be_sent_and_sends_nothing(
    company: Company, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """July and August are closed: 110.08 and four hours at 21.50. No rate is known, which is a warning."""
    with webhook_server(PATH) as webhook:
        monkeypatch.setenv("TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL", webhook.url)
        for _ in (1, 2):
            dry = run_command(capsys, "notify", "--dry-run", "--config", str(company.config))
            assert dry.code == 0
            subject = "July 2026 is closed, training cost of all months"
            assert f"Would send to slack: trainledger: {subject}" in dry.out
            assert "$110.08 effective cost, including $110.08 in runs" in dry.out
            assert "$86.00 effective cost, including $86.00 in runs" in dry.out
        assert webhook.posts == []
        result = run_command(capsys, "notify", "--config", str(company.config))
        assert result.out == dry.out.replace("Would send to", "Sent to")
        assert len(webhook.posts) == 3
        again = run_command(capsys, "notify", "--config", str(company.config))
        assert again.out.strip() == "Nothing new to send."
        assert len(webhook.posts) == 3


def test_the_notice_of_each_kind_has_the_figure_of_its_report(company: Company, capsys: Captured) -> None:
    """No team, baseline, commitment or served model: in July, 2 hours at 55.04 that a commitment could cover."""
    company.config.write_text(
        company.config.read_text().replace(
            "[notify.slack]",
            '[notify]\nabout = ["report"]\nreports = ["showback", "savings", "commitments", "serving"]\n[notify.slack]',
        )
    )
    dry = run_command(capsys, "notify", "--dry-run", "--config", str(company.config))
    assert [line.strip() for line in dry.out.splitlines() if "July 2026 is closed: " in line] == [
        "July 2026 is closed: $110.08 effective cost; $110.08 has no team.",
        "July 2026 is closed: no saving is claimed.",
        "July 2026 is closed: commitments covered 0.0% of the use they could cover ($110.08 at list price); none is on "
        "the bill.",
        "July 2026 is closed: no model is served. The serving report covers all delivered months.",
    ]


def test_unknown_figures_of_a_notice_are_not_available() -> None:
    """A bill line without a public price, fees without use, servers without traffic; and figures where they are known.

    Five of six models are named.
    """
    costs = [{"currency": "USD"}]
    whole = {"currency": "USD", "family": "all", "eligible_usd": 100, "coverage_ratio": 0.25, "unpriced_line_count": 0}
    held = {"currency": "USD", "unused_usd": 5, "commitment_usd": 20}
    known = {"families": [whole], "held": [held], "fees_missing": []}
    assert _line("commitments", "2026-07", costs, known, set()) == (
        "July 2026 is closed: commitments covered 25.0% of the use they could cover ($100.00 at list price); $5.00 of "
        "the $20.00 they cost went unused."
    )
    unknown = {
        "families": [{**whole, "unpriced_line_count": 1}],
        "held": [held],
        "fees_missing": [{"currency": "USD", "missing_usd": 7}],
    }
    assert _line("commitments", "2026-07", costs, unknown, set()) == (
        "July 2026 is closed: commitments covered n/a of the use they could cover (n/a at list price); their unused "
        "part is n/a, because the bill does not show what use $7.00 of fees covered."
    )
    both = _line("commitments", "2026-07", [*costs, {"currency": "EUR"}], unknown, set())
    assert "n/a of the use they could cover in USD (n/a at list price)" in both
    served = {"currency": "USD", "model": "llama", "instance_type": "g6e.xlarge", "effective_cost_usd": 12}
    known = {**served, "is_cost_partial": False, "cost_per_million_total_usd": 0.5}
    rows = [known] + [{**served, "is_cost_partial": True, "cost_per_million_total_usd": None}] * 5
    line = _line("serving", "2026-07", costs, {"served": rows}, set())
    assert line.startswith(
        "July 2026 is closed: serving cost $12.00 for llama on g6e.xlarge ($0.500 per million tokens), at least $12.00 "
        "for llama on g6e.xlarge (n/a per million tokens), "
    )
    assert line.endswith("(n/a per million tokens), and 1 more row in the report.")
    one = {"currency": "USD", "avoided_usd": 9, "low_usd": None, "high_usd": None, "cash_usd": None}
    saved = {"saved": [{**one, "adjustment_usd": 2}]}
    assert _line("savings", "2026-07", costs, saved, set()) == (
        "July 2026 is closed: $9.00 of cost was avoided, in cash n/a, without asserted adjustments of $2.00."
    )
    assert _line("savings", "2026-07", costs, saved, {"unreconciled"}) == (
        "July 2026 is closed: no saving may be quoted, because bill and ledger differ."
    )


def test_a_webhook_that_answers_garbage_holds_up_no_mail(
    company: Company, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """July and August are closed, and there is a warning: a mail of each."""
    with raw_server(b"garbage\r\n\r\n") as port, smtp_server() as mailbox:
        monkeypatch.setenv(WEBHOOK_URL, f"http://127.0.0.1:{port}{PATH}")
        company.config.write_text(
            f'{company.config.read_text()}\n[notify.mail]\nhost = "127.0.0.1"\nport = {mailbox.port}\n'
            'security = "none"\nsender = "t@acme.dev"\nrecipients = ["a@acme.dev"]\n'
        )
        result = run_command(capsys, "notify", "--config", str(company.config))
        assert len(mailbox.mails) == 3
        # The report of all months goes with the mail of the first.
        assert [len([*mail.iter_attachments()]) for mail in mailbox.mails] == [1, 0, 0]
    assert result.code == 3
    assert result.error.startswith("Slack's webhook did not respond (BadStatusLine), 3 times;")
    assert "q7Xn" not in result.error + result.out


def test_each_channel_that_fails_is_reported(
    company: Company, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.notify.channels._PAUSE", 0)
    monkeypatch.setenv(WEBHOOK_URL, f"http://127.0.0.1:{free_port()}{PATH}")
    company.config.write_text(
        f'{company.config.read_text()}\n[notify.mail]\nhost = "127.0.0.1"\nport = {free_port()}\n'
        'security = "none"\nsender = "t@acme.dev"\nrecipients = ["a@acme.dev"]\n'
    )
    result = run_command(capsys, "notify", "--config", str(company.config))
    assert result.code == 3 and result.error.startswith("Slack's webhook did not respond")
    assert "did not accept the mail (ConnectionRefusedError), 3 times;" in result.out


def test_what_another_process_is_sending_was_not_sent_before(
    company: Company, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two months are closed, one check warns; a claim of this minute is that of a process that is still sending."""
    record = Record(open_store(load_settings(company.config).warehouse.location), "slack")
    for month in ("2026-07", "2026-08"):
        assert record.claim([News(f"report/training_cost/{month}", "report", "")])
    check = "check/marts/mart_commitment_recommendation/usage_without_a_known_rate/None/1"
    assert record.claim([News(check, "check", "")])
    with webhook_server(PATH) as webhook:
        monkeypatch.setenv(WEBHOOK_URL, webhook.url)
        result = run_command(capsys, "notify", "--config", str(company.config))
        assert webhook.posts == []
    assert " ".join(result.out.split()) == (
        "Another process is sending the rest; what it cannot deliver is sent the next time."
    )


@pytest.mark.parametrize(
    ("section", "environment", "message"),
    [
        ("", {}, "No notification channel is configured; add [notify.slack] or [notify.mail] (docs/notifications.md)."),
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
            "{config}: key 'notify.mail.recipients.0': write a mail address such as finops@acme.dev.",
        ),
        ('[notify]\nabout = ["all"]', {}, "{config}: key 'notify.about.0': write 'report', 'check', "),
    ],
)
def test_what_is_configured_wrongly_is_one_sentence_without_a_secret(
    built_company: Company, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch,
    section: str, environment: dict[str, str], message: str,
) -> None:  # fmt: skip
    company = built_company.copy(tmp_path)
    company.config.write_text(f"{company.config.read_text()}\n{section}\n")
    for name, value in environment.items():
        monkeypatch.setenv(f"TRAINLEDGER_NOTIFY__{name}", value)
    refused = run_command(capsys, "notify", "--config", str(company.config))
    assert refused.code == 2
    assert refused.error.startswith(message.format(config=company.config))
    assert "q7Xn" not in refused.error + refused.out


def test_what_another_process_is_sending_is_left_to_it_and_taken_over_once_it_was_killed(tmp_path: Path) -> None:
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
    assert record.state(NEWS) == "sent" and not record.claim([NEWS])


def test_settings_show_no_secret(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL", f"https://hooks.slack.com{PATH}")
    settings = load_settings(company.config)
    assert "q7Xn" not in f"{settings!r} {settings} {settings.model_dump_json()}"
    with pytest.raises(UsageError, match="is a secret"):
        company.config.write_text(company.config.read_text() + f'webhook_url = "https://hooks.slack.com{PATH}"\n')
        load_settings(company.config)
