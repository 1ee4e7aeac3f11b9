"""Charts as inline SVG: no script, no external font, the same bytes for the same figures.

Each chart is drawn twice, for a wide page and for a phone; the style sheet shows one. Colors are CSS
variables of the page, so a chart follows its light and dark themes; shape or position always repeats the
color. A function draws for one width; templates call it by its name with what follows the width, and a label.
"""

import hashlib
import re
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import wraps
from itertools import pairwise
from typing import Any

import altair as alt
import vl_convert
import yaml
from altair.utils.schemapi import debug_mode
from markupsafe import Markup, escape

from pipelines.base import resources
from pipelines.present.formats import month, unit_usd, usd

Row = Mapping[str, Any]
Chart = alt.TopLevelMixin

_THEME = yaml.safe_load((resources.DASHBOARDS / "charts.yml").read_text(encoding="utf-8"))
PALETTE: dict[str, str] = _THEME["palette"]
SHAPES = {"gpu": "circle", "trainium": "diamond"}
# Of the text column, on a wide page and on a phone.
WIDTHS = (1080, 350)
# The length of the label of an attempt.
_LABEL_PIXELS = 70
_INK = PALETTE["ink"]
# Whether charts are compared with the schema of Vega-Lite, which takes longer than drawing them: in tests.
CHECKED = False
_SAVINGS = ("saving", "saving_low", "saving_high")

CHARTS: dict[str, Callable[..., Markup]] = {}
"""What templates draw, by name."""


def _named(draw: Callable[..., Chart]) -> Callable[..., Markup]:
    @wraps(draw)
    def drawn(*about: Any) -> Markup:
        *rows, label = about
        return figure(lambda width: draw(width, *rows), label)

    CHARTS[draw.__name__] = drawn
    return drawn


@_named
def pair_chart(width: int, pair: Row, runs: Sequence[Row], currency: str, unit: str) -> Chart:
    """Every compared run of a GPU and Trainium pair on one scale, with the cost per success of each family.

    `runs` are those of the pair's workload; the measure drawn is the pair's, effective basis.
    """
    measure = f"{pair['unit_measure']}_usd"
    means_by_side = {
        ("gpu", pair["baseline_instance_type"]): pair["baseline_unit_cost_usd"],
        ("trainium", pair["candidate_instance_type"]): pair["candidate_unit_cost_usd"],
    }
    marks = [
        {"side": run["instance_type"], "family": run["accelerator_family"], "usd": _plain(run[measure])}
        for run in runs
        if (run["accelerator_family"], run["instance_type"]) in means_by_side and run[measure] is not None
    ]
    means = [{"side": side, "family": family, "usd": _plain(mean)} for (family, side), mean in means_by_side.items()]
    amounts = _money(currency, _fitting(width, 3), ",~r")
    across = alt.X("usd:Q", title=unit, scale=alt.Scale(zero=True, nice=True), axis=amounts)
    down = alt.Y("side:N", title=None, sort=[side for _, side in means_by_side], axis=_names_axis())
    families = list(SHAPES)
    scale = alt.Scale(domain=families, range=[PALETTE[family] for family in families])
    shape = alt.Shape("family:N", legend=None, scale=alt.Scale(domain=families, range=list(SHAPES.values())))
    run = _chart(marks).mark_point(filled=True, size=95, opacity=0.85)
    mean = _chart(means).mark_tick(thickness=2.5, size=34, color=_INK, opacity=1)
    color = alt.Color("family:N", legend=None, scale=scale)
    layers = mean.encode(x=across, y=down) + run.encode(x=across, y=down, color=color, shape=shape)
    return layers.properties(width=width - 160, height=96)


@_named
def ledger_chart(width: int, days: Sequence[Row], buckets: Mapping[str, str], currency: str) -> Chart:
    """Dollars a day, one band per bucket that has any. `buckets` gives the bands in order and their names.

    The bucket `run` has a scale of its own, the others share one: next to runs they would be too low to see.
    """
    bands = [bucket for bucket in buckets if any(row["bucket"] == bucket for row in days)]
    dates = [row["usage_date"] for row in days]
    span = [_hour(min(dates)), _hour(max(dates), 20)]

    def band(bucket: str) -> alt.Chart:
        is_last = bucket == bands[-1]
        most = _fitting(width, 4, 10)
        count = most if len({*dates}) > most else alt.TimeIntervalStep(interval="day", step=1)
        ticks = alt.Axis(format="%-d %b", labels=is_last, ticks=is_last, tickCount=count, title=None)
        bars = [
            {
                "day": _hour(row["usage_date"]),
                "until": _hour(row["usage_date"], 20),
                "usd": _plain(row["effective_cost_usd"]),
            }
            for row in days
            if row["bucket"] == bucket
        ]
        return (
            _chart(bars, buckets[bucket])
            .mark_bar(color=PALETTE["used" if bucket == "run" else "unused"])
            .encode(
                x=alt.X("day:T", scale=alt.Scale(type="utc", domain=span), axis=ticks),
                x2="until:T",
                y=alt.Y("usd:Q", title=None, axis=_money(currency, 2, minExtent=54, maxExtent=54)),
                y2=alt.datum(0),
            )
            .properties(width=width - 70, height=54)
        )

    runs = [band(bucket) for bucket in bands if bucket == "run"]
    others = [band(bucket) for bucket in bands if bucket != "run"]
    shared = [alt.vconcat(*others, spacing=14).resolve_scale(y="shared")] if others else []
    return alt.vconcat(*runs, *shared, spacing=14)


@_named
def waterfall_chart(width: int, pair: Row, parts: Sequence[Row], names: Mapping[str, str], unit: str) -> Chart:
    """From the GPU's unit cost to Trainium's, one floating bar per factor, labeled with what it saves.

    A factor that is not measured has no bar.

    `parts` are the factors of the pair, `names` what each is called, `unit` what the axis is called.
    """
    bars: list[dict[str, Any]] = []

    def add(name: str, start: Decimal | int, end: Decimal, kind: str, shown: Decimal) -> None:
        low, high = _plain(min(start, end)), _plain(max(start, end))
        bars.append({"name": name, "low": low, "high": high, "kind": kind, "label": unit_usd(shown, pair["currency"])})

    at = pair["baseline_unit_cost_usd"]
    add(pair["baseline_instance_type"], 0, at, "gpu", at)
    for part in parts:
        saved = part["cost_part_usd"]
        if saved is not None:
            # A factor that makes Trainium cheaper goes down.
            kind = "less" if saved > 0 else "more"
            add(names.get(part["factor"], part["factor"]), at, at - saved, kind, saved)
            at -= saved
    end = pair["candidate_unit_cost_usd"]
    add(pair["candidate_instance_type"], 0, end, "trainium", end)
    kinds = {"gpu": PALETTE["gpu"], "trainium": PALETTE["trainium"], "less": PALETTE["used"], "more": PALETTE["unused"]}
    down = alt.Y("name:N", title=None, sort=[row["name"] for row in bars], axis=_names_axis())
    across = alt.X("low:Q", title=unit, axis=_money(pair["currency"], _fitting(width, 3), ",~r"))
    color = alt.Color("kind:N", legend=None, scale=alt.Scale(domain=list(kinds), range=list(kinds.values())))
    bar = _chart(bars).mark_bar(height=16).encode(x=across, x2="high:Q", y=down, color=color)
    text = _chart(bars).mark_text(align="left", dx=6, fontSize=12, color=_INK)
    labels = text.encode(x=alt.X("high:Q"), y=down, text="label:N")
    return (bar + labels).properties(width=width - 160 - 70, height=30 * len(bars))


@_named
def break_even_chart(width: int, port: Row, currency: str) -> Chart:
    """The net result of a port by number of runs, with the interval of the saving.

    A circle shows break-even, where the line crosses zero; a diamond the actual runs and their result. The interval is
    cut where it goes far beyond the line, which would look flat.
    """
    needed = port["break_even_run_count"] or 0
    runs = max(2 * needed, 2 * (port["realized_run_count"] or 0), 10)
    cost = _plain(port["port_cost_usd"]) or 0.0
    rows = [
        {"runs": at, **{name: at * (_plain(port[f"{name}_per_run_usd"]) or 0.0) - cost for name in _SAVINGS}}
        for at in (0, runs)
    ]
    done = [{"runs": port["realized_run_count"], "saving": _plain(port["realized_net_usd"])}]
    x = alt.X("runs:Q", title="runs since the port", axis=alt.Axis(tickCount=_fitting(width, 4)))
    reached = [row["saving"] for row in [*rows, *done] if row["saving"] is not None]
    room = (max(0.0, *reached) - min(0.0, *reached)) or 1.0
    scale = alt.Scale(domain=[min(0.0, *reached) - room / 2, max(0.0, *reached) + room / 2], nice=True)
    y = alt.Y("saving:Q", title=None, axis=_money(currency, 5, minExtent=60), scale=scale)
    line = _chart(rows).mark_line(color=PALETTE["trainium"], strokeWidth=2).encode(x=x, y=y)
    zero = _chart([{"saving": 0}]).mark_rule(color=_INK).encode(y="saving:Q")
    layers = [zero, line]
    if port["saving_low_per_run_usd"] is not None:
        band = _chart(rows).mark_area(color=PALETTE["trainium"], opacity=0.18, clip=True)
        layers.insert(0, band.encode(x=x, y=alt.Y("saving_low:Q", scale=scale), y2="saving_high:Q"))
    if needed:
        circle = _chart([{"runs": needed, "saving": 0}]).mark_point(size=90, color=_INK)
        layers.append(circle.encode(x=x, y=y))
    if done[0]["saving"] is not None:
        layers.append(_chart(done).mark_point(shape="diamond", filled=True, size=90, color=_INK).encode(x=x, y=y))
    return alt.layer(*layers).properties(width=width - 80, height=170)


# Of the lines of a trend: what sets them apart in color and in gray.
_LINES = (("gpu", [1, 0]), ("trainium", [6, 3]), ("unused", [2, 2]), ("ink", [10, 3]), ("quiet", [8, 3, 2, 3]))


@_named
def trend_chart(width: int, lines: Sequence[tuple[str, Sequence[Row], str]], currency: str) -> Chart:
    """A line per name, at most five, over the billing months of its rows; each with the column that is drawn."""
    points = [
        {"line": name, "month": row["billing_month"].isoformat(), "usd": _plain(row[column])}
        for name, rows, column in lines
        for row in rows
    ]
    months = sorted({point["month"] for point in points})
    shown = months[:: -(-len(months) // _fitting(width, 4, 12))]
    ticks = alt.Axis(format="%b %Y", values=shown, title=None, labelAngle=0)
    x = alt.X("month:T", scale=alt.Scale(type="utc"), axis=ticks)
    y = alt.Y("usd:Q", title=None, axis=_money(currency, 4, minExtent=60))
    return _drawn_lines(points, x, y, width, has_points=True)


@_named
def token_cost_chart(width: int, days: Sequence[Row], names: Mapping[str, str], currency: str) -> Chart:
    """Cost per million tokens by day, a line for each model and what serves it; colors repeat after five.

    `names` are those of platforms.
    """
    points = [
        {
            "line": f"{row['model']}, {row['instance_type'] or names.get(row['platform'], row['platform'])}",
            "day": _hour(row["usage_date"]),
            "usd": _plain(row["cost_per_million_total_usd"]),
        }
        for row in days
    ]
    x = alt.X("day:T", scale=alt.Scale(type="utc"), axis=alt.Axis(format="%-d %b", tickCount=4, title=None))
    amounts = _money(currency, 4, ",~r", minExtent=60, title=None)
    # A line of one day has no length.
    has_points = 1 in Counter(point["line"] for point in points).values()
    return _drawn_lines(points, x, alt.Y("usd:Q", scale=alt.Scale(type="log"), axis=amounts), width, has_points)


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
    mark = _chart(points).mark_line(strokeWidth=2, point=dots)
    drawn = mark.encode(x=x, y=y, color=alt.Color("line:N", scale=scale, legend=legend), strokeDash=dash)
    return drawn.properties(width=width - 80, height=170)


@_named
def crossover_chart(width: int, way: Row, currency: str) -> Chart:
    """Cost a month by tokens a month: by the token a slope, by the hour a level; marks where they cross and today."""
    crossing, today = float(way["crossover_tokens_per_month"]) / 1e9, float(way["tokens_per_month"]) / 1e9
    slope = float(way["blended_price_usd"]) * 1e3
    level, most = crossing * slope, 1.25 * max(crossing, today)
    marks = [{"tokens": crossing, "usd": level, "name": "crossover"}]
    rules = [{"tokens": today, "name": "today"}]
    names = [{"tokens": most, "usd": most * slope, "name": "by the token"}]
    names.append({"tokens": most, "usd": level, "name": "by the hour"})
    x = alt.X("tokens:Q", title="billion tokens a month", axis=alt.Axis(tickCount=_fitting(width, 4)))
    line = _chart([{"tokens": at, "token": at * slope, "hour": level} for at in (0.0, most)])
    y = alt.Y("token:Q", title=None, axis=_money(currency, 4, minExtent=54))
    by_token = line.mark_line(color=PALETTE["used"]).encode(x=x, y=y)
    by_hour = line.mark_line(color=PALETTE["gpu"], strokeDash=[6, 3]).encode(x=x, y="hour:Q")
    rule = _chart(rules).mark_rule(color=_INK).encode(x=x)
    point = _chart(marks).mark_point(shape="diamond", filled=True, size=90, color=_INK, opacity=1)
    named = _chart(names).mark_text(align="right", dy=-8, fontSize=12, color=_INK)
    today_name = _chart(rules).mark_text(align="left", dx=5, fontSize=12, color=_INK)
    layers = [by_hour, by_token, rule, point.encode(x=x, y="usd:Q"), named.encode(x=x, y="usd:Q", text="name:N")]
    layers.append(today_name.encode(x=x, y=alt.value(8), text="name:N"))
    return alt.layer(*layers).properties(width=width - 80, height=170)


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
    return next(number for number, (top, _, _) in enumerate(CLASSES) if top is None or float(ratio) <= top)


@_named
def heat_map(width: int, hours: Sequence[Row]) -> Chart:
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
    shown = days if width > WIDTHS[-1] else [day for day in days if day == 1 or day % 5 == 0]
    x_axis = alt.Axis(orient="top", values=shown, labelAngle=0, ticks=False, domain=False)
    clock = "pad(datum.value, 2, '0', 'left') + ':00'"
    y_axis = alt.Axis(values=[0, 6, 12, 18], labelExpr=clock, ticks=False, domain=False)
    x = alt.X("day:O", title=None, scale=alt.Scale(domain=days, paddingInner=0.06), axis=x_axis)
    y = alt.Y("hour:O", title=None, scale=alt.Scale(domain=list(range(24)), paddingInner=0.15), axis=y_axis)
    legend = alt.Legend(title=None, orient="bottom", columns=_fitting(width, 3, 5))
    scale = alt.Scale(type="ordinal", domain=labels[1:], range=[opacity for _, opacity, _ in CLASSES[1:]])
    opacity = alt.Opacity("covered:N", scale=scale, legend=legend)
    covered = _chart([cell for cell in cells if cell["covered"] != labels[0]])
    empty = _chart([cell for cell in cells if cell["covered"] == labels[0]])
    frames = empty.mark_rect(fillOpacity=0, stroke=PALETTE["unused"], strokeWidth=0.8).encode(x=x, y=y)
    filled = covered.mark_rect(color=PALETTE["used"]).encode(x=x, y=y, opacity=opacity)
    return (filled + frames).properties(width=width - 60, height=170)


@_named
def month_chart(width: int, rows: Sequence[Row], names: Mapping[str, str], currency: str) -> Chart:
    """Dollars per month, one band for each of `names` with any, all on one scale."""
    bands = [name for name in names if any(row["silicon"] == name for row in rows)]
    months = [month(day) for day in sorted({row["billing_month"] for row in rows})]

    def band(name: str) -> alt.LayerChart | alt.FacetChart:
        ticks = alt.Axis(labels=name == bands[-1], ticks=False, title=None, labelAngle=0, labelOverlap=True)
        across = alt.X("month:N", sort=months, scale=alt.Scale(domain=months), axis=ticks)
        costs = [(month(row["billing_month"]), row["effective_cost_usd"]) for row in rows if row["silicon"] == name]
        bars = [{"month": when, "usd": _plain(cost), "label": usd(cost, currency)} for when, cost in costs]
        chart = _chart(bars, names[name])
        color = PALETTE[name if name in ("gpu", "trainium", "unused") else "quiet"]
        bar = chart.mark_bar(color=color, size=min(46, max(4, (width - 80) // (2 * len(months)))))
        down = alt.Y("usd:Q", title=None, axis=_money(currency, 2, minExtent=60, maxExtent=60))
        layers = [bar.encode(x=across, y=down)]
        if len(months) <= 12 and width > 90 * len(months):
            text = chart.mark_text(dy=-7, fontSize=12, color=_INK)
            layers.append(text.encode(x=across, y=down, text="label:N"))
        return alt.layer(*layers).properties(width=width - 80, height=76)

    return alt.vconcat(*(band(name) for name in bands), spacing=16).resolve_scale(y="shared")


@_named
def timeline_chart(width: int, stretches: Sequence[Row], checkpoints: Sequence[Row], names: Mapping[str, str]) -> Chart:
    """The timeline of a run, a lane per phase: filled where productive, a frame where wasted, a mark per checkpoint.

    What a pixel would hold is drawn as one.
    """
    pixel = (max(row["ended_at"] for row in stretches) - min(row["started_at"] for row in stretches)) / (width - 160)
    bars: list[dict[str, Any]] = []
    newest: dict[tuple[str, bool], dict[str, Any]] = {}
    for row in stretches:
        lane, is_wasted = names.get(row["phase"], row["phase"]), row["waste_cause"] != "none"
        last = newest.get((lane, is_wasted))
        if last and row["ended_at"] - last["until"] < pixel:
            last["until"] = max(last["until"], row["ended_at"])
        else:
            new = {"lane": lane, "at": row["started_at"], "until": row["ended_at"], "is_wasted": is_wasted}
            bars.append(new)
            newest[lane, is_wasted] = new
    bars = [{**one, "at": _instant(one["at"]), "until": _instant(one["until"])} for one in bars]
    saved = [
        {"lane": "Checkpoints", "at": _instant(at)} for at in _apart((c["durable_at"] for c in checkpoints), pixel)
    ]
    begun = {
        row["started_at"]: f"attempt {row['attempt_no']}"
        for before, row in pairwise(stretches)
        if before["attempt_no"] != row["attempt_no"]
    }
    labeled = _apart(begun, _LABEL_PIXELS * pixel)
    attempts = [
        {"at": _instant(at), "label": begun[at] if at in labeled else ""}
        for at in sorted(labeled | _apart(begun, pixel))
    ]
    used = {bar["lane"] for bar in bars}
    lanes = [name for name in names.values() if name in used]
    lanes += [*sorted(used - set(lanes)), *["Checkpoints"] * bool(saved)]
    ticks = alt.Axis(format="%d %b %H:%M", tickCount=_fitting(width, 2), title=None)
    x = alt.X("at:T", scale=alt.Scale(type="utc"), axis=ticks)
    y = alt.Y("lane:N", title=None, scale=alt.Scale(domain=lanes), axis=_names_axis())

    def bar(color: str, is_wasted: bool) -> alt.Chart:
        part = _chart([bar for bar in bars if bar["is_wasted"] == is_wasted])
        mark = part.mark_bar(height=14, color=PALETTE[color], stroke=PALETTE[color], fillOpacity=1 - is_wasted)
        return mark.encode(x=x, x2="until:T", y=y)

    mark = _chart(saved).mark_point(shape="diamond", filled=True, size=60, opacity=1, color=_INK)
    starts = _chart(attempts)
    rule = starts.mark_rule(strokeDash=[2, 3], color=_INK).encode(x=x)
    text = starts.mark_text(align="left", dx=4, color=PALETTE["quiet"]).encode(x=x, y=alt.value(-6), text="label:N")
    layers = alt.layer(bar("used", False), bar("unused", True), mark.encode(x=x, y=y), rule, text)
    return layers.properties(width=width - 160, height=24 * len(lanes))


def _apart(moments: Iterable[datetime], gap: timedelta) -> Set[datetime]:
    """The moments, in their order, that are at least so long after the one before."""
    found: dict[datetime, None] = {}
    latest = None
    for at in sorted(moments):
        if latest is None or at - latest >= gap:
            found[latest := at] = None
    return found.keys()


def _chart(rows: Sequence[Row], title: str = "") -> alt.Chart:
    """A drawing of rows; `title` is the heading of one of several bands."""
    data = alt.Data(values=list(rows))
    if not title:
        return alt.Chart(data)
    return alt.Chart(data, title=alt.Title(title, anchor="start", fontSize=13, fontWeight=600, color=_INK, offset=6))


def _names_axis() -> alt.Axis:
    """Names at the edge of the page, with room for fonts wider than the library's."""
    return alt.Axis(ticks=False, domain=False, labelAlign="left", labelPadding=130, minExtent=130)


def _money(currency: str, ticks: int, form: str = ",.0f", **more: Any) -> alt.Axis:
    """Amounts in whole dollars, or in another `form` of d3."""
    return alt.Axis(format=("$" if currency == "USD" else "") + form, tickCount=ticks, **more)


def _fitting(width: int, narrow: int, wide: int = 8) -> int:
    """How many marks an axis has room for."""
    return wide if width > WIDTHS[-1] else narrow


def figure(draw: Callable[[int], Chart], label: str) -> Markup:
    """The drawings for a wide page and for a phone, as images with the text `label`."""
    with debug_mode(CHECKED):
        charts = [draw(width).to_dict(validate=CHECKED) for width in WIDTHS]
    specs = ({**chart, "config": _THEME["config"]} for chart in charts)
    wide, narrow = (Markup(_settled(vl_convert.vegalite_to_svg(spec), label)) for spec in specs)
    return Markup('<div class="chart wide">{}</div><div class="chart narrow">{}</div>').format(wide, narrow)


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


def _plain(value: Decimal | float | None) -> float | None:
    """An amount rounded to the digits that a chart can show."""
    return None if value is None else float(f"{value:.9g}")


def _hour(day: date, hour: int = 0) -> str:
    return f"{day.isoformat()}T{hour:02}:00:00Z"


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}Z"
