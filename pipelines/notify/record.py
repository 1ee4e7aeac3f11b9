"""Which news was sent to which channel: one small file each in the warehouse, so that none is sent twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from pipelines.base.parse import parse_json
from pipelines.notify.news import News
from pipelines.warehouse.storage import Store

State = Literal["open", "claimed", "sent"]
# A claim older than this belongs to a process that was killed.
_STALE = timedelta(minutes=15)


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
        """Record that it was sent."""
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


def _note(news: News, state: State) -> bytes:
    return json.dumps({"key": news.key, "state": state, "at": datetime.now(UTC).isoformat()}, sort_keys=True).encode()
