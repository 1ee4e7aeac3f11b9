"""A report in the terminal, printed from the elements of its HTML page, so that no figure is formatted twice."""

from itertools import chain
from xml.etree.ElementTree import Element, fromstring

import polars as pl

from pipelines.base.console import Console

_BREAK = "\0"
_HEADINGS, _TEXTS, _DRAWN = ("h1", "h2", "h3"), ("p", "figcaption", "li", "dt", "dd"), ("svg", "style", "head")


def show_page(page: str, console: Console) -> None:
    """Print headings, sentences and tables of a report's page; charts are left out."""
    _show(fromstring(page), console)


def _show(element: Element, console: Console) -> None:
    for part in element:
        if part.tag == "table":
            console.table(_frame(part))
        elif part.tag in _HEADINGS:
            console.say("")
            console.say(_text(part))
        elif part.tag in _TEXTS:
            console.paragraph(_text(part))
        elif part.tag not in _DRAWN:
            _show(part, console)


def _text(element: Element) -> str:
    for part in element.iter():
        # Lines and labels stand apart; a figure is part of its sentence.
        if part.tag == "br":
            part.text = _BREAK
        elif part.tag == "span" and part.get("class") != "figure":
            part.text = f" {part.text or ''}"
    lines = [" ".join(line.split()) for line in "".join(element.itertext()).split(_BREAK)]
    return "; ".join(line for line in lines if line)


def _frame(table: Element) -> pl.DataFrame:
    """The rows as text, a column per heading, amounts flush right."""
    rows = [_cells(row) for row in table.iter("tr")]
    columns = []
    for cells in zip(*rows, strict=True):
        width = max(len(text) for text, is_number in cells if is_number) if any(number for _, number in cells) else 0
        columns.append([text.rjust(width) for text, _ in cells])
    # Names of columns are unique: what is called alike differs in spaces at its end.
    names = [head + " " * [column[0] for column in columns[:at]].count(head) for at, (head, *_) in enumerate(columns)]
    return pl.DataFrame(dict(zip(names, (column[1:] for column in columns), strict=True)), strict=False)


def _cells(row: Element) -> list[tuple[str, bool]]:
    """Text of each cell and whether it is a figure; a cell over several columns is followed by empty ones."""
    cells = [[(_text(cell), "num" in cell.get("class", "").split())] for cell in row]
    spans = [[("", False)] * (int(cell.get("colspan", "1")) - 1) for cell in row]
    return list(chain.from_iterable(chain.from_iterable(zip(cells, spans, strict=True))))
