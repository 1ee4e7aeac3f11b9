"""An explanation on a terminal: aligned text that fits its width; a long name loses its middle."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pipelines.analysis.verdict import minus
from pipelines.base.console import Console, folded

GAP = "  "
# A name that is cut shorter cannot be recognized.
_SHORTEST = 4
# Of several names in a row, one that is cut shorter is confused with others, such as the buckets of unused cost.
_READABLE = 14
# Dates, times and account numbers are never cut.
_NUMBER = re.compile(r"(\d[\d :-]*)?")


class Label(str):
    """The name of a row that sums others; it is never cut."""

    __slots__ = ()


def cents(amount: Decimal | None) -> str:
    """An amount of money to two places; `unknown` for null."""
    return "unknown" if amount is None else minus(f"{amount:,.2f}")


def moment(value: object) -> str:
    """A time to the minute, a day as it is, nothing for null."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return value.isoformat() if isinstance(value, date) else "" if value is None else str(value)


def show(parts: Iterable[Mapping[str, Any]], console: Console) -> None:
    """Print sentences, tables aligned under their head with the note of a row below it, and lists."""
    for part in parts:
        if part["kind"] == "sentence":
            console.paragraph(part["text"], indent="  " if part["is_detail"] else "")
            continue
        console.say("")
        console.paragraph(part["title"])
        if part["kind"] == "list":
            for entry in part["entries"]:
                console.paragraph(entry, indent="  ")
            continue
        head, rows = readable(part, console.width)
        numbers = len(part["head"]) - part["names"]
        header, *lines = grid(head, [row["cells"] for row in rows], numbers, console.width)
        console.say(header)
        for text, row in zip(lines, rows, strict=True):
            for line in (text, *(folded(row["note"], console.width) if row["note"] else ())):
                console.say(line)


def readable(part: Mapping[str, Any], width: int) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
    """Head and rows of a table; names that would be cut beyond recognition are in the note of their row."""
    head, rows, names = part["head"], part["rows"], part["names"]
    kept = names
    while kept > 2 and not _fits([head, *(row["cells"] for row in rows)], kept, names, width):
        kept -= 1
    if kept == names:
        return head, rows
    shown = []
    for row in rows:
        cells = row["cells"]
        moved = [f"{name} {cell}" for name, cell in zip(head[kept:names], cells[kept:names], strict=True) if cell]
        note = "; ".join([*moved, *filter(None, [row["note"]])])
        shown.append({"cells": [*cells[:kept], *cells[names:]], "note": note})
    return [*head[:kept], *head[names:]], shown


def _fits(lines: Sequence[Sequence[str]], kept: int, names: int, width: int) -> bool:
    """Whether the first `kept` of the name columns and the amounts fit if no name is cut below `_READABLE`."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    least = [min(size, _READABLE) for size in widths[1:kept]]
    return sum([widths[0], *least, *widths[names:]]) + len(GAP) * (len(widths) - names + kept - 1) <= width


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: int, width: int) -> list[str]:
    """Lines of text for the rows; the last `numbers` columns are amounts.

    Where the whole is wider than `width` the widest name column is cut in its middle, but for numbers and labels.
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    names = range(len(head) - numbers)
    if len(names) > 1:
        labeled = [row for row in (head, *rows) if any(row[1 : len(names)])]
        widths[0] = max(len(row[0]) for row in labeled or [head])
    labels = [row[0] for row in rows if isinstance(row[0], Label)]
    cut = [at for at in names if not all(_NUMBER.fullmatch(row[at]) for row in rows if row[at] not in labels)]
    while cut and sum(widths) + len(GAP) * (len(widths) - 1) > width:
        widest = max(cut, key=lambda at: widths[at])
        if widths[widest] <= _SHORTEST:
            break
        widths[widest] -= 1
    if names:
        room = sum(widths[: len(names)]) + len(GAP) * (len(names) - 1)
        widths[len(names) - 1] += max(0, max(map(len, labels), default=0) - room)
    return [_row(row, widths, numbers) for row in (head, *rows)]


def _row(cells: Sequence[str], widths: Sequence[int], numbers: int) -> str:
    first_number = len(cells) - numbers
    if first_number and not any(cells[1:first_number]):
        # A label alone may run on under the empty names.
        room = sum(widths[:first_number]) + len(GAP) * (first_number - 1)
        placed = [_cut(cells[0], room).ljust(room)]
    else:
        placed = [
            _cut(cell, width).ljust(width)
            for cell, width in zip(cells[:first_number], widths[:first_number], strict=True)
        ]
    amounts = zip(cells[first_number:], widths[first_number:], strict=True)
    return GAP.join([*placed, *(cell.rjust(width) for cell, width in amounts)]).rstrip()


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    # The end of an id identifies it better than its beginning.
    kept = (width - 1) // 3
    return f"{text[:kept]}…{text[len(text) - (width - 1 - kept) :]}"
