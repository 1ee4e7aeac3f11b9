"""Links between pages: addresses of the server, or file names where the pages are written to a folder."""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

# The pages of the menu in its order, each with its title.
PAGES = {
    "overview": "Overview",
    "runs": "Runs",
    "sides": "Comparisons",
    "serving": "Serving",
    "commitments": "Commitments",
    "teams": "Teams",
    "ledger": "Ledger",
    "bill": "Bill and data health",
    "dictionary": "Dictionary",
    "lineage": "Lineage",
}


@dataclass(frozen=True)
class Links:
    """Addresses on the server; each keeps the date of `as_of`. A reader of chosen teams sees no bill lines."""

    as_of: str = ""
    has_lines: bool = True
    is_static = False

    def page(self, name: str, fragment: str = "", **parameters: Any) -> str:
        query = {key: value for key, value in {**parameters, "as_of": self.as_of}.items() if value not in (None, "")}
        path = "/" if name == "overview" else f"/{name}"
        return path + (f"?{urlencode(query)}" if query else "") + (f"#{fragment}" if fragment else "")

    def file(self, name: str) -> str:
        return f"/{name}"

    def run(self, run_id: str) -> str | None:
        return self.page("run", id=run_id)

    def side(self, number: int) -> str:
        return self.page("sides", "pair-heading", pair=number)

    def rows(self, name: str, request: Mapping[str, str], rows: str) -> str:
        """The address of a table of a page as csv, under the filters of its request."""
        return self.page("csv", **{**request, "from": name, "list": rows})

    def table(self, name: str) -> str:
        """The address of a whole table as csv."""
        return self.page("csv", table=name)

    def explain(self, kind: str, word: str = "", **options: Any) -> str | None:
        """The address of the explanation of a figure, or of a name."""
        return self.page("explain", kind=kind, word=word, **options) if self.has_lines or kind == "name" else None


@dataclass(frozen=True)
class FileLinks(Links):
    """Names of files in one folder, which link to each other wherever the folder lies."""

    months: Mapping[str, str] = field(default_factory=dict)
    """By page: the month that has the page's own file, such as `runs.html`; the others have files of their own."""
    runs: frozenset[str] = frozenset()
    """Those that have a page."""
    is_static = True

    def page(self, name: str, fragment: str = "", **parameters: Any) -> str:
        month = str(parameters.get("month") or "")
        if month and self.months.get(name) != month:
            name = f"{name}-{month}"
        if parameters.get("page", 1) != 1:
            name = f"{name}-{parameters['page']}"
        return f"{'index' if name == 'overview' else name}.html" + (f"#{fragment}" if fragment else "")

    def file(self, name: str) -> str:
        return name

    def run(self, run_id: str) -> str | None:
        # A run may have any name, a file may not.
        if run_id not in self.runs:
            return None
        return f"run-{hashlib.sha256(run_id.encode()).hexdigest()[:16]}.html"

    def side(self, number: int) -> str:
        return "sides.html" if number == 1 else f"sides-{number}.html"

    def rows(self, name: str, request: Mapping[str, str], rows: str) -> str:
        return ""

    def table(self, name: str) -> str:
        return ""

    def explain(self, kind: str, word: str = "", **options: Any) -> str | None:
        return None


def command(kind: str, word: str = "", **options: Any) -> str:
    """The command that explains a figure."""
    words = [word] if word else []
    chosen = [part for name, value in options.items() if value not in (None, "") for part in (f"--{name}", str(value))]
    # A word that begins with a dash would be an option.
    about = [*chosen, "--", word] if word.startswith("-") else [*words, *chosen]
    return shlex.join(["trainledger", "explain", *([] if kind == "name" else [kind]), *about])
