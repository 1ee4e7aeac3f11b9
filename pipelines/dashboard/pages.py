"""The pages of the dashboard: the queries and the template of each. No figure is computed here."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jinja2

from pipelines.base.errors import TrainledgerError
from pipelines.dashboard import query as parameters
from pipelines.dashboard.explained import explain_page
from pipelines.dashboard.links import PAGES, Links, command
from pipelines.dashboard.reader import Reader, Volume
from pipelines.dashboard.runs import run_page, runs_page
from pipelines.exports.dictionary import lineage_layers, mart_pages
from pipelines.models.warnings import check_counts, failed_checks
from pipelines.present import app_charts, charts
from pipelines.present.buckets import BUCKETS
from pipelines.present.render import facts_of, templates

Request = Mapping[str, str]
Context = dict[str, Any]


def render(reader: Reader, name: str, request: Request, links: Links | None = None) -> str:
    """The HTML of a page. NotFoundError for what is not there, UsageError for a wrong parameter."""
    as_of = parameters.text(request, "as_of")
    volume = reader.read(as_of)
    return page(volume, name, request, links or Links(as_of), as_of)


def page(volume: Volume, name: str, request: Request, links: Links, as_of: str = "") -> str:
    """The HTML of a page of an open publication."""
    context = KNOWN[name](volume, request)
    return _page(name, links, facts=facts_of(volume.published), as_of=as_of, request=request, **context)


def mistake(reader: Reader, sentence: str, code: int, request: Request) -> str:
    """The page of an error."""
    try:
        facts = facts_of(reader.read().published)
    except TrainledgerError:
        facts = None
    return _page("mistake", Links(), facts=facts, as_of="", request=request, sentence=sentence, code=code)


def _page(name: str, links: Links, **context: Any) -> str:
    template = _templates().get_template(f"{name}.html.j2")
    return template.render(name=name, menu=PAGES, links=links, **context).strip()


@cache
def _templates() -> jinja2.Environment:
    drawings = {"draw": _drawn, "timeline_chart": app_charts.timeline_chart, "heat_map": charts.heat_map}
    return templates("app", command=command, **drawings)


def _drawn(volume: Volume, kind: str, *rows: Any) -> Any:
    """A chart, drawn once for the same rows of one publication."""
    drawing = getattr(app_charts, kind, None) or getattr(charts, kind)
    return volume.keep((kind, repr(rows)), lambda: drawing(*rows))


def _checked(volume: Volume) -> Context:
    checks = volume.published.checks
    passed, every = check_counts(checks)
    counts = {"passed_check_count": passed, "check_count": every, "deliveries": volume.published.inputs["deliveries"]}
    return counts | {"warnings": failed_checks(checks, "warn"), "errors": failed_checks(checks, "error")}


def _sides(volume: Volume, request: Request) -> Context:
    context = volume.page("sides")
    at = parameters.number(request, "pair", 1, max(1, len(context["pairs"])))
    return {**context, "at": at, "volume": volume}


def _commitments(volume: Volume, request: Request) -> Context:
    month, months = _month(volume, request, "detail_commitment_coverage_hourly", "usage_date")
    known = volume.page("commitments_known")
    kinds = [row["word"] for row in known["kinds"]]
    kind = parameters.choice(request, "commitment", kinds, kinds[0] if kinds else "")
    family = parameters.choice(request, "silicon", [row["word"] for row in known["families"]])
    context = volume.page("commitments", {"month": month, "kind": kind, "family": family})
    chosen = {"month": month, "months": months, "kind": kind, "kinds": kinds, "family": family}
    return {**context, **chosen, "families": [row["word"] for row in known["families"]], "volume": volume}


def _ledger(volume: Volume, request: Request) -> Context:
    month, months = _month(volume, request, "mart_cost_ledger_daily")
    bucket = parameters.choice(request, "bucket", BUCKETS)
    context = volume.page("ledger", {"month": month, "bucket": bucket})
    return {**context, "month": month, "months": months, "bucket": bucket}


def _teams(volume: Volume, request: Request) -> Context:
    month, months = _month(volume, request, "mart_team_cost_monthly")
    return {**volume.page("teams", {"month": month}), "month": month, "months": months}


def _dictionary(volume: Volume, request: Request) -> Context:
    wanted = parameters.text(request, "q").lower()
    marts = []
    for mart in mart_pages():
        columns = [c for c in mart["columns"] if any(wanted in part.lower() for part in (mart["name"], *c))]
        marts += [{**mart, "columns": columns}] if columns else []
    return {"marts": marts, "wanted": wanted}


def _month(volume: Volume, request: Request, mart: str, column: str = "billing_month") -> tuple[str, list[str]]:
    """The requested month, else the newest, and all months; as YYYY-MM."""
    if mart not in {key.rpartition("/")[2] for key in volume.published.tables}:
        return "", []
    rows = volume.rows(f"select distinct date_trunc('month', {column}) as month_date from {mart} order by 1 desc")
    months = [f"{row['month_date']:%Y-%m}" for row in rows]
    return parameters.choice(request, "month", months, months[0] if months else ""), months


KNOWN: dict[str, Callable[[Volume, Request], Context]] = {
    "overview": lambda volume, request: {**volume.page("overview"), "volume": volume, **_checked(volume)},
    "runs": runs_page,
    "run": run_page,
    "sides": _sides,
    "commitments": _commitments,
    "teams": _teams,
    "ledger": _ledger,
    "bill": lambda volume, request: {**volume.page("bill"), **_checked(volume)},
    "dictionary": _dictionary,
    "lineage": lambda volume, request: {"layers": lineage_layers()},
    "explain": explain_page,
}
