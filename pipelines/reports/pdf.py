"""The report as one printed page: the same queries as the HTML page, every figure formatted here, laid out by typst.

`report.typ` gets text and never markup, so whatever a run is called is printed as it is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pipelines import house
from pipelines.commands import open_marts
from pipelines.console import Console
from pipelines.errors import UsageError
from pipelines.reports.printed import page_of
from pipelines.reports.render import Query, ReportFacts, answered, facts_of
from pipelines.settings import Settings
from pipelines.storage import fresh_file
from pipelines.warehouse import Warehouse, published_of

TEMPLATE = "report.typ"


def write_pdf(settings: Settings, out: Path, console: Console, as_of: str | None = None) -> None:
    """Write the page of the current publication, or of the one that was on a date, to `out`."""
    warehouse = Warehouse(settings)
    published = published_of(warehouse, as_of)
    with open_marts(warehouse, published) as engine:
        page = render_pdf("training_cost", engine.query, facts_of(published))
    try:
        with fresh_file(out) as fresh:
            fresh.write_bytes(page)
    except OSError as error:
        raise UsageError(f"{out} cannot be written ({error.strerror}); choose another file with --pdf.") from None
    console.say(f"Wrote {out} ({len(page) // 1024:,} KiB) from publication {published.number}.")


def render_pdf(report: str, query: Query, facts: ReportFacts, form: Literal["pdf", "png"] = "pdf") -> bytes:
    """The page as PDF (or as a picture, form "png"); the same bytes for the same marts and facts.

    Raises UsageError where typst is missing, and as `render_report` does.
    """
    try:
        import typst
    except ImportError:
        raise UsageError("The PDF is laid out by typst, which is not installed; run `pip install typst`.") from None
    told = page_of(report, answered(report, query), facts)
    page = typst.compile(
        str(house.DASHBOARDS / report / TEMPLATE),
        format=form,
        sys_inputs={"page": json.dumps(told)},
        timestamp=int(facts.published_at.timestamp()),
    )
    if not isinstance(page, bytes):
        raise ValueError(f"the page of {report} runs over to a second one")
    return page
