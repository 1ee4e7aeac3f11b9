"""What a figure rests on: the answer of `trainledger explain`, on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from pipelines.base.errors import UsageError
from pipelines.dashboard import query as words
from pipelines.dashboard.query import NotFoundError
from pipelines.dashboard.reader import Volume
from pipelines.explain.lines import behind
from pipelines.explain.names import look_up
from pipelines.explain.query import Asked, ask_day, ask_invoice, ask_month, ask_run, chosen
from pipelines.explain.tables import agreed, show

_KINDS = ("run", "day", "month", "invoice", "name")
_OPTIONS = ("bucket", "account", "payer", "category", "service", "family", "currency")
# Of each level; the others are summed in one row.
_ROWS = 50
# The bill is read by one reader at a time: it takes seconds, and the memory of the whole machine.
_TURN = Lock()


class Page:
    """Paper that is a page: its parts in their order."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []

    def say(self, text: str, *, is_detail: bool = True) -> None:
        """A sentence."""
        self.parts.append({"kind": "sentence", "text": text, "is_detail": is_detail})

    def table(
        self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]], numbers: int, notes: Sequence[str] = ()
    ) -> None:
        """Rows under a head."""
        noted = [*notes, *[""] * (len(rows) - len(notes))]
        told = [{"cells": row, "note": note} for row, note in zip(rows, noted, strict=True)]
        self.parts.append({"kind": "table", "title": title, "head": head, "rows": told, "names": len(head) - numbers})

    def list(self, title: str, entries: Sequence[str]) -> None:
        """Sentences under a title."""
        self.parts.append({"kind": "list", "title": title, "entries": entries})


def explain_page(volume: Volume, asked: Mapping[str, str]) -> dict[str, Any]:
    """What is asked about, told. NotFoundError for what is not there."""
    kind = words.choice(asked, "kind", _KINDS)
    word = words.exact(asked, "word")
    options = {name: words.exact(asked, name) for name in _OPTIONS}
    month = words.exact(asked, "month")
    about = {"kind": kind, "word": word, "options": {**options, "month": month}, "named": None, "parts": []}
    if not kind:
        return about
    if not word and kind != "invoice":
        raise UsageError(f"Name the {kind} to be explained, in the field below or in the address.")
    if kind == "name":
        return {**about, "named": _found(lambda: look_up(word))}
    key = ("explain", kind, word, month, *options.values())
    parts, agreement, difference = volume.keep(key, lambda: _told(volume, kind, word, month, options))
    return {**about, "parts": parts, "agreement": agreement, "difference": difference}


def _told(volume: Volume, kind: str, word: str, month: str, options: Mapping[str, str]) -> tuple[Any, str, str]:
    wanted = _found(lambda: _asked(volume, kind, word, month, {name: value or None for name, value in options.items()}))
    page = Page()
    with _TURN, behind(volume.warehouse, volume.published, wanted) as explanation:
        show(explanation, _ROWS, page)
        return page.parts, agreed(explanation), explanation.difference()


def _asked(volume: Volume, kind: str, word: str, month: str, options: Mapping[str, str | None]) -> Asked:
    with volume.turn:
        if kind == "run":
            return ask_run(volume.engine, word)
        if kind == "invoice":
            # An invoice that is not closed yet has no name.
            invoice = None if word == "" and month else word
            return ask_invoice(volume.engine, invoice, month or None, options["payer"], options["currency"])
        ask = ask_day if kind == "day" else ask_month
        return ask(volume.engine, word, chosen(**options))


def _found(look: Any) -> Any:
    try:
        return look()
    except UsageError as error:
        raise NotFoundError(str(error)) from None
