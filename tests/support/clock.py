"""A clock that a test sets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest


class Clock(datetime):
    """`now` is `moment`, wherever `stop_clock` put it."""

    moment: datetime

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return cls.moment


def stop_clock(monkeypatch: pytest.MonkeyPatch, at: datetime, *modules: str) -> type[Clock]:
    """Have these modules read a clock that stands at `at`, until the test sets its `moment`."""
    monkeypatch.setattr(Clock, "moment", at, raising=False)
    for module in modules:
        monkeypatch.setattr(f"{module}.datetime", Clock)
    return Clock
