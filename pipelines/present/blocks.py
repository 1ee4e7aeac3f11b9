"""The blocks of an HTML report for its PDF: headings, paragraphs, tables and charts with the text of the page.

The PDF is made from the page, so that no figure is formatted twice. Blocks contain text and never markup.
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

_SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_VOID = {"meta", "br", "link", "img", "hr", "input"}
_ALONE = {"h1", "h2", "h3", "p", "li", "dt", "dd", "figcaption"}
# The style of text within a paragraph.
_STYLES = {"strong": "strong", "code": "code"}
_CLASSES = ("sub", "note", "stamp", "alarm", "id")
# A line break, and the space between two parts of a line; neither occurs in the text of a page.
_BREAK, _ROOM = "\v", "\f"
# Longest text of a cell in a column of its own width.
_SHORT = 24
# Characters of the narrowest and of the widest column of text, for its share of the width.
_NARROW, _WIDE = 8, 48
# A longer word, such as an id, may break after its separators.
_LONG_WORD = re.compile(r"\S{25,}")
# Columns on the page and in the PDF.
_COLUMNS = {"answers", "columns"}
# Drawings that the PDF does not need: those for phones.
_SKIPPED = {"narrow"}


@dataclass
class _Node:
    tag: str
    classes: frozenset[str]
    span: int = 1
    within: list[_Node | str] = field(default_factory=list)


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = _Node("", frozenset())
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        node = _Node(tag, frozenset((attributes.get("class") or "").split()), int(attributes.get("colspan") or 1))
        if tag == "drawing":
            node.within.append(attributes["number"] or "")
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
    term: list[Run] = []
    for part in node.within:
        if isinstance(part, str) or part.classes & _SKIPPED:
            continue
        if part.tag == "drawing":
            yield {"kind": "drawing", "svg": _for_paper(drawings[int(str(part.within[0]))])}
        elif part.classes & _COLUMNS:
            children = [child for child in part.within if isinstance(child, _Node)]
            yield {"kind": "columns", "children": [list(_blocks(child, drawings)) for child in children]}
        elif part.tag in _ALONE:
            runs = _collapsed(_runs(part, "strong" if part.tag == "dt" else ""))
            if part.tag == "dt":
                # A term stands before its definition, on the same line.
                term = [*runs, [" ", ""]]
            elif runs:
                runs, term = [*term, *runs], []
                look = next((word for word in (*sorted(part.classes), part.tag)), "p")
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
                "runs": _collapsed(_runs(cell, "strong" if "strong" in cell.classes else "")),
                "number": "num" in cell.classes,
                "span": cell.span,
            }
            for cell in row.within
            if isinstance(cell, _Node) and cell.tag in ("th", "td")
        ]
        rows.append({"cells": cells, "lost": "lost" in row.classes})
    heads = sum(1 for head in _each(node, "thead") for _ in _each(head, "tr"))
    columns = max(sum(cell["span"] for cell in row["cells"]) for row in rows)
    plain = [row["cells"] for row in rows if all(cell["span"] == 1 for cell in row["cells"])]
    contents = [[cells[at]["runs"] for cells in plain if at < len(cells)] for at in range(columns)]
    has_spans = any(1 < cell["span"] < columns for row in rows for cell in row["cells"])
    numbers = {at for row in rows[heads:] for at, cell in enumerate(row["cells"]) if cell["number"]}
    longest = [max(map(_longest, cells), default=0) for cells in contents]
    texts = set(range(columns)) if has_spans else {at for at in range(columns) if at not in numbers}
    long_texts = {at for at in texts if longest[at] > _SHORT}
    # Text shares the width by its longest lines; next to long text, figures and short text take what they need.
    shared = texts if has_spans else long_texts or texts
    widths = [min(max(longest[at], _NARROW), _WIDE) if at in shared else 0 for at in range(columns)]
    return {"kind": "table", "columns": columns, "widths": widths, "heads": heads, "rows": rows}


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
        elif part.tag != "drawing" and not part.classes & _SKIPPED:
            own = next((word for word in _CLASSES if word in part.classes), _STYLES.get(part.tag, style))
            yield from _runs(part, own)
            if part.tag == "span" and style == "" and own == "":
                yield [_ROOM, ""]


def _collapsed(runs: Iterator[Run]) -> list[Run]:
    """White space as a browser shows it: one space for many, none at an end."""
    settled: list[Run] = []
    for text, style in runs:
        if text not in (_BREAK, _ROOM):
            text = re.sub(r"[ \t\r\n\v\f]+", " ", text)
        ends = not settled or settled[-1][0].endswith((" ", _BREAK, _ROOM))
        text = text.lstrip(" ") if ends else text
        text = _LONG_WORD.sub(lambda word: re.sub(r"[:/_-]", "\\g<0>\u200b", word[0]), text)
        if text:
            settled.append([text, style])
    while settled and not settled[-1][0].strip():
        settled.pop()
    if settled:
        settled[-1][0] = settled[-1][0].rstrip()
    return settled


def _for_paper(svg: str) -> str:
    """A drawing without CSS variables, in the font of the PDF."""
    for name, color in PALETTE.items():
        svg = svg.replace(f"var(--{name})", color)
    return re.sub(r'font-family="[^"]*"', 'font-family="Libertinus Serif"', svg)
