"""The sensor notifies once: evaluated as Dagster does, against real servers on loopback."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.lazily import Lazily
from support.ledgers import build_warehouse
from support.mailboxes import Mailbox, Webhook, smtp_server, webhook_server
from support.small_company import Company

from pipelines.base.errors import UnreachableError
from pipelines.config.settings import load_settings

dg, definitions = Lazily("dagster"), Lazily("pipelines.definitions")
jobs, steps = Lazily("pipelines.defs.jobs"), Lazily("pipelines.defs.steps")

# As Slack writes them; the last part is what opens the channel.
TOKEN = "q7Xn2VbLw9RtYcKd"
PATH = f"/services/T0AAAA/B0BBBB/{TOKEN}"
WEBHOOK_URL = "TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL"


@pytest.fixture(scope="module")
def built(published_story: Callable[[str], Path]) -> Path:
    """July: one run far off its history, and two budgets that reached a threshold; its bill is closed."""
    return published_story("an_expensive_run_and_three_budgets")


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with smtp_server() as mailbox:
        yield mailbox


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    monkeypatch.setattr("pipelines.notify.channels._PAUSE", 0)
    monkeypatch.setattr("pipelines.notify.channels._PAUSE", 0)
    with webhook_server(PATH) as webhook:
        monkeypatch.setenv(WEBHOOK_URL, webhook.url)
        yield webhook


@pytest.fixture
def config(built: Path, tmp_path: Path, mailbox: Mailbox, webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The story's warehouse, and whom it notifies."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return with_channels(tmp_path / "trainledger.toml", mailbox, monkeypatch)


def with_channels(config: Path, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch, about: str = "") -> Path:
    config.write_text(
        config.read_text()
        + (f"\n[notify]\nabout = [{about}]\n" if about else "")
        + f'\n[notify.slack]\n[notify.mail]\nhost = "127.0.0.1"\nport = {mailbox.port}\nsecurity = "none"\n'
        + 'sender = "trainledger@acme.dev"\nrecipients = ["finops@acme.dev", "lead@acme.dev"]\n'
    )
    monkeypatch.setenv("TRAINLEDGER_CONFIG", str(config))
    return config


def tick(instance: dg.DagsterInstance | None = None) -> str:
    """One evaluation of the sensor, and what it reports it did."""
    with dg.DagsterInstance.ephemeral() as made, dg.build_sensor_context(instance=instance or made) as context:
        return str(jobs.notify_sensor(None).evaluate_tick(context).skip_message)


def subjects(mailbox: Mailbox) -> list[str]:
    return [str(mail["Subject"]) for mail in mailbox.mails]


def posted(webhook: Webhook) -> list[str]:
    return [json.loads(body)["text"] for _, _, body in webhook.posts]


def test_a_publication_is_sent_once_on_every_channel(config: Path, mailbox: Mailbox, webhook: Webhook) -> None:
    """One closed month, two warnings, one anomaly, two budgets: four messages a channel, and none the next time.

    Figures are the story's: 134.50 and 21.50 of the two teams are 156.00, all of it in runs.
    """
    assert tick() == "Sent 8 messages."
    assert subjects(mailbox) == [
        "trainledger: July 2026 is closed, training cost of all months",
        "trainledger: 2 warnings",
        "trainledger: A cost is far from its history",
        "trainledger: 2 budgets reached a threshold",
    ]
    report, prices, anomaly, budgets = posted(webhook)
    assert (
        "July 2026 is closed: $156.00 effective cost, including $156.00 in runs and $0.00 idle; $156.00 billed."
        " The training cost report covers all delivered months." in report
    )
    # The expensive night's instance costs three times as much as the other lines of its day.
    assert "public prices of a day disagree: 1 row" in prices and "highest price per hour $30.00" in prices
    assert "run nightly-10, 2026-07-14: 30.00 USD per run is 3.0 times the median of its 9 earlier runs" in anomaly
    # 30.00 - 10.00, its median.
    assert "; 20.00 USD of effective cost more than expected." in anomaly
    assert "nlp spent $134.50 of $200.00 for July 2026, effective, 67.3%: past 50.0%." in budgets
    assert "ocr spent $21.50 of $21.50 for July 2026, effective, 100.0%: past 100.0%." in budgets
    assert tick() == "Nothing new to send."
    assert (len(mailbox.mails), len(webhook.posts)) == (4, 4)


def test_the_mail_of_a_report_has_its_page_as_a_pdf(config: Path, mailbox: Mailbox) -> None:
    tick()
    first, *others = mailbox.mails
    (page,) = first.iter_attachments()
    assert (page.get_filename(), page.get_content_type()) == (
        "trainledger-training_cost-all-months-to-2026-07.pdf",
        "application/pdf",
    )
    assert page.get_content().startswith(b"%PDF-")
    assert not any(list(mail.iter_attachments()) for mail in others)
    assert [mail["To"] for mail in mailbox.mails] == ["finops@acme.dev, lead@acme.dev"] * 4
    assert len({mail["Message-ID"] for mail in mailbox.mails}) == 4


def test_a_channel_that_fails_loses_nothing_and_holds_up_no_other(
    config: Path, mailbox: Mailbox, webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    webhook.answers = [500] * 3
    with pytest.raises(UnreachableError) as failed:
        tick()
    assert str(failed.value) == "Slack's webhook returned 500, 3 times; the message is kept for the next time."
    assert (webhook.request_count, len(webhook.posts), len(mailbox.mails)) == (3, 0, 4)
    assert TOKEN not in caplog.text + repr(failed.value)
    assert tick() == "Sent 4 messages."
    assert (len(webhook.posts), len(mailbox.mails)) == (4, 4)


def test_a_busy_server_is_retried(config: Path, mailbox: Mailbox, webhook: Webhook) -> None:
    webhook.answers, mailbox.refusals = [429, 503], ["451 try again later"]
    assert tick() == "Sent 8 messages."
    assert (webhook.request_count, len(mailbox.mails)) == (6, 4)


def test_nothing_is_sent_before_it_is_published_and_nothing_again_by_the_next_publication(
    config: Path, mailbox: Mailbox
) -> None:
    """Of the next publication only what is new: the budget of nlp, halved, is past all it has."""
    tick()
    text = config.read_text()
    config.write_text(text.replace('team = "nlp"\namount_usd = "200"', 'team = "nlp"\namount_usd = "100"'))
    assert tick() == "Nothing new to send."
    build_warehouse(config)
    assert tick() == "Sent 2 messages."
    assert "nlp spent $134.50 of $100.00 for July 2026, effective, 134.5%: past 100.0%" in mailbox.mails[-1].as_string()


@pytest.mark.slow
def test_a_failed_build_is_sent_once_in_the_words_of_its_step(
    built_company: Company, tmp_path: Path, mailbox: Mailbox, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    company = built_company.copy(tmp_path, events=True)
    company.events.rename(tmp_path / "moved")
    with_channels(company.config, mailbox, monkeypatch, about='"failure"')
    with dg.instance_for_test() as instance:
        settings = load_settings(company.config)
        ledger = dg.ResourceDefinition.hardcoded_resource(steps.Ledger(settings))
        job = definitions.assemble(settings, ledger).resolve_job_def("refresh")
        job.execute_in_process(instance=instance, raise_on_error=False)
        assert tick(instance) == "Sent 2 messages."
        assert tick(instance) == "Nothing new to send."
    assert subjects(mailbox) == ["trainledger: A build failed"]
    assert str(company.events) in posted(webhook)[0]


def test_it_is_off_without_a_channel(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINLEDGER_CONFIG", str(built / "trainledger.toml"))
    off = jobs.notify_sensor(load_settings())
    assert off.default_status == dg.DefaultSensorStatus.STOPPED
    assert tick() == "No notification channel is configured."


def test_it_is_on_where_somebody_is(config: Path) -> None:
    on = jobs.notify_sensor(load_settings())
    assert on.default_status == dg.DefaultSensorStatus.RUNNING
