"""Where a page leads: addresses of the server, or names of files where the pages are written to a folder."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

# The pages of the menu, in its order, and what they are called.
PAGES = {
    "overview": "Overview",
    "runs": "Runs",
    "sides": "Side by side",
    "commitments": "Commitments",
    "ledger": "Ledger",
    "bill": "Bill and data health",
    "dictionary": "Dictionary",
    "lineage": "Lineage",
}


@dataclass(frozen=True)
class Links:
    """Addresses on the server; each keeps the date that the reader looks back to."""

    as_of: str = ""
    is_static = False

    def page(self, name: str, fragment: str = "", **asked: Any) -> str:
        """The address of a page, about what is asked of it."""
        words = {key: value for key, value in {**asked, "as_of": self.as_of}.items() if value not in (None, "")}
        path = "/" if name == "overview" else f"/{name}"
        return path + (f"?{urlencode(words)}" if words else "") + (f"#{fragment}" if fragment else "")

    def file(self, name: str) -> str:
        """The address of a style sheet or script."""
        return f"/{name}"

    def run(self, run_id: str) -> str | None:
        """The address of a run's page."""
        return self.page("run", id=run_id)

    def side(self, number: int) -> str:
        """The address of a comparison, by its place among all."""
        return self.page("sides", "pair-heading", pair=number)

    def month(self, page: str, month: str) -> str:
        """The address of a page about a month."""
        return self.page(page, month=month)

    def explain(self, kind: str, word: str = "", **options: Any) -> str | None:
        """The address of what a figure rests on."""
        return self.page("explain", kind=kind, word=word, **options)


@dataclass(frozen=True)
class FileLinks(Links):
    """Names of files in one folder, which link to each other wherever the folder lies."""

    months: Mapping[str, str] = field(default_factory=dict)
    """By page: the month that has the page's own file, such as `runs.html`; each other one has one beside it."""
    runs: frozenset[str] = frozenset()
    """Those that have a page."""
    is_static = True

    def page(self, name: str, fragment: str = "", **asked: Any) -> str:
        month = str(asked.get("month") or "")
        if month and self.months.get(name) != month:
            name = f"{name}-{month}"
        if asked.get("page", 1) != 1:
            name = f"{name}-{asked['page']}"
        return f"{'index' if name == 'overview' else name}.html" + (f"#{fragment}" if fragment else "")

    def file(self, name: str) -> str:
        return name

    def run(self, run_id: str) -> str | None:
        # A run may be called anything, a file may not.
        if run_id not in self.runs:
            return None
        return f"run-{hashlib.sha256(run_id.encode()).hexdigest()[:16]}.html"

    def side(self, number: int) -> str:
        return "sides.html" if number == 1 else f"sides-{number}.html"

    def explain(self, kind: str, word: str = "", **options: Any) -> str | None:
        return None


def command(kind: str, word: str = "", **options: Any) -> str:
    """What to type for the explanation of a figure."""
    first = [word] if kind == "name" else [kind, *([word] if word else [])]
    rest = [part for name, value in options.items() if value not in (None, "") for part in (f"--{name}", str(value))]
    return shlex.join(["trainledger", "explain", *first, *rest])
