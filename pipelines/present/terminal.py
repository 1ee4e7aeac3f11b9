"""A report in the terminal, printed from the elements of its HTML page, so that no figure is formatted twice."""

from itertools import chain
from xml.etree.ElementTree import Element, fromstring

import polars as pl

from pipelines.base.console import Console

_BREAK = "\0"
# Charts are left out, and so are their captions.
_HEADINGS, _TEXTS, _DRAWN = ("h1", "h2", "h3"), ("p", "li", "dt", "dd"), ("svg", "figcaption", "style", "head")


def show_page(page: str, console: Console) -> None:
    """Print headings, sentences and tables of a report's page; charts are left out, and headings of charts alone."""
    _show(fromstring(page), console)


def _show(element: Element, console: Console) -> None:
    for part in element:
        if part.tag == "table":
            _show_table(part, console)
        elif part.tag in _HEADINGS or part.get("class") == "caption":
            console.say("")
            console.paragraph(_text(part))
        elif _is_code(part):
            for line in part.iter("code"):
                console.code(f"  {''.join(line.itertext())}".replace("\xa0", " ").rstrip())
        elif part.tag in _TEXTS:
            console.paragraph(_text(part))
        elif part.tag not in _DRAWN and not _is_drawn(part):
            _show(part, console)


def _is_code(part: Element) -> bool:
    """Whether a paragraph is lines of code, whose indentation counts."""
    prose = [part.text, *(inner.tail for inner in part)]
    return (
        part.tag == "p" and {inner.tag for inner in part} == {"code", "br"} and not "".join(filter(None, prose)).strip()
    )


def _is_drawn(part: Element) -> bool:
    """Whether a section has nothing to print below its heading."""
    kept = (*_TEXTS, "table")
    return part.tag == "section" and not any(inner.tag in kept for inner in part.iter())


def _text(element: Element) -> str:
    for part in element.iter():
        # Lines and labels stand apart; a figure is part of its sentence.
        if part.tag == "br":
            part.text = _BREAK
        elif part.tag == "span" and part.get("class") != "figure":
            part.text = f" {part.text or ''}"
    lines = [" ".join(line.split()) for line in "".join(element.itertext()).split(_BREAK)]
    text = "; ".join(line for line in lines if line)
    # A sentence needs no other stop.
    return text.replace(".; ", ". ")


def _show_table(table: Element, console: Console) -> None:
    """The rows that have their own cells as a table; below it, as sentences, what stands across its columns."""
    rows = [row for row in table.iter("tr") if not _is_sentence(row)]
    cells = [_cells(row) for row in rows]
    columns = list(zip(*cells, strict=True))
    # Names of columns are unique: what is called alike differs in spaces at its end.
    heads = [text for text, _ in cells[0]]
    names = [head + " " * heads[:at].count(head) for at, head in enumerate(heads)]
    texts = {name: [text for text, _ in column[1:]] for name, column in zip(names, columns, strict=True)}
    figures = [name for name, column in zip(names, columns, strict=True) if any(is_figure for _, is_figure in column)]
    console.table(pl.DataFrame(texts, schema=dict.fromkeys(names, pl.String)), figures=figures)
    for row in table.iter("tr"):
        if _is_sentence(row):
            console.paragraph(": ".join(text for text, _ in _cells(row) if text))


def _is_sentence(row: Element) -> bool:
    """Whether a row is a label and a text that takes all other columns of the table."""
    return len(row) == 2 and row[1].tag == "td" and int(row[1].get("colspan", "1")) > 1


def _cells(row: Element) -> list[tuple[str, bool]]:
    """Text of each cell and whether it is a figure; a cell over several columns is followed by empty ones."""
    cells = [[(_text(cell), "num" in cell.get("class", "").split())] for cell in row]
    spans = [[("", False)] * (int(cell.get("colspan", "1")) - 1) for cell in row]
    return list(chain.from_iterable(chain.from_iterable(zip(cells, spans, strict=True))))
