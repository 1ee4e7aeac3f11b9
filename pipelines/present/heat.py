"""The hours of a month as a map: a column a day, a row an hour, darker the more of it commitments covered.

Drawn by hand, for a chart of classes needs no scale: an hour without coverage is an empty frame, so the map reads in
grey and without telling colours apart; an hour with nothing to cover is blank.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

# Wide page and phone: width of an hour's cell. Heights are the same.
_CELLS = (33, 10)
_HEIGHT, _LEFT, _TOP = 7, 34, 16
# Each class up to its ratio, how dark it is, and what the key calls it.
CLASSES = (
    (0.0, 0.0, "none"),
    (0.25, 0.2, "to 25%"),
    (0.5, 0.4, "to 50%"),
    (0.75, 0.62, "to 75%"),
    (0.999, 0.82, "below 100%"),
    (None, 1.0, "all"),
)


def class_of(ratio: Any) -> int:
    """The number of the class a coverage falls in."""
    return next(number for number, (top, _, _) in enumerate(CLASSES) if top is None or float(ratio) <= top)


def heat_map(hours: Sequence[Mapping[str, Any]], label: str) -> Markup:
    """Each row has usage_date, hour_no and coverage_ratio; the map spans the days of their month."""
    wide, narrow = (_svg(hours, width, label) for width in _CELLS)
    return Markup('<div class="chart wide">{}</div><div class="chart narrow">{}</div>').format(wide, narrow)


def _svg(hours: Sequence[Mapping[str, Any]], cell: int, label: str) -> Markup:
    first = hours[0]["usage_date"]
    days = monthrange(first.year, first.month)[1]
    width, height = _LEFT + days * cell, _TOP + 24 * _HEIGHT
    shapes: dict[int, list[str]] = {number: [] for number in range(len(CLASSES))}
    for row in hours:
        x = _LEFT + (row["usage_date"].day - 1) * cell + 0.5
        y = _TOP + int(row["hour_no"]) * _HEIGHT + 0.5
        shapes[class_of(row["coverage_ratio"])].append(f"M{x} {y}h{cell - 1}v{_HEIGHT - 1}h-{cell - 1}z")
    parts = [f'<path d="{"".join(shape)}" {_look(number)}/>' for number, shape in shapes.items() if shape]
    parts += [_text(_LEFT - 6, _TOP + hour * _HEIGHT + 9, f"{hour:02}:00", "end") for hour in range(0, 24, 6)]
    step = 1 if cell > 20 else 5
    shown = [day for day in range(1, days + 1) if step == 1 or day == 1 or day % step == 0]
    parts += [_text(_LEFT + (day - 0.5) * cell, _TOP - 5, str(day), "middle") for day in shown]
    key = _key(width, height + 14)
    return Markup(
        f'<svg role="img" aria-label="{escape(label)}" xmlns="http://www.w3.org/2000/svg" width="{max(width, 340)}" '
        f'height="{key[1]}" viewBox="0 0 {max(width, 340)} {key[1]}">{"".join(parts)}{key[0]}</svg>'
    )


def _key(width: int, top: int) -> tuple[str, int]:
    """The classes in words, over as many lines as the width takes; and where they end."""
    parts, x, y = [], float(_LEFT), top
    for number, (_, _, name) in enumerate(CLASSES):
        room = 22 + 6.2 * len(name)
        if x + room > max(width, 340):
            x, y = float(_LEFT), y + 16
        parts.append(f'<path d="M{x + 0.5} {y + 0.5}h11v8h-11z" {_look(number)}/>')
        parts.append(_text(x + 16, y + 9, name, "start"))
        x += room + 6
    return "".join(parts), y + 14


def _look(number: int) -> str:
    dark = CLASSES[number][1]
    if not dark:
        return 'fill="none" stroke="var(--unused)" stroke-width="0.8"'
    return f'fill="var(--used)" fill-opacity="{dark}"'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="11" text-anchor="{anchor}" fill="var(--quiet)">{text}</text>'
