"""The reports of a pack: every kind there is, as its page and on paper, of one month."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pipelines.engine import Engine
from pipelines.evidence.archive import Pack
from pipelines.evidence.compare import Difference
from pipelines.publication import Publication
from pipelines.reports.page import report_page
from pipelines.reports.pdf import pdf_beside
from pipelines.reports.render import facts_of, known_reports

REPORTS = "reports"
# A chart is drawn with the fonts of the machine it is drawn on.
_CHART = re.compile(r"<svg .*?</svg>", re.DOTALL)


def report_members(engine: Engine, published: Publication, month: str | None) -> dict[str, Any]:
    """Each report as HTML and as PDF, by member; monthly ones about `month` or the newest delivered."""
    members = {}
    for kind in known_reports():
        page = report_page(engine, published, kind, month)
        members[f"{REPORTS}/{kind}.html"] = page.encode()
        members[f"{REPORTS}/{kind}.pdf"] = _paper(engine, published, kind, month, page)
    return members


def other_reports(engine: Engine, published: Publication, pack: Pack) -> Iterator[Difference]:
    """Where a report in a pack is not what the rebuilt tables of `engine` give, or the paper not what the page says."""
    month = pack.about.get("month")
    for kind in known_reports():
        member = f"{REPORTS}/{kind}"
        packed = pack.read(f"{member}.html").decode()
        page = report_page(engine, published, kind, month)
        if _CHART.sub("", page) != _CHART.sub("", packed):
            yield Difference(f"{member}.html", "", *_first_other(packed, page))
        if _paper(engine, published, kind, month, packed) != pack.read(f"{member}.pdf"):
            yield Difference(f"{member}.pdf", "", "", "another paper", "that of the page and the rebuilt tables")


def _paper(engine: Engine, published: Publication, kind: str, month: str | None, page: str) -> bytes:
    return b"".join(pdf_beside(kind, lambda: page, engine.query, facts_of(published, month)))


def _first_other(packed: str, page: str) -> tuple[str, str, str]:
    """The first line that differs, as text: where it stands, and both readings."""
    ours, theirs = (_CHART.sub("", text).splitlines() for text in (packed, page))
    pairs = enumerate(zip(ours, theirs, strict=False), start=1)
    found = next(((number, a, b) for number, (a, b) in pairs if a != b), None)
    if found is None:
        return "", f"{len(ours)} lines", f"{len(theirs)} lines"
    number, a, b = found
    return f"line {number}", _said(a), _said(b)


def _said(line: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", line).split())[:120]
