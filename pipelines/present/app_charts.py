"""The charts of the dashboard."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise

import altair as alt
from markupsafe import Markup

from pipelines.present.charts import PALETTE, WIDTHS, Row, band_title, figure, names_axis, plain, symbol, values
from pipelines.present.formats import month, usd

_COLORS = {"gpu": "gpu", "trainium": "trainium", "unused": "unused"}


def month_chart(rows: Sequence[Row], names: Mapping[str, str], currency: str, label: str) -> Markup:
    """Dollars per month, one band for each of `names` with any, all on one scale."""
    bars = {
        name: [
            {
                "month": month(row["billing_month"]),
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
        chart = alt.Chart(values(bars[name]), title=band_title(names[name]))
        color = PALETTE[_COLORS.get(name, "quiet")]
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


def timeline_chart(
    stretches: Sequence[Row], checkpoints: Sequence[Row], names: Mapping[str, str], label: str
) -> Markup:
    """The timeline of a run, a lane per phase: filled where productive, a frame where wasted, a mark per checkpoint."""
    bars = [
        {
            "lane": names.get(row["phase"], row["phase"]),
            "at": _instant(row["started_at"]),
            "until": _instant(row["ended_at"]),
            "is_wasted": row["waste_cause"] != "none",
        }
        for row in stretches
    ]
    saved = [{"lane": "Checkpoints", "at": _instant(row["durable_at"])} for row in checkpoints]
    attempts = [
        {"at": _instant(row["started_at"]), "label": f"attempt {row['attempt_no']}"}
        for before, row in pairwise(stretches)
        if before["attempt_no"] != row["attempt_no"]
    ]
    used = {bar["lane"] for bar in bars}
    lanes = [name for name in names.values() if name in used]
    lanes += [*sorted(used - set(lanes)), *["Checkpoints"] * bool(saved)]

    def draw(width: int) -> alt.TopLevelMixin:
        ticks = alt.Axis(format="%d %b %H:%M", tickCount=8 if width > WIDTHS[-1] else 2, title=None)
        x = alt.X("at:T", scale=alt.Scale(type="utc"), axis=ticks)
        y = alt.Y("lane:N", title=None, scale=alt.Scale(domain=lanes), axis=names_axis())

        def bar(color: str, is_wasted: bool) -> alt.Chart:
            part = alt.Chart(values([bar for bar in bars if bar["is_wasted"] == is_wasted]))
            mark = part.mark_bar(height=14, color=PALETTE[color], stroke=PALETTE[color], fillOpacity=1 - is_wasted)
            return mark.encode(x=x, x2="until:T", y=y)

        mark = alt.Chart(values(saved)).mark_point(
            shape="diamond", filled=True, size=60, opacity=1, color=PALETTE["ink"]
        )
        begun = alt.Chart(values(attempts))
        rule = begun.mark_rule(strokeDash=[2, 3], color=PALETTE["ink"]).encode(x=x)
        text = begun.mark_text(align="left", dx=4, color=PALETTE["quiet"]).encode(x=x, y=alt.value(-6), text="label:N")
        layers = alt.layer(bar("used", False), bar("unused", True), mark.encode(x=x, y=y), rule, text)
        return layers.properties(width=width - 160, height=24 * len(lanes))

    return figure(draw, label)


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}Z"
