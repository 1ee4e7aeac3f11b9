"""Each page of the dashboard: what it asks of the marts, and the template that says it. No figure is computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jinja2

from pipelines.base.errors import TrainledgerError
from pipelines.dashboard import query as words
from pipelines.dashboard.explained import explain_page
from pipelines.dashboard.links import PAGES, Links, command
from pipelines.dashboard.reader import Reader, Volume
from pipelines.dashboard.runs import run_page, runs_page
from pipelines.exports.dictionary import lineage_told, marts_told
from pipelines.present import app_charts, charts
from pipelines.present.buckets import BUCKETS
from pipelines.present.formats import minuses
from pipelines.present.heat import heat_map
from pipelines.present.render import facts_of, failed_checks, templates

Asked = Mapping[str, str]
Told = dict[str, Any]


def render(reader: Reader, name: str, asked: Asked, links: Links | None = None) -> str:
    """The HTML of a page. NotFoundError for what is not there, UsageError for what cannot be asked."""
    as_of = words.text(asked, "as_of")
    volume = reader.read(as_of)
    return page(volume, name, asked, links or Links(as_of), as_of)


def page(volume: Volume, name: str, asked: Asked, links: Links, as_of: str = "") -> str:
    """The HTML of a page of an open publication."""
    told = KNOWN[name](volume, asked)
    return _page(name, links, facts=facts_of(volume.published), as_of=as_of, asked=asked, **told)


def mistake(reader: Reader, sentence: str, code: int, asked: Asked) -> str:
    """The page that says what is wrong."""
    try:
        facts = facts_of(reader.read().published)
    except TrainledgerError:
        facts = None
    return _page("mistake", Links(), facts=facts, as_of="", asked=asked, sentence=sentence, code=code)


def _page(name: str, links: Links, **told: Any) -> str:
    template = _templates().get_template(f"{name}.html.j2")
    page = template.render(name=name, menu=PAGES, links=links, command=command, bucket_meanings=BUCKETS, **told)
    return minuses(page).strip()


@cache
def _templates() -> jinja2.Environment:
    environment = templates("app")
    # A page that extends another sees nothing of what that one imports.
    for shared in ("names.j2", "macros.html.j2", "pieces.html.j2"):
        module = environment.get_template(shared).module
        environment.globals.update({name: getattr(module, name) for name in dir(module) if not name.startswith("_")})
    environment.globals |= {"draw": _drawn, "timeline_chart": app_charts.timeline_chart, "heat_map": heat_map}
    return environment


def _drawn(volume: Volume, kind: str, *rows: Any) -> Any:
    """A chart, drawn once for the same rows of one publication."""
    drawing = getattr(app_charts, kind, None) or getattr(charts, kind)
    return volume.keep((kind, repr(rows)), lambda: drawing(*rows))


def _overview(volume: Volume, asked: Asked) -> Told:
    return {**volume.page("overview"), "volume": volume, **_checked(volume)}


def _checked(volume: Volume) -> Told:
    checks = volume.published.checks
    return {"warnings": failed_checks(checks, "warn"), "errors": failed_checks(checks, "error")}


def _sides(volume: Volume, asked: Asked) -> Told:
    told = volume.page("sides")
    at = words.number(asked, "pair", 1, max(1, len(told["pairs"])))
    return {**told, "at": at, "volume": volume}


def _commitments(volume: Volume, asked: Asked) -> Told:
    month, months = _month(volume, asked, "detail_commitment_coverage_hourly", "usage_date")
    known = volume.page("commitments_known")
    kinds = [row["word"] for row in known["kinds"]]
    kind = words.choice(asked, "commitment", kinds, kinds[0] if kinds else "")
    family = words.choice(asked, "silicon", [row["word"] for row in known["families"]])
    told = volume.page("commitments", {"month": month, "kind": kind, "family": family})
    chosen = {"month": month, "months": months, "kind": kind, "kinds": kinds, "family": family}
    return {**told, **chosen, "families": [row["word"] for row in known["families"]], "volume": volume}


def _ledger(volume: Volume, asked: Asked) -> Told:
    month, months = _month(volume, asked, "mart_cost_ledger_daily")
    known = volume.page("ledger_known")
    buckets = [row["bucket"] for row in known["buckets"]]
    bucket = words.choice(asked, "bucket", buckets)
    told = volume.page("ledger", {"month": month, "bucket": bucket})
    return {**told, "month": month, "months": months, "bucket": bucket, "buckets": buckets}


def _bill(volume: Volume, asked: Asked) -> Told:
    deliveries = volume.published.inputs["deliveries"]
    return {**volume.page("bill"), **_checked(volume), "deliveries": deliveries}


def _dictionary(volume: Volume, asked: Asked) -> Told:
    wanted = words.text(asked, "q").lower()
    marts = [
        {**mart, "columns": [column for column in mart["columns"] if _says(wanted, mart["name"], *column)]}
        for mart in marts_told()
    ]
    return {"marts": [mart for mart in marts if mart["columns"]], "wanted": wanted}


def _says(wanted: str, *parts: str) -> bool:
    return not wanted or any(wanted in part.lower() for part in parts)


def _lineage(volume: Volume, asked: Asked) -> Told:
    return {"layers": lineage_told()}


def _month(volume: Volume, asked: Asked, mart: str, column: str = "billing_month") -> tuple[str, list[str]]:
    """The month asked for, else the newest, and all there are; as YYYY-MM."""
    if mart not in {key.rpartition("/")[2] for key in volume.published.tables}:
        return "", []
    rows = volume.rows(f"select distinct date_trunc('month', {column}) as month_date from {mart} order by 1 desc")
    months = [f"{row['month_date']:%Y-%m}" for row in rows]
    return words.choice(asked, "month", months, months[0] if months else ""), months


KNOWN: dict[str, Callable[[Volume, Asked], Told]] = {
    "overview": _overview,
    "runs": runs_page,
    "run": run_page,
    "sides": _sides,
    "commitments": _commitments,
    "ledger": _ledger,
    "bill": _bill,
    "dictionary": _dictionary,
    "lineage": _lineage,
    "explain": explain_page,
}
