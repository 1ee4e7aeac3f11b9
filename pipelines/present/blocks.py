"""An HTML report taken apart for paper: headings, paragraphs, tables and drawings, each with the text the page has.

The printed report is made from the page itself, so that no figure is formatted twice. What is handed on is text and
never markup: whatever a run is called is printed as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from pipelines.present.charts import PALETTE

Block = dict[str, Any]
Run = list[str]

_SVG = re.compile(r"<svg .*?</svg>", re.DOTALL)
_VOID = {"meta", "br", "link", "img", "hr", "input"}
_ALONE = {"h1", "h2", "h3", "p", "li", "dt", "dd", "figcaption"}
# How text within a paragraph is set.
_STYLES = {"strong": "strong", "code": "code"}
_CLASSES = ("sub", "note", "stamp", "alarm", "id")
# A break of line, and the room between two parts of a line; neither is in a page's text.
_BREAK, _ROOM = "\v", "\f"
# Words of a cell that still stand in a column as wide as they are.
_SHORT = 24
# Side by side on the page, and on paper too.
_BESIDE = {"answers", "beside"}
# Drawings that only the page needs: those of a phone, and bars whose figure stands above them.
_SKIPPED = {"narrow", "bar"}


@dataclass
class _Node:
    tag: str
    words: frozenset[str]
    within: list[_Node | str] = field(default_factory=list)


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = _Node("", frozenset())
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        node = _Node(tag, frozenset((given.get("class") or "").split()))
        if tag == "drawing":
            node.within.append(given["number"] or "")
        self._open[-1].within.append(node)
        if tag not in _VOID and tag != "drawing":
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID and tag in [node.tag for node in self._open]:
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        self._open[-1].within.append(data)


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page's body, in their order."""
    drawings: list[str] = []

    def kept(found: re.Match[str]) -> str:
        drawings.append(found[0])
        return f'<drawing number="{len(drawings) - 1}"/>'

    tree = _Tree()
    tree.feed(_SVG.sub(kept, page[page.index("<body>") : page.index("</body>")]))
    return list(_blocks(tree.root, drawings))


def _blocks(node: _Node, drawings: list[str]) -> Iterator[Block]:
    for part in node.within:
        if isinstance(part, str) or part.words & _SKIPPED:
            continue
        if part.tag == "drawing":
            yield {"kind": "drawing", "svg": _for_paper(drawings[int(str(part.within[0]))])}
        elif part.words & _BESIDE:
            children = [child for child in part.within if isinstance(child, _Node)]
            yield {"kind": "beside", "children": [list(_blocks(child, drawings)) for child in children]}
        elif part.tag in _ALONE:
            runs = _settled(_runs(part, ""))
            if runs:
                look = next((word for word in (*sorted(part.words), part.tag)), "p")
                yield {"kind": part.tag if part.tag.startswith("h") else "p", "look": look, "runs": runs}
        elif part.tag == "table":
            yield _table(part)
        else:
            yield from _blocks(part, drawings)


def _table(node: _Node) -> Block:
    rows = []
    for row in _each(node, "tr"):
        cells = [
            {
                "runs": _settled(_runs(cell, "strong" if "strong" in cell.words else "")),
                "number": "num" in cell.words,
            }
            for cell in row.within
            if isinstance(cell, _Node) and cell.tag in ("th", "td")
        ]
        rows.append({"cells": cells, "lost": "lost" in row.words})
    heads = sum(1 for head in _each(node, "thead") for _ in _each(head, "tr"))
    columns = max(len(row["cells"]) for row in rows)
    told = [[row["cells"][at]["runs"] for row in rows[heads:] if at < len(row["cells"])] for at in range(columns)]
    # Columns of words share the room; those of figures take what they need.
    wide = [at == 0 or max(map(_longest, cells), default=0) > _SHORT for at, cells in enumerate(told)]
    return {"kind": "table", "columns": columns, "wide": wide, "heads": heads, "rows": rows}


def _longest(runs: list[Run]) -> int:
    """Characters of the longest line of a cell."""
    return max(map(len, "".join(text for text, _ in runs).split(_BREAK)), default=0)


def _each(node: _Node, tag: str) -> Iterator[_Node]:
    for part in node.within:
        if isinstance(part, _Node):
            if part.tag == tag:
                yield part
            else:
                yield from _each(part, tag)


def _runs(node: _Node, style: str) -> Iterator[Run]:
    for part in node.within:
        if isinstance(part, str):
            yield [part, style]
        elif part.tag == "br":
            yield [_BREAK, ""]
        elif not part.words & _SKIPPED:
            own = next((word for word in _CLASSES if word in part.words), _STYLES.get(part.tag, style))
            yield from _runs(part, own)
            if part.tag == "span" and style == "" and own == "":
                yield [_ROOM, ""]


def _settled(runs: Iterator[Run]) -> list[Run]:
    """White space as a browser shows it: one space for many, none at an end."""
    told: list[Run] = []
    for text, style in runs:
        if text not in (_BREAK, _ROOM):
            text = re.sub(r"[ \t\r\n\v\f]+", " ", text)
        ends = not told or told[-1][0].endswith((" ", _BREAK, _ROOM))
        text = text.lstrip(" ") if ends else text
        if text:
            told.append([text, style])
    while told and not told[-1][0].strip():
        told.pop()
    if told:
        told[-1][0] = told[-1][0].rstrip()
    return told


def _for_paper(svg: str) -> str:
    """A drawing without the page's variables, in the type of the paper."""
    for name, colour in PALETTE.items():
        svg = svg.replace(f"var(--{name})", colour)
    return re.sub(r'font-family="[^"]*"', 'font-family="Libertinus Serif"', svg)
