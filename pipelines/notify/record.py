"""What was told where: a small file for each piece of news and channel in the warehouse, so that none is told twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from pipelines.base.parse import parse_json
from pipelines.notify.news import News
from pipelines.warehouse.storage import Store

State = Literal["open", "claimed", "told"]
# Whoever claimed it and is not done after so long was killed.
_STALE = timedelta(minutes=15)


class Record:
    """The news of one channel: open, claimed by whoever is telling it, or told."""

    def __init__(self, store: Store, channel: str):
        self._store = store
        self._channel = channel

    def state(self, news: News) -> State:
        """Whether it is still to be told; `claimed` is what another process is telling."""
        place = self._place(news)
        return self._noted(place) if self._store.exists(place) else "open"

    def claim(self, news: Sequence[News]) -> bool:
        """Take all of it to be told now; False where somebody else has some of it."""
        taken: list[News] = []
        for one in news:
            place = self._place(one)
            if not self._store.write_new(place, _note(one, "claimed")):
                if self._noted(place) != "open":
                    self.release(taken)
                    return False
                self._store.write(place, _note(one, "claimed"))
            taken.append(one)
        return True

    def done(self, news: Sequence[News]) -> None:
        """It was told."""
        for one in news:
            self._store.write(self._place(one), _note(one, "told"))

    def release(self, news: Sequence[News]) -> None:
        """It could not be told, and stays open."""
        for one in news:
            self._store.delete(self._place(one))

    def _noted(self, place: str) -> State:
        try:
            note = parse_json(self._store.read(place))
            if note["state"] != "claimed":
                return "told"
            return "open" if datetime.fromisoformat(note["at"]) < datetime.now(UTC) - _STALE else "claimed"
        except (ValueError, KeyError, TypeError):
            # Cut short by a crash while it was written.
            return "open"

    def _place(self, news: News) -> str:
        return f"notices/{self._channel}/{hashlib.sha256(news.key.encode()).hexdigest()[:32]}.json"


def _note(news: News, state: State) -> bytes:
    return json.dumps({"key": news.key, "state": state, "at": datetime.now(UTC).isoformat()}, sort_keys=True).encode()
