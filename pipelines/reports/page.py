"""The page of a publication: what it says of itself, and the month it is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date

from pipelines.engine import Engine
from pipelines.errors import EngineError, UsageError
from pipelines.models.publish import code_revision
from pipelines.publication import Publication
from pipelines.reports.render import ReportFacts, render_report

REPORT = "training_cost"


def report_page(engine: Engine, published: Publication, kind: str = REPORT, month: str | None = None) -> str:
    """The HTML of the report `kind` of a publication over its marts.

    `month` (YYYY-MM) is the one a monthly report is about, else the newest delivered. UsageError for an unknown kind or
    month, or a publication of another revision whose marts do not fill the report.
    """
    months = sorted({str(delivery["billing_period"]) for delivery in published.inputs["deliveries"]})
    facts = ReportFacts(
        publication_number=published.number,
        published_at=published.published_at.astimezone(UTC),
        code_revision=published.code_revision,
        billing_months=tuple(months),
        checks=published.checks,
        month=_first_day(month, months),
    )
    try:
        return render_report(kind, engine.query, facts)
    except EngineError as error:
        if published.code_revision == code_revision():
            raise
        raise UsageError(
            f"Publication {published.number} was made by revision {published.code_revision}, and this is "
            f"{code_revision()}, whose report its marts do not fill ({error}); report on it with that version."
        ) from None


def _first_day(month: str | None, delivered: Sequence[str]) -> date:
    if month is not None and month not in delivered:
        raise UsageError(f"--month {month} is no delivered billing month; they are {', '.join(delivered)}.")
    return date.fromisoformat(f"{month or delivered[-1]}-01")
