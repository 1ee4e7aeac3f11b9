"""The charts of the dashboard."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import altair as alt
from markupsafe import Markup

from pipelines.present.charts import PALETTE, WIDTHS, Row, both_widths, figure, plain, symbol, values
from pipelines.present.formats import month, usd

_COLORS = {"gpu": "gpu", "trainium": "trainium"}
_LANE, _TOP = 24, 18


def month_chart(rows: Sequence[Row], names: Mapping[str, str], currency: str, label: str) -> Markup:
    """Dollars per month, one band for each of `names` with any, all on one scale."""
    bars = {
        name: [
            {
                "month": month(row["billing_month"]),
                "at": row["billing_month"].isoformat(),
                "usd": plain(row["effective_cost_usd"]),
                "label": usd(row["effective_cost_usd"], currency),
            }
            for row in rows
            if row["silicon"] == name
        ]
        for name in names
    }
    bands = [name for name in names if bars[name]]
    months = [month(day) for day in sorted({row["billing_month"] for row in rows})]
    has_room = len(months) <= 12

    def band(name: str, width: int) -> alt.LayerChart | alt.FacetChart:
        is_last = name == bands[-1]
        across = alt.X(
            "month:N",
            sort=months,
            scale=alt.Scale(domain=months),
            axis=alt.Axis(labels=is_last, ticks=False, title=None, labelAngle=0, labelOverlap=True),
        )
        amounts = alt.Axis(format=symbol(currency) + ",.0f", tickCount=2, minExtent=60, maxExtent=60)
        title = alt.Title(names[name], anchor="start", fontSize=13, fontWeight=600, color=PALETTE["ink"], offset=6)
        chart = alt.Chart(values(bars[name]), title=title)
        color = PALETTE[_COLORS.get(name, "unused" if name == "unused" else "quiet")]
        bar = chart.mark_bar(color=color, size=min(46, max(4, (width - 80) // (2 * len(months)))))
        text = chart.mark_text(dy=-7, fontSize=12, color=PALETTE["ink"])
        down = alt.Y("usd:Q", title=None, axis=amounts)
        layers = [bar.encode(x=across, y=down)]
        if has_room and width > 90 * len(months):
            layers.append(text.encode(x=across, y=down, text="label:N"))
        return alt.layer(*layers).properties(width=width - 80, height=76)

    def draw(width: int) -> alt.TopLevelMixin:
        return alt.vconcat(*(band(name, width) for name in bands), spacing=16).resolve_scale(y="shared")

    return figure(draw, label)


def _svg(drawn: Sequence[Markup], label: str, width: int, height: float) -> Markup:
    return Markup('<svg role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" font-size="12">{}</svg>').format(
        label, width, height, width, Markup("").join(drawn)
    )


def timeline_chart(
    stretches: Sequence[Row], checkpoints: Sequence[Row], names: Mapping[str, str], currency: str, label: str
) -> Markup:
    """The timeline of a run, one lane per phase: filled where productive, hatched where wasted, a mark per checkpoint.

    Drawn without the drawing library, so that a thousand of them are written in seconds.
    """
    return both_widths(lambda width: _timeline(stretches, checkpoints, names, currency, label, width))


def _timeline(
    stretches: Sequence[Row],
    checkpoints: Sequence[Row],
    names: Mapping[str, str],
    currency: str,
    label: str,
    width: int,
) -> Markup:
    first, last = min(row["started_at"] for row in stretches), max(row["ended_at"] for row in stretches)
    whole = max((last - first).total_seconds(), 1)
    left = 150 if width == WIDTHS[0] else 104
    room = width - left - 6

    def x(at: datetime) -> float:
        return round(left + (at - first).total_seconds() / whole * room, 2)

    lanes = [phase for phase in names if any(row["phase"] == phase for row in stretches)]
    lanes += sorted({row["phase"] for row in stretches} - set(lanes))
    rows = [*lanes, *(["checkpoints"] if checkpoints else [])]
    tops = {lane: _TOP + number * _LANE for number, lane in enumerate(rows)}
    bottom = _TOP + len(rows) * _LANE
    hatch = f"hatch-{width}"
    drawn = [
        Markup(
            '<defs><pattern id="{0}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
            '<rect width="6" height="6" fill="var(--paper)"/><rect width="3.5" height="6" fill="var(--unused)"/>'
            "</pattern></defs>"
        ).format(hatch)
    ]
    for lane, top in tops.items():
        called = "Checkpoints" if lane == "checkpoints" else names.get(lane, lane)
        drawn.append(
            Markup('<text x="0" y="{}" fill="var(--ink)">{}</text>'
                   '<line x1="{}" x2="{}" y1="{}" y2="{}" stroke="var(--line)"/>')
            .format(top + 15, called, left, width - 6, top + _LANE - 2, top + _LANE - 2)
        )  # fmt: skip
    for attempt in sorted({row["attempt_no"] for row in stretches})[1:]:
        at = x(min(row["started_at"] for row in stretches if row["attempt_no"] == attempt))
        drawn.append(
            Markup('<line x1="{0}" x2="{0}" y1="4" y2="{1}" stroke="var(--ink)" stroke-dasharray="2 3"/>'
                   '<text x="{2}" y="11" fill="var(--quiet)" font-size="11">attempt {3}</text>')
            .format(at, bottom, at + 4, attempt)
        )  # fmt: skip
    for row in stretches:
        start, end = x(row["started_at"]), x(row["ended_at"])
        fill = f"url(#{hatch})" if row["waste_cause"] != "none" else "var(--used)"
        cost = "" if row["effective_cost_usd"] is None else f", {usd(row['effective_cost_usd'], currency)}"
        drawn.append(
            Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="{}"{}><title>{}</title></rect>').format(
                start,
                tops[row["phase"]] + 3,
                max(round(end - start, 2), 1.5),
                _LANE - 8,
                fill,
                Markup(' stroke="var(--unused)"') if row["waste_cause"] != "none" else "",
                f"{names.get(row['phase'], row['phase'])}, {_span(row)}{cost}",
            )
        )
    for row in checkpoints:
        at, middle = x(row["durable_at"]), tops["checkpoints"] + 11
        points = f"{at},{middle - 5} {at + 4},{middle} {at},{middle + 5} {at - 4},{middle}"
        saved = f"saved at step {row['step']}, {row['durable_at']:%d %b %H:%M}"
        drawn.append(Markup('<polygon points="{}" fill="var(--ink)"><title>{}</title></polygon>').format(points, saved))
    for at, anchor, when in ((left, "start", first), (width - 6, "end", last)):
        drawn.append(
            Markup('<text x="{}" y="{}" text-anchor="{}" fill="var(--quiet)">{:%d %b %H:%M}</text>')
            .format(at, bottom + 15, anchor, when)
        )  # fmt: skip
    return _svg(drawn, label, width, bottom + 22)


def _span(row: Row) -> str:
    return f"{row['started_at']:%d %b %H:%M} to {row['ended_at']:%d %b %H:%M}"
