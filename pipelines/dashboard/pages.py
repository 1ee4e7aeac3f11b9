"""The pages of the dashboard: the queries and the template of each. No figure is computed here."""

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any

import polars as pl

from pipelines.base.errors import TrainledgerError, UsageError
from pipelines.config.access import Teams
from pipelines.dashboard import query as parameters
from pipelines.dashboard.graph import drawn
from pipelines.dashboard.links import PAGES, Links, command
from pipelines.dashboard.lists import chosen_month, ledger_page, run_page, runs_page
from pipelines.dashboard.query import NotFoundError, WithheldError
from pipelines.dashboard.reader import Reader, Volume
from pipelines.explain.lines import behind, question_of
from pipelines.explain.names import look_up
from pipelines.explain.tables import agreed, parts
from pipelines.exports.dictionary import lineage_layers, mart_pages
from pipelines.models.marts import readable
from pipelines.models.warehouse import published_of
from pipelines.models.warnings import check_counts, failed_checks
from pipelines.present.charts import CHARTS
from pipelines.present.csv_text import csv_text
from pipelines.present.render import templates

Request = Mapping[str, str]
Context = dict[str, Any]


def render(reader: Reader, name: str, request: Request, teams: Teams = None) -> str:
    """The HTML of a page, as a reader of `teams` sees it.

    NotFoundError for what is not there, WithheldError for what shows more than these teams, UsageError for a wrong
    parameter.
    """
    as_of = parameters.text(request, "as_of")
    _refuse_withheld(name, teams)
    has_lines = teams is None and not reader.warehouse.settings.privacy.pseudonyms
    return page(reader.read(as_of, teams), name, request, Links(as_of, has_lines=has_lines), as_of)


def page(volume: Volume, name: str, request: Request, links: Links, as_of: str = "") -> str:
    """The HTML of a page of an open publication."""
    context = KNOWN[name](volume, request)
    csv, published = partial(links.rows, name, request), volume.published
    return _page(name, links, volume.teams, published=published, as_of=as_of, request=request, csv=csv, **context)


def csv_rows(reader: Reader, request: Request, teams: Teams = None) -> tuple[str, str]:
    """A file name, and as csv with every digit what a table of a page shows, or a whole public table, as `render`."""
    volume = reader.read(parameters.text(request, "as_of"), teams)
    public = [name.rpartition(".")[2] for name in readable(volume.published.tables, teams)]
    table = parameters.choice(request, "table", public)
    if table:
        return f"{table}.csv", csv_text(volume.frame(f"select * from {table}"))
    name = parameters.choice(request, "from", KNOWN, "overview")
    _refuse_withheld(name, teams)
    context = KNOWN[name](volume, request)
    lists = {key: value for key, value in context.items() if isinstance(value, list)}
    tables = [key for key, value in lists.items() if all(isinstance(row, dict) for row in value)]
    rows = parameters.choice(request, "list", tables)
    frame = pl.DataFrame(context[rows] if rows else [], infer_schema_length=None)
    file = "-".join(filter(None, [name, rows, context.get("month")]))
    return f"{file}.csv", csv_text(frame.select(pl.exclude(pl.List, pl.Struct)))


def mistake(reader: Reader, sentence: str, code: int, request: Request, teams: Teams = None) -> str:
    try:
        published = published_of(reader.warehouse)
    except TrainledgerError:
        published = None
    return _page(
        "mistake", Links(), teams, published=published, as_of="", request=request, sentence=sentence, code=code
    )


def _refuse_withheld(name: str, teams: Teams) -> None:
    if teams is not None and name not in TEAM_PAGES:
        shown = ", ".join(PAGES[page] for page in TEAM_PAGES if page in PAGES)
        raise WithheldError(f"That page is about all teams, and you see {', '.join(teams) or 'none'}; open {shown}.")


def _page(name: str, links: Links, teams: Teams, **context: Any) -> str:
    template = templates("app", command=command, draw=_drawn).get_template(f"{name}.html.j2")
    menu = {page: title for page, title in PAGES.items() if teams is None or page in TEAM_PAGES}
    around = {"name": name, "menu": menu, "links": links, "teams": teams, "month": ""}
    return template.render(**{**around, **context}).strip()


def _drawn(volume: Volume, kind: str, *rows: Any) -> Any:
    """A chart, drawn once for the same rows of one publication."""
    return volume.keep((kind, repr(rows)), lambda: CHARTS[kind](*rows))


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
    month, months = chosen_month(volume, request)
    known = volume.page("commitments_known")
    kinds = [row["word"] for row in known["kinds"]]
    kind = parameters.choice(request, "commitment", kinds, kinds[0] if kinds else "")
    family = parameters.choice(request, "silicon", [row["word"] for row in known["families"]])
    context = volume.page("commitments", {"month": month, "kind": kind, "family": family})
    chosen = {"month": month, "months": months, "kind": kind, "kinds": kinds, "family": family}
    return {**context, **chosen, "families": [row["word"] for row in known["families"]], "volume": volume}


def _teams(volume: Volume, request: Request) -> Context:
    month, months = chosen_month(volume, request)
    context = volume.page("teams", month=f"date '{month or '1970-01'}-01'")
    return {**context, "month": month, "months": months, "volume": volume}


def _lineage(volume: Volume, request: Request) -> Context:
    layers = lineage_layers()
    tables = [table["name"] for layer in layers for table in layer["tables"]]
    table = parameters.choice(request, "table", tables)
    return {"layers": layers, "tables": tables, "chosen": table, "graph": drawn(table)}


def _dictionary(volume: Volume, request: Request) -> Context:
    wanted = parameters.text(request, "q").lower()
    marts = []
    for mart in mart_pages():
        columns = [c for c in mart["columns"] if any(wanted in part.lower() for part in (mart["name"], *c))]
        marts += [{**mart, "columns": columns}] if columns else []
    return {"marts": marts, "wanted": wanted}


# What `explain_page` explains, as `trainledger explain` does, and by which options.
_KINDS = ("run", "day", "month", "invoice", "name")
_OPTIONS = ("bucket", "account", "payer", "category", "service", "family", "currency", "month")
# Rows of each level; the others are summed in one.
_ROWS = 50
# One reader at a time: reading the bill takes seconds and much memory.
_TURN = Lock()


def explain_page(volume: Volume, request: Mapping[str, str]) -> dict[str, Any]:
    """The explanation that a request asks for. NotFoundError where there is none."""
    kind = parameters.choice(request, "kind", _KINDS)
    # Names of things to look up, as they are: what things are called is not ours to judge.
    word, options = request.get("word", ""), {name: request.get(name, "") for name in _OPTIONS}
    about = {"kind": kind, "word": word, "options": options, "named": None, "parts": []}
    if not kind:
        return about
    if volume.teams is not None and kind != "name":
        raise WithheldError("The bill lines behind a figure are of all teams; ask a reader of all of them.")
    if not word and kind != "invoice":
        raise UsageError(f"Enter the {kind} to explain in the field below.")
    if kind == "name":
        return {**about, "named": _found(lambda: look_up(word))}
    key = ("explain", kind, word, *options.values())
    parts, agreement, difference = volume.keep(key, lambda: _explained(volume, kind, word, options))
    return {**about, "parts": parts, "agreement": agreement, "difference": difference}


def _explained(volume: Volume, kind: str, word: str, options: Mapping[str, str]) -> tuple[Any, str, str]:
    filters = {name: value or None for name, value in options.items()}
    # An invoice that is not closed yet has no id.
    about = None if kind == "invoice" and not word and options["month"] else word
    with volume.turn:
        question = _found(lambda: question_of(volume.engine, kind, about, filters))
    with _TURN, behind(volume.warehouse, volume.published, question) as explanation:
        return list(parts(explanation, _ROWS)), agreed(explanation), explanation.difference()


def _found(look: Any) -> Any:
    try:
        return look()
    except UsageError as error:
        raise NotFoundError(str(error)) from None


# What a reader of chosen teams may open; the other pages compare teams or add them up.
TEAM_PAGES = ("teams", "runs", "run", "ledger", "dictionary", "lineage", "explain")
KNOWN: dict[str, Callable[[Volume, Request], Context]] = {
    "overview": lambda volume, request: {**volume.page("overview"), "volume": volume, **_checked(volume)},
    "runs": runs_page,
    "run": run_page,
    "sides": _sides,
    "serving": lambda volume, request: volume.page("serving"),
    "commitments": _commitments,
    "teams": _teams,
    "ledger": lambda volume, request: {**ledger_page(volume, request), "volume": volume},
    "bill": lambda volume, request: {**volume.page("bill"), **_checked(volume)},
    "dictionary": _dictionary,
    "lineage": _lineage,
    "explain": explain_page,
}
