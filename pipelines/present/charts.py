"""Charts as inline SVG: no script, no external font, the same bytes for the same figures.

Each chart is drawn twice, for a wide page and for a phone; the style sheet shows one. Colors are CSS
variables of the page, so a chart follows its light and dark themes; shape or position always repeats the
color.
"""

import hashlib
import re
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import altair as alt
import vl_convert
import yaml
from markupsafe import Markup, escape

from pipelines.base import resources
from pipelines.present.formats import unit_usd

Row = Mapping[str, Any]

_THEME = yaml.safe_load((resources.DASHBOARDS / "charts.yml").read_text(encoding="utf-8"))
PALETTE: dict[str, str] = _THEME["palette"]
SHAPES = {"gpu": "circle", "trainium": "diamond"}
# Of the text column, on a wide page and on a phone.
WIDTHS = (1080, 350)
_SAVINGS = ("saving", "saving_low", "saving_high")


def pair_chart(pair: Row, runs: Sequence[Row], currency: str, unit: str, label: str) -> Markup:
    """Every compared run of a GPU and Trainium pair on one scale, with the cost per success of each family.

    `runs` are those of the pair's workload; the measure drawn is the pair's, effective basis.
    """
    measure = f"{pair['unit_measure']}_usd"
    means_by_side = {
        ("gpu", pair["baseline_instance_type"]): pair["baseline_unit_cost_usd"],
        ("trainium", pair["candidate_instance_type"]): pair["candidate_unit_cost_usd"],
    }
    marks = [
        {"side": run["instance_type"], "family": run["accelerator_family"], "usd": plain(run[measure])}
        for run in runs
        if (run["accelerator_family"], run["instance_type"]) in means_by_side and run[measure] is not None
    ]
    means = [{"side": side, "family": family, "usd": plain(mean)} for (family, side), mean in means_by_side.items()]
    order = [side for _, side in means_by_side]

    def draw(width: int) -> alt.TopLevelMixin:
        scale = alt.Scale(zero=True, nice=True)
        across = alt.X("usd:Q", title=unit, scale=scale, axis=_amounts(currency, width))
        down = alt.Y("side:N", title=None, sort=order, axis=names_axis())
        families = list(SHAPES)
        colors = [PALETTE[family] for family in families]
        color = alt.Color("family:N", legend=None, scale=alt.Scale(domain=families, range=colors))
        shape = alt.Shape("family:N", legend=None, scale=alt.Scale(domain=families, range=list(SHAPES.values())))
        run = alt.Chart(values(marks)).mark_point(filled=True, size=95, opacity=0.85)
        mean = alt.Chart(values(means)).mark_tick(thickness=2.5, size=34, color=PALETTE["ink"], opacity=1)
        layers = mean.encode(x=across, y=down) + run.encode(x=across, y=down, color=color, shape=shape)
        return layers.properties(width=width - 160, height=96)

    return figure(draw, label)


def ledger_chart(days: Sequence[Row], buckets: Mapping[str, str], currency: str, label: str) -> Markup:
    """Dollars a day, one band per bucket that has any. `buckets` gives the bands in order and their names.

    The bucket `run` has a scale of its own, the others share one: next to runs they would be too low to see.
    """
    bars = {
        bucket: [
            {
                "day": f"{row['usage_date'].isoformat()}T00:00:00Z",
                "until": f"{row['usage_date'].isoformat()}T20:00:00Z",
                "usd": plain(row["effective_cost_usd"]),
            }
            for row in days
            if row["bucket"] == bucket
        ]
        for bucket in buckets
    }
    bands = [bucket for bucket in buckets if bars[bucket]]
    dates = [row["usage_date"] for row in days]
    span = [f"{min(dates).isoformat()}T00:00:00Z", f"{max(dates).isoformat()}T20:00:00Z"]

    def band(bucket: str, width: int) -> alt.Chart:
        is_last = bucket == bands[-1]
        most = 4 if width < 500 else 10
        count = most if len({*dates}) > most else alt.TimeIntervalStep(interval="day", step=1)
        ticks = alt.Axis(format="%-d %b", labels=is_last, ticks=is_last, tickCount=count, title=None)
        amounts = alt.Axis(format=symbol(currency) + ",.0f", tickCount=2, minExtent=54, maxExtent=54)
        return (
            alt.Chart(values(bars[bucket]), title=band_title(buckets[bucket]))
            .mark_bar(color=PALETTE["used" if bucket == "run" else "unused"])
            .encode(
                x=alt.X("day:T", scale=alt.Scale(type="utc", domain=span), axis=ticks),
                x2="until:T",
                y=alt.Y("usd:Q", title=None, axis=amounts),
                y2=alt.datum(0),
            )
            .properties(width=width - 70, height=54)
        )

    def draw(width: int) -> alt.TopLevelMixin:
        runs = [band(bucket, width) for bucket in bands if bucket == "run"]
        others = [band(bucket, width) for bucket in bands if bucket != "run"]
        shared = [alt.vconcat(*others, spacing=14).resolve_scale(y="shared")] if others else []
        return alt.vconcat(*runs, *shared, spacing=14)

    return figure(draw, label)


def waterfall_chart(pair: Row, parts: Sequence[Row], names: Mapping[str, str], unit: str) -> Markup:
    """From the GPU's unit cost to Trainium's, one floating bar per factor; a factor that is not measured has none.

    `parts` are the factors of the pair, `names` what each is called, `unit` what the axis is called.
    """
    currency, baseline, candidate = pair["currency"], pair["baseline_instance_type"], pair["candidate_instance_type"]
    bars: list[dict[str, Any]] = []

    def add(name: str, start: Decimal | int, end: Decimal, kind: str, shown: Decimal) -> None:
        low, high = plain(min(start, end)), plain(max(start, end))
        bars.append({"name": name, "low": low, "high": high, "kind": kind, "label": unit_usd(shown, currency)})

    at = pair["baseline_unit_cost_usd"]
    add(baseline, 0, at, "gpu", at)
    for part in parts:
        saved = part["cost_part_usd"]
        if saved is not None:
            # A factor that makes Trainium cheaper goes down.
            kind = "less" if saved > 0 else "more"
            add(names.get(part["factor"], part["factor"]), at, at - saved, kind, -saved)
            at -= saved
    end = pair["candidate_unit_cost_usd"]
    add(candidate, 0, end, "trainium", end)
    label = f"From the cost on {baseline} to that on {candidate} by factor; the table below has the figures"
    kinds = {"gpu": PALETTE["gpu"], "trainium": PALETTE["trainium"], "less": PALETTE["used"], "more": PALETTE["unused"]}

    def draw(width: int) -> alt.TopLevelMixin:
        down = alt.Y("name:N", title=None, sort=[row["name"] for row in bars], axis=names_axis())
        across = alt.X("low:Q", title=unit, axis=_amounts(currency, width))
        color = alt.Color("kind:N", legend=None, scale=alt.Scale(domain=list(kinds), range=list(kinds.values())))
        bar = alt.Chart(values(bars)).mark_bar(height=16).encode(x=across, x2="high:Q", y=down, color=color)
        text = alt.Chart(values(bars)).mark_text(align="left", dx=6, fontSize=12, color=PALETTE["ink"])
        labels = text.encode(x=alt.X("high:Q"), y=down, text="label:N")
        return (bar + labels).properties(width=width - 160 - 70, height=30 * len(bars))

    return figure(draw, label)


def break_even_chart(port: Row, currency: str, label: str) -> Markup:
    """The net result of a port by number of runs, with the interval of the saving.

    The line crosses zero at break-even; a mark shows the actual runs and their result.
    """
    needed = port["break_even_run_count"] or 0
    runs = max(2 * needed, 2 * (port["realized_run_count"] or 0), 10)
    cost = plain(port["port_cost_usd"]) or 0.0
    rows = [
        {"runs": at, **{name: at * (plain(port[f"{name}_per_run_usd"]) or 0.0) - cost for name in _SAVINGS}}
        for at in (0, runs)
    ]
    has_band = port["saving_low_per_run_usd"] is not None
    done = [{"runs": port["realized_run_count"], "saving": plain(port["realized_net_usd"])}]

    def draw(width: int) -> alt.TopLevelMixin:
        amounts = alt.Axis(format=symbol(currency) + ",.0f", tickCount=5, minExtent=60)
        x = alt.X("runs:Q", title="runs since the port", axis=alt.Axis(tickCount=8 if width > WIDTHS[-1] else 4))
        y = alt.Y("saving:Q", title=None, axis=amounts)
        line = alt.Chart(values(rows)).mark_line(color=PALETTE["trainium"], strokeWidth=2).encode(x=x, y=y)
        zero = alt.Chart(values([{"saving": 0}])).mark_rule(color=PALETTE["ink"]).encode(y="saving:Q")
        layers = [zero, line]
        if has_band:
            band = alt.Chart(values(rows)).mark_area(color=PALETTE["trainium"], opacity=0.18)
            layers.insert(0, band.encode(x=x, y=alt.Y("saving_low:Q"), y2="saving_high:Q"))
        if done[0]["saving"] is not None:
            mark = alt.Chart(values(done)).mark_point(shape="diamond", filled=True, size=90, color=PALETTE["ink"])
            layers.append(mark.encode(x=x, y=y))
        return alt.layer(*layers).properties(width=width - 80, height=170)

    return figure(draw, label)


# Of the lines of a trend: what sets them apart in color and in gray.
_LINES = (("gpu", [1, 0]), ("trainium", [6, 3]), ("unused", [2, 2]), ("ink", [10, 3]), ("quiet", [8, 3, 2, 3]))


def trend_chart(lines: Sequence[tuple[str, Sequence[Row], str]], currency: str, label: str) -> Markup:
    """A line per name, at most five, over the billing months of its rows; each with the column that is drawn."""
    points = [
        {"line": name, "month": row["billing_month"].isoformat(), "usd": plain(row[column])}
        for name, rows, column in lines
        for row in rows
    ]
    months = sorted({point["month"] for point in points})

    def draw(width: int) -> alt.TopLevelMixin:
        shown = months[:: -(-len(months) // (12 if width > WIDTHS[-1] else 4))]
        ticks = alt.Axis(format="%b %Y", values=shown, title=None, labelAngle=0)
        x = alt.X("month:T", scale=alt.Scale(type="utc"), axis=ticks)
        y = alt.Y("usd:Q", title=None, axis=alt.Axis(format=symbol(currency) + ",.0f", tickCount=4, minExtent=60))
        return _drawn_lines(points, x, y, width, has_points=True)

    return figure(draw, label)


def token_cost_chart(days: Sequence[Row], currency: str, label: str) -> Markup:
    """Cost per million tokens by day, a line for each model and what serves it; colors repeat after five."""
    points = [
        {
            "line": f"{row['model']}, {row['instance_type'] or row['platform']}",
            "day": f"{row['usage_date'].isoformat()}T00:00:00Z",
            "usd": plain(row["cost_per_million_total_usd"]),
        }
        for row in days
    ]

    def draw(width: int) -> alt.TopLevelMixin:
        x = alt.X("day:T", scale=alt.Scale(type="utc"), axis=alt.Axis(format="%-d %b", tickCount=4, title=None))
        amounts = alt.Axis(format=symbol(currency) + ",~r", tickCount=4, minExtent=60, title=None)
        return _drawn_lines(points, x, alt.Y("usd:Q", scale=alt.Scale(type="log"), axis=amounts), width)

    return figure(draw, label)


def _drawn_lines(points: Sequence[Row], x: alt.X, y: alt.Y, width: int, has_points: bool = False) -> alt.Chart:
    """The lines that `line` of the points names, in their order, with a legend below."""
    names = list(dict.fromkeys(point["line"] for point in points))
    kinds = [_LINES[at % len(_LINES)] for at in range(len(names))]
    legend = alt.Legend(
        title=None, orient="bottom", symbolType="stroke", symbolSize=400, columns=width // 200, labelLimit=300
    )
    scale = alt.Scale(domain=names, range=[PALETTE[color] for color, _ in kinds])
    dash = alt.StrokeDash("line:N", scale=alt.Scale(domain=names, range=[dash for _, dash in kinds]), legend=legend)
    dots = alt.OverlayMarkDef(size=36) if has_points else False
    mark = alt.Chart(values(points)).mark_line(strokeWidth=2, point=dots)
    drawn = mark.encode(x=x, y=y, color=alt.Color("line:N", scale=scale, legend=legend), strokeDash=dash)
    return drawn.properties(width=width - 80, height=170)


def crossover_chart(way: Row, currency: str, label: str) -> Markup:
    """Cost a month by tokens a month: by the token a slope, by the hour a level; marks where they cross and today."""
    crossing, today = float(way["crossover_tokens_per_month"]) / 1e9, float(way["tokens_per_month"]) / 1e9
    slope = float(way["blended_price_usd"]) * 1e3
    level, most = crossing * slope, 1.25 * max(crossing, today)
    ends = [{"tokens": at, "token": at * slope, "hour": level} for at in (0.0, most)]
    marks = [{"tokens": crossing, "usd": level, "name": "crossover"}]
    rules = [{"tokens": today, "name": "today"}]
    names = [{"tokens": most, "usd": most * slope, "name": "by the token"}]
    names.append({"tokens": most, "usd": level, "name": "by the hour"})

    def draw(width: int) -> alt.TopLevelMixin:
        x = alt.X("tokens:Q", title="billion tokens a month", axis=alt.Axis(tickCount=8 if width > WIDTHS[-1] else 4))
        amounts = alt.Axis(format=symbol(currency) + ",.0f", tickCount=4, minExtent=54)
        line = alt.Chart(values(ends))
        by_token = line.mark_line(color=PALETTE["used"]).encode(x=x, y=alt.Y("token:Q", title=None, axis=amounts))
        by_hour = line.mark_line(color=PALETTE["gpu"], strokeDash=[6, 3]).encode(x=x, y="hour:Q")
        ink = PALETTE["ink"]
        rule = alt.Chart(values(rules)).mark_rule(color=ink).encode(x=x)
        point = alt.Chart(values(marks)).mark_point(shape="diamond", filled=True, size=90, color=ink, opacity=1)
        named = alt.Chart(values(names)).mark_text(align="right", dy=-8, fontSize=12, color=ink)
        today_name = alt.Chart(values(rules)).mark_text(align="left", dx=5, fontSize=12, color=ink)
        layers = [by_hour, by_token, rule, point.encode(x=x, y="usd:Q"), named.encode(x=x, y="usd:Q", text="name:N")]
        layers.append(today_name.encode(x=x, y=alt.value(8), text="name:N"))
        return alt.layer(*layers).properties(width=width - 80, height=170)

    return figure(draw, label)


# Coverage classes of the heat map: the highest ratio of each, its opacity and its label.
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


def heat_map(hours: Sequence[Row], label: str) -> Markup:
    """Coverage of the hours of a month: a column per day, a row per hour, darker the more is covered.

    Each row has usage_date, hour_no and coverage_ratio. An uncovered hour is an empty frame, so that the map is
    readable in gray; an hour with nothing to cover is blank.
    """
    first = hours[0]["usage_date"]
    days = list(range(1, monthrange(first.year, first.month)[1] + 1))
    labels = [name for _, _, name in CLASSES]
    cells = [
        {"day": row["usage_date"].day, "hour": int(row["hour_no"]), "covered": labels[class_of(row["coverage_ratio"])]}
        for row in hours
    ]

    def draw(width: int) -> alt.TopLevelMixin:
        shown = days if width > WIDTHS[-1] else [day for day in days if day == 1 or day % 5 == 0]
        x_axis = alt.Axis(orient="top", values=shown, labelAngle=0, ticks=False, domain=False)
        clock = "pad(datum.value, 2, '0', 'left') + ':00'"
        y_axis = alt.Axis(values=[0, 6, 12, 18], labelExpr=clock, ticks=False, domain=False)
        x = alt.X("day:O", title=None, scale=alt.Scale(domain=days, paddingInner=0.06), axis=x_axis)
        y = alt.Y("hour:O", title=None, scale=alt.Scale(domain=list(range(24)), paddingInner=0.15), axis=y_axis)
        legend = alt.Legend(title=None, orient="bottom", columns=5 if width > WIDTHS[-1] else 3)
        scale = alt.Scale(type="ordinal", domain=labels[1:], range=[opacity for _, opacity, _ in CLASSES[1:]])
        opacity = alt.Opacity("covered:N", scale=scale, legend=legend)
        covered = alt.Chart(values([cell for cell in cells if cell["covered"] != labels[0]]))
        empty = alt.Chart(values([cell for cell in cells if cell["covered"] == labels[0]]))
        frames = empty.mark_rect(fillOpacity=0, stroke=PALETTE["unused"], strokeWidth=0.8).encode(x=x, y=y)
        filled = covered.mark_rect(color=PALETTE["used"]).encode(x=x, y=y, opacity=opacity)
        return (filled + frames).properties(width=width - 60, height=170)

    return figure(draw, label)


_DRAWN = (
    *(pair_chart, ledger_chart, waterfall_chart, break_even_chart),
    *(trend_chart, token_cost_chart, crossover_chart, heat_map),
)
CHARTS: dict[str, Callable[..., Markup]] = {chart.__name__: chart for chart in _DRAWN}
"""What templates draw, by name."""


def names_axis() -> alt.Axis:
    """Names at the edge of the page, with room for fonts wider than the library's."""
    return alt.Axis(ticks=False, domain=False, labelAlign="left", labelPadding=130, minExtent=130)


def _amounts(currency: str, width: int) -> alt.Axis:
    return alt.Axis(format=symbol(currency) + ",~r", tickCount=8 if width > WIDTHS[-1] else 3)


def band_title(text: str) -> alt.Title:
    """The heading of one of several bands."""
    return alt.Title(text, anchor="start", fontSize=13, fontWeight=600, color=PALETTE["ink"], offset=6)


def figure(draw: Callable[[int], alt.TopLevelMixin], label: str) -> Markup:
    """The drawings for a wide page and for a phone, as images with the text `label`."""
    wide, narrow = (_svg(draw(width), label) for width in WIDTHS)
    return Markup('<div class="chart wide">{}</div><div class="chart narrow">{}</div>').format(wide, narrow)


def _svg(chart: alt.TopLevelMixin, label: str) -> Markup:
    spec = {**chart.to_dict(), "config": _THEME["config"]}
    return Markup(_settled(vl_convert.vegalite_to_svg(spec), label))


def _settled(svg: str, label: str) -> str:
    """The drawing as one labeled image whose ids depend only on its content."""
    found = re.findall(r' id="(\w+)"', svg)
    numbers = {name: str(number) for number, name in enumerate(dict.fromkeys(found))}

    def named(prefix: str) -> str:
        return re.sub(r'( id="|url\(#)(\w+)', lambda id: f"{id[1]}{prefix}{numbers.get(id[2], id[2])}", svg)

    svg = named(f"c{hashlib.sha256((named('') + label).encode()).hexdigest()[:8]}-")
    svg = re.sub(r' (?:role|aria-[a-z]+)="[^"<>]*"', "", svg)
    for name, color in PALETTE.items():
        svg = svg.replace(f'"{color}"', f'"var(--{name})"')
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)


def symbol(currency: str) -> str:
    """The prefix of amounts in a currency."""
    return "$" if currency == "USD" else ""


def values(rows: Sequence[Row]) -> alt.Data:
    """Rows as the drawing library takes them."""
    return alt.Data(values=list(rows))


def plain(value: Decimal | float | None) -> float | None:
    """An amount rounded to the digits that a chart can show."""
    return None if value is None else round(float(value), 6)
