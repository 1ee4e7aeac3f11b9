"""An explanation on a terminal: text that fits its width."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.base.console import Console, folded
from pipelines.explain.layout import grid


class Terminal:
    """An explanation on a console."""

    def __init__(self, console: Console):
        self._console = console

    def say(self, text: str, *, is_detail: bool = True) -> None:
        """A sentence, a detail of it indented."""
        self._console.paragraph(text, indent="  " if is_detail else "")

    def table(
        self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]], numbers: int, notes: Sequence[str] = ()
    ) -> None:
        """Rows aligned under their head, the note of a row below it."""
        self._lines(["", title])
        header, *lines = grid(head, rows, numbers, self._console.width)
        self._lines([header])
        for at, text in enumerate(lines):
            self._lines([text, *(folded(notes[at], self._console.width) if at < len(notes) else [])])

    def list(self, title: str, entries: Sequence[str]) -> None:
        """Sentences under a title."""
        self._lines(["", title])
        for entry in entries:
            self.say(entry)

    def _lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._console.say(line)
