"""The lineage of a table as a drawing: what it is made from on its left, what is made from it on its right."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from pipelines.base.groups import grouped
from pipelines.models.catalog import SESSION_TABLES, load_catalog

# Of a table's box and the room around it, in pixels; a character of its name takes about 6.6.
_HEIGHT, _CHARACTER, _GAP = 26, 6.6, 56


@cache
def drawn(table: str) -> dict[str, Any]:
    """Boxes and lines of the tables that `table` rests on or that rest on it, with the size of the drawing.

    Empty for an empty name. Each box has name, layer, x, y and width; each line x, y, until_x and until_y.
    """
    catalog = load_catalog()
    if not table:
        return {}
    behind = catalog.behind(table) - SESSION_TABLES
    shown = {table, *behind, *(model.name for model in catalog.ordered if table in catalog.behind(model.name))}
    reads = {name: [one for one in catalog[name].inputs if one in shown] if name in catalog else [] for name in shown}
    columns = _ordered(_columns(table, behind, reads), reads)
    boxes, x = {}, 0.0
    tallest = max(map(len, columns))
    for names in columns:
        width = max(map(len, names)) * _CHARACTER + 16
        top = (tallest - len(names)) * _HEIGHT / 2
        for at, name in enumerate(names):
            layer = catalog[name].layer if name in catalog else "raw"
            boxes[name] = {"name": name, "layer": layer, "x": x, "y": top + at * _HEIGHT, "width": width}
        x += width + _GAP
    lines = [
        {
            "x": boxes[one]["x"] + boxes[one]["width"],
            "y": boxes[one]["y"] + _HEIGHT / 2,
            "until_x": boxes[name]["x"],
            "until_y": boxes[name]["y"] + _HEIGHT / 2,
            "is_direct": table in (one, name),
        }
        for name, inputs in reads.items()
        for one in inputs
    ]
    return {"boxes": list(boxes.values()), "lines": lines, "width": x - _GAP, "height": tallest * _HEIGHT}


def _columns(table: str, behind: set[str], reads: dict[str, list[str]]) -> list[list[str]]:
    """The tables by the longest way from `table`, those `behind` it on its left."""
    readers: dict[str, list[str]] = {name: [] for name in reads}
    for name, inputs in reads.items():
        for one in inputs:
            readers[one].append(name)

    @cache
    def way(name: str) -> int:
        if name == table:
            return 0
        if name in behind:
            return min(way(one) for one in readers[name] if one == table or one in behind) - 1
        return max(way(one) for one in reads[name] if one == table or one not in behind) + 1

    return [names for _, names in sorted(grouped(sorted(reads), way).items())]


def _ordered(columns: list[list[str]], reads: dict[str, list[str]]) -> list[list[str]]:
    """The columns with each table next to the middle of those it is connected to, so that few lines cross."""
    near: dict[str, list[str]] = {name: list(inputs) for name, inputs in reads.items()}
    for name, inputs in reads.items():
        for one in inputs:
            near[one].append(name)
    for _ in range(4):
        at = _places(columns)
        for names in columns:
            names.sort(key=lambda name: sum(at[one] for one in near[name]) / (len(near[name]) or 1))
            at |= _places([names])
    return columns


def _places(columns: Iterable[list[str]]) -> dict[str, float]:
    return {name: (at + 0.5) / len(names) for names in columns for at, name in enumerate(names)}
