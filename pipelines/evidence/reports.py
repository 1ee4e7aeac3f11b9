"""The reports of a pack: every kind there is, as its page and on paper, of one month."""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from pipelines.base.errors import counted
from pipelines.base.resources import known_reports
from pipelines.engine import Engine
from pipelines.evidence.archive import Pack
from pipelines.evidence.compare import Difference
from pipelines.present.pdf import paper
from pipelines.present.render import report_page
from pipelines.warehouse.publication import Publication

REPORTS = "reports"
# A chart is drawn with the fonts of the machine it is drawn on: where its marks stand, and the ids that are made of
# that, depend on the machine; all text is ours.
_CHART = re.compile(r'<svg role="img" aria-label="[^"]*" [^<>]*\bclass="marks".*?</svg>', re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_MEASURE = re.compile(
    r"""(?<=\s)(?!aria-|[\w-]*opacity)([\w:-]+)="(?:[-+0-9.,eE%\s]|px|(?:translate|rotate|scale|matrix)\([-+0-9.,eE\s]*\))*"|"""
    r"""(?<=\s)(d)="[-+0-9.,\sMmLlHhVvCcSsQqTtAaZzeE]*\""""
)
_ID = re.compile(r"""((?:\sid="|url\(#)c)[0-9a-f]{8}-""")


def report_members(engine: Engine, published: Publication, month: str | None) -> dict[str, Any]:
    """Each report as HTML and as PDF, by member; monthly ones about `month` or the newest delivered."""
    members = {}
    for kind in known_reports():
        page = report_page(engine.query, published, kind, month)
        members[f"{REPORTS}/{kind}.html"] = page.encode()
        members[f"{REPORTS}/{kind}.pdf"] = paper(page, kind, published)
    return members


def other_reports(engine: Engine, published: Publication, pack: Pack, redrawn: list[str]) -> Iterator[Difference]:
    """Where a report in a pack is not what the rebuilt tables of `engine` give, or the PDF differs from the page.

    Adds to `redrawn` the reports of which only the drawing of a chart differs.
    """
    for kind in known_reports():
        member = f"{REPORTS}/{kind}"
        try:
            packed = pack.read(f"{member}.html").decode()
        except UnicodeDecodeError as error:
            raise pack.error(f"{member}.html is not UTF-8 text (byte {error.start})") from None
        page = report_page(engine.query, published, kind, pack.about.get("month"))
        if unmeasured(page) != unmeasured(packed):
            yield Difference(f"{member}.html", "", *_first_other(packed, page))
        elif page != packed:
            redrawn.append(kind)
        try:
            printed = paper(packed, kind, published)
        except ValueError:
            printed = b""
        if printed != pack.read(f"{member}.pdf"):
            yield Difference(f"{member}.pdf", "", "", "another paper", "that of the page and the rebuilt tables")


def unmeasured(page: str) -> str:
    """A page without what the fonts of a machine decide: in its charts the numbers of attributes, paths and ids."""
    return _CHART.sub(
        lambda chart: _TAG.sub(lambda tag: _ID.sub(r"\1-", _MEASURE.sub(r"\1\2", tag[0])), chart[0]), page
    )


def _first_other(packed: str, page: str) -> tuple[str, str, str]:
    """The first line that differs, as text: where it stands, and both readings."""
    ours, theirs = (unmeasured(text).splitlines() for text in (packed, page))
    pairs = enumerate(zip(ours, theirs, strict=False), start=1)
    found = next(((number, a, b) for number, (a, b) in pairs if a != b), None)
    if found is None:
        return "", counted(len(ours), "line"), counted(len(theirs), "line")
    number, a, b = found
    # A line may be long, and differ in what it does not show.
    if (texts := [" ".join(_TAG.sub(" ", line).split()) for line in (a, b)])[0] == texts[1]:
        texts = [a, b]
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False))))
    start = max(0, same - 40) if same > 80 else 0
    return f"line {number}", texts[0][start : start + 120], texts[1][start : start + 120]
