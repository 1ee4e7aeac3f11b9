"""Tells what was not told yet, to every channel; the command and the sensor call this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from pipelines.base.errors import UsageError
from pipelines.config.settings import Settings
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.notify.mail import message_of, send
from pipelines.notify.news import News, Notice, news_of, notices_of
from pipelines.notify.record import Record
from pipelines.notify.slack import post


class Told(NamedTuple):
    """How many messages went out, and whether another process is telling more right now."""

    count: int
    is_elsewhere: bool

    def __str__(self) -> str:
        if self.count:
            return f"Told {self.count} messages."
        if self.is_elsewhere:
            return "Another process is telling the rest; what it cannot deliver is told the next time."
        return "Everything was told before."


def tell(
    settings: Settings, say: Callable[[str], None], failures: Sequence[News] = (), *, dry_run: bool = False
) -> Told:
    """Send what the newest publication and `failures` have to tell and each channel did not hear.

    Says each message; with `dry_run` nothing is sent or recorded. Where a channel fails the others are told all the
    same, then its error is raised and what it was to be told stays open.
    """
    if not settings.notify.channels:
        raise UsageError("Nobody is to be told; add [notify.slack] or [notify.mail] (docs/notifications.md).")
    teller = _Teller(settings, dry_run)
    news = [*teller.news(), *(teller.veiled(one) for one in failures if "failure" in settings.notify.about)]
    count, is_elsewhere, failed = 0, False, []
    for channel in settings.notify.channels:
        try:
            states = [(one, teller.records[channel].state(one)) for one in news]
            is_elsewhere |= any(state == "claimed" for _, state in states)
            for notice in notices_of(one for one, state in states if state == "open"):
                if teller.tell(channel, notice, say):
                    count += 1
                else:
                    is_elsewhere = True
        except Exception as error:
            failed.append(error)
    if failed:
        raise failed[0]
    return Told(count, is_elsewhere)


class _Teller:
    def __init__(self, settings: Settings, dry_run: bool):
        self._notify = settings.notify
        self._dry_run = dry_run
        self._warehouse = Warehouse(settings)
        # A first build that fails is told too.
        self._published = published_of(self._warehouse) if self._warehouse.lake.current() else None
        self.records = {name: Record(self._warehouse.store, name) for name in settings.notify.channels}

    def news(self) -> list[News]:
        if self._published is None:
            return []
        with open_marts(self._warehouse, self._published) as marts:
            return news_of(self._published, marts, self._notify)

    def veiled(self, news: News) -> News:
        """What a build failed of may quote its source; marts have pseudonyms already."""
        return replace(news, line=self._warehouse.pseudonyms.text(news.line))

    def tell(self, channel: str, notice: Notice, say: Callable[[str], None]) -> bool:
        """Whether it was told, or would be; False where another process is telling it."""
        files = self._files(notice) if channel == "mail" else {}
        attached = "".join(f" with {name} ({len(content) // 1024:,} KiB)" for name, content in files.items())
        if not self._dry_run:
            record = self.records[channel]
            if not record.claim(notice.news):
                return False
            try:
                self._send(channel, notice, files)
            except BaseException:
                record.release(notice.news)
                raise
            record.done(notice.news)
        say(f"{'Would tell' if self._dry_run else 'Told'} {channel}{attached}: {notice.subject}")
        for one in notice.news:
            say(f"    {one.line}")
        return True

    def _send(self, channel: str, notice: Notice, files: dict[str, bytes]) -> None:
        if channel == "slack" and self._notify.slack:
            post(self._notify.slack, notice.subject, notice.text)
        elif self._notify.mail:
            send(self._notify.mail, message_of(self._notify.mail, notice, datetime.now(UTC), files))

    def _files(self, notice: Notice) -> dict[str, bytes]:
        """The pages that go with a mail, by file name."""
        return {
            f"trainledger-{kind}-{month}.pdf": self._page(kind, month)
            for kind, month in (one.report for one in notice.news if one.report)
        }

    def _page(self, kind: str, month: str) -> bytes:
        # Few messages have a page, and the libraries for charts are slow to import.
        from pipelines.present.pdf import render_pdf
        from pipelines.present.render import facts_of

        published = published_of(self._warehouse) if self._published is None else self._published
        with open_marts(self._warehouse, published) as marts:
            (page,) = render_pdf(kind, marts.query, facts_of(published, month))
            return page
