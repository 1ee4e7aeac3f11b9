"""Sends new notifications to every channel, each once; the command and the sensor call this."""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from pipelines.base.errors import TrainledgerError, UsageError
from pipelines.base.parse import parse_json
from pipelines.base.resources import monthly_reports
from pipelines.config.notify import Notify
from pipelines.config.settings import Settings
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.notify.channels import message_of, post, send
from pipelines.notify.news import News, Notice, news_of, notices_of
from pipelines.warehouse.publication import Publication
from pipelines.warehouse.storage import Store

State = Literal["open", "claimed", "sent"]
# A claim older than this belongs to a process that was killed.
_STALE = timedelta(minutes=15)


class Sent(NamedTuple):
    """How many messages were sent, and whether another process is sending more right now."""

    count: int
    is_elsewhere: bool

    def __str__(self) -> str:
        if self.count:
            return f"Sent {self.count} message{'' if self.count == 1 else 's'}."
        if self.is_elsewhere:
            return "Another process is sending the rest; what it cannot deliver is sent the next time."
        return "Nothing new to send."


def send_news(
    settings: Settings, say: Callable[[str], None], failures: Sequence[News] = (), *, dry_run: bool = False
) -> Sent:
    """Send the news of the newest publication and `failures` that a channel has not received yet.

    Prints each message by `say`; with `dry_run` nothing is sent or recorded. If a channel fails, the others still
    receive theirs; then its error is raised and its news stay open. Of several errors the others are printed.
    """
    if not settings.notify.channels:
        raise UsageError(
            "No notification channel is configured; add [notify.slack] or [notify.mail] (docs/notifications.md)."
        )
    notify, warehouse = settings.notify, Warehouse(settings)
    # A first build that fails is reported too.
    published = published_of(warehouse) if warehouse.lake.publications.newest() else None
    # The error of a build may quote its source; marts have pseudonyms already.
    spelled = warehouse.pseudonyms.text
    failed_builds = [replace(one, line=spelled(one.line)) for one in failures if "failure" in notify.about]
    count, is_elsewhere, failed = 0, False, []
    for channel in notify.channels:
        record = Record(warehouse.store, channel)
        try:
            teams = settings.teams_of(getattr(notify, channel).reader)
            news = failed_builds if teams is None else []
            if published:
                with open_marts(warehouse, published, teams) as marts:
                    news = [*news_of(published, marts, notify, teams), *news]
            states = [(one, record.state(one)) for one in news]
            is_elsewhere |= any(state == "claimed" for _, state in states)
            attached: set[str] = set()
            for notice in notices_of(one for one, state in states if state == "open"):
                files = _files(warehouse, published, notice, attached) if published and channel == "mail" else {}
                if not dry_run and not _sent(notify, channel, notice, files, record, say):
                    is_elsewhere = True
                    continue
                count += 1
                attached |= {*files}
                added = "".join(f" with {name} ({len(content) // 1024:,} KiB)" for name, content in files.items())
                say(f"{'Would send to' if dry_run else 'Sent to'} {channel}{added}: {notice.subject}")
                for one in notice.news:
                    say(f"    {one.line}")
        except Exception as error:
            failed.append(error)
    if failed:
        # Each channel has a fix of its own.
        for error in failed[1:]:
            say(str(error) if isinstance(error, TrainledgerError) else f"Unexpected {type(error).__name__}.")
        raise failed[0]
    return Sent(count, is_elsewhere)


class Record:
    """The news of one channel: open, claimed by the process that sends it, or sent."""

    def __init__(self, store: Store, channel: str):
        self._store = store
        self._channel = channel

    def state(self, news: News) -> State:
        """Whether it is still to be sent; `claimed`: another process is sending it."""
        path = self._path(news)
        return self._state_at(path) if self._store.exists(path) else "open"

    def claim(self, news: Sequence[News]) -> bool:
        """Claim all of it; False where another process has claimed or sent some of it."""
        taken: list[News] = []
        for one in news:
            path = self._path(one)
            if not self._store.write_new(path, _note(one, "claimed")):
                if self._state_at(path) != "open":
                    self.release(taken)
                    return False
                self._store.write(path, _note(one, "claimed"))
            taken.append(one)
        return True

    def done(self, news: Sequence[News]) -> None:
        for one in news:
            self._store.write(self._path(one), _note(one, "sent"))

    def release(self, news: Sequence[News]) -> None:
        """Give up the claim, so that it stays open."""
        for one in news:
            self._store.delete(self._path(one))

    def _state_at(self, path: str) -> State:
        try:
            note = parse_json(self._store.read(path))
            if note["state"] != "claimed":
                return "sent"
            return "open" if datetime.fromisoformat(note["at"]) < datetime.now(UTC) - _STALE else "claimed"
        except (ValueError, KeyError, TypeError):
            # Cut short by a crash while it was written.
            return "open"

    def _path(self, news: News) -> str:
        return f"notices/{self._channel}/{hashlib.sha256(news.key.encode()).hexdigest()[:32]}.json"


def _sent(
    notify: Notify,
    channel: str,
    notice: Notice,
    files: Mapping[str, bytes],
    record: Record,
    say: Callable[[str], None],
) -> bool:
    """Send a message; False where another process is sending it."""
    if not record.claim(notice.news):
        return False
    refused: list[str] = []
    try:
        if channel == "slack" and notify.slack:
            post(notify.slack, notice.subject, notice.text)
        elif notify.mail:
            refused = send(notify.mail, message_of(notify.mail, notice, datetime.now(UTC), files))
    except BaseException:
        record.release(notice.news)
        raise
    record.done(notice.news)
    for address in refused:
        say(f"The mail server refuses {address}, who did not get it; check `recipients` under [notify.mail].")
    return True


def _files(warehouse: Warehouse, published: Publication, notice: Notice, attached: Collection[str]) -> dict[str, bytes]:
    """The attachments of a mail, by file name; without those that another mail has: two months may share a report."""
    reports = [one.report for one in notice.news if one.report]
    if not reports:
        return {}
    # Few messages have an attachment, and the libraries for charts are slow to import.
    from pipelines.present.pdf import paper
    from pipelines.present.render import report_page

    files = {}
    for kind, month in reports:
        covers = month if kind in monthly_reports() else f"all-months-to-{published.billing_months[-1]}"
        if (name := f"trainledger-{kind}-{covers}.pdf") in attached:
            continue
        with open_marts(warehouse, published) as marts:
            page = report_page(marts.query, published, kind, month)
        files[name] = paper(page, kind, published)
    return files


def _note(news: News, state: State) -> bytes:
    return json.dumps({"key": news.key, "state": state, "at": datetime.now(UTC).isoformat()}, sort_keys=True).encode()
