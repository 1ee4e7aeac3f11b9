"""Turns a folder of dashboards/ and the published marts into one self-contained page.

`report.yml` holds the queries, `report.html.j2` the words and the layout; next to the folders are what all share: the
page around them, its macros and its style. A page is one document, in the XML syntax of HTML: browsers show it, and
pdf.py lays it out on paper. This module runs the queries and passes their rows to the template; it computes no figure.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
import yaml

from pipelines.base import resources
from pipelines.base.console import Console
from pipelines.base.dates import month_spans
from pipelines.base.errors import EngineError, UsageError
from pipelines.base.resources import MONTH
from pipelines.base.sql import tables_in
from pipelines.models.expressions import expand_calls
from pipelines.models.marts import of_other_revisions
from pipelines.models.warnings import check_counts, failed_checks
from pipelines.present.buckets import BUCKETS, DRAWN, DRAWN_BY_DAY, LABELS, UNUSED
from pipelines.present.charts import CHARTS
from pipelines.present.expectations import validated
from pipelines.present.formats import formats
from pipelines.warehouse.publication import Publication
from pipelines.warehouse.storage import fresh_file

Query = Callable[[str], pl.DataFrame]
Row = dict[str, Any]

PLAN, TEMPLATE = "report.yml", "report.html.j2"
# A chart shows no more days: they would be thinner than a line.
_DRAWN_DAYS = 92
SUMS: dict[str, str] = yaml.safe_load((resources.DASHBOARDS / "sums.yml").read_text(encoding="utf-8"))
_PARTS = {
    "{is_drawn_bucket}": f"bucket in ({', '.join(repr(bucket) for bucket in DRAWN_BY_DAY)})",
    # Bills correct days long before the months that are delivered.
    "{is_drawn}": f"usage_date > (select max(usage_date) from mart_cost_ledger_daily) - interval {_DRAWN_DAYS} day"
    " and usage_date >= (select min(billing_month) from mart_cost_ledger_daily)",
}
# In place of charts, where there are none.
_UNDRAWN: Mapping[str, Callable[..., Any]] = dict.fromkeys(CHARTS, lambda *values, **named: "")
# What XML has no way to write, each as a space.
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF), " ")


def report_page(
    query: Query,
    published: Publication,
    kind: str = "training_cost",
    month: str | None = None,
    *,
    is_drawn: bool = True,
) -> str:
    """The HTML of `dashboards/<kind>/`, the same for the same marts and publication; without charts unless `is_drawn`.

    A monthly report is about `month` (YYYY-MM), else the newest delivered one. `query` runs a SELECT over the marts by
    their bare names; a part of the page whose mart is missing shows that. UsageError for an unknown month, and marts of
    another revision that do not fill the report; EngineError when a query fails on a mart that exists.
    """
    months = published.billing_months
    if month is not None and month not in months:
        raise UsageError(f"--month {month} is not a delivered billing month; choose one of {month_spans(months)}.")
    about, plan = date.fromisoformat(f"{month or months[-1]}-01"), plan_of(kind)
    queries = {name: sql.replace(MONTH, f"date '{about}'") for name, sql in queries_of(plan["queries"]).items()}
    rows, missing = answers(resources.DASHBOARDS / kind / PLAN, queries, query, published)
    template = templates(**{} if is_drawn else _UNDRAWN).get_template(f"{kind}/{TEMPLATE}")
    page = template.render(
        title=plan["title"],
        published=published,
        about_month=about,
        missing=missing,
        currencies=list(dict.fromkeys(row["currency"] for row in rows.get("totals", []))),
        warnings=failed_checks(published.checks, "warn"),
        errors=failed_checks(published.checks, "error"),
        error_check_count=check_counts(published.checks, "error")[1],
        validated_by_suite=validated,
        **rows,
    )
    return page.translate(_CONTROLS).strip() + "\n"


def queries_of(written: Mapping[str, Any]) -> dict[str, str]:
    """The SELECT of each query of a report: as written, or the sum of sums.yml that it names, of its own rows.

    `include` names files of queries that several pages share.
    """
    named: dict[str, Any] = {}
    for file in written.get("include", ()):
        named |= yaml.safe_load((resources.DASHBOARDS / file).read_text())
    named |= {name: query for name, query in written.items() if name != "include"}
    return {name: query if isinstance(query, str) else sum_of(**query) for name, query in named.items()}


def sum_of(sum: str, where: str = "true", mart: str = "", by: str = "") -> str:
    """The SELECT of a sum of sums.yml, over the rows that `where` holds for, of each value of the columns `by`."""
    sql = SUMS[sum].replace("{where}", where).replace("{mart}", mart).replace("{by}", by)
    for part, text in _PARTS.items():
        sql = sql.replace(part, text)
    return sql


def plan_of(report: str) -> dict[str, Any]:
    """Its title, its queries, and the most `sheets` it may have as a PDF."""
    return yaml.safe_load((resources.DASHBOARDS / report / PLAN).read_text(encoding="utf-8"))


@cache
def templates(folder: str = "", **functions: Callable[..., Any]) -> jinja2.Environment:
    """The templates of all reports, or of a folder, which may call `functions`; their values are text, never markup.

    Kept for a process, which compiles each template once.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([resources.DASHBOARDS / folder, resources.DASHBOARDS]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(formats())
    environment.globals |= {
        "bucket_names": LABELS,
        "bucket_meanings": BUCKETS,
        "csv": lambda rows: "",
        **CHARTS,
        "unused_buckets": UNUSED,
        "drawn_buckets": {bucket: LABELS[bucket] for bucket in DRAWN},
        **functions,
    }
    # Names first: macros use them.
    for shared in ("names.j2", "macros.html.j2"):
        module = environment.get_template(shared).module
        environment.globals |= {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return environment


def answers(
    path: Path, queries: Mapping[str, str], query: Query, published: Publication
) -> tuple[dict[str, list[Row]], list[str]]:
    """The rows of each query of a file by its name, none for a mart that is missing; and the marts that are.

    UsageError where marts of another revision lack what a query names.
    """
    with of_other_revisions(published):
        return _answers(path, queries, query)


def _answers(path: Path, queries: Mapping[str, str], query: Query) -> tuple[dict[str, list[Row]], list[str]]:
    rows: dict[str, list[Row]] = {}
    known: dict[str, bool] = {}
    for name, sql in queries.items():
        # A test holds that each reads one.
        (mart,) = tables_in(sql)
        if mart not in known:
            with suppress(EngineError):
                known[mart] = query(f"select * from {mart} limit 0") is not None
        rows[name] = query(expand_calls(sql, path)).to_dicts() if known.setdefault(mart, False) else []
    return rows, sorted(mart for mart, is_known in known.items() if not is_known)


def put(page: bytes, out: Path, published: Publication, console: Console, option: str) -> None:
    """Write a report to `out` atomically. UsageError naming `option` where that fails."""
    try:
        with fresh_file(out) as fresh:
            fresh.write_bytes(page)
    except OSError as error:
        raise UsageError(f"{out} cannot be written ({error.strerror}); choose another file with {option}.") from None
    console.say(f"Wrote {out} ({len(page) // 1024:,} KiB) from publication {published.number}.")
