"""The page of a publication over its marts."""

from __future__ import annotations

from pipelines.engine import Engine
from pipelines.errors import EngineError, UsageError
from pipelines.models.publish import code_revision
from pipelines.publication import Publication
from pipelines.reports.render import facts_of, render_report


def report_page(engine: Engine, published: Publication, kind: str = "training_cost", month: str | None = None) -> str:
    """The HTML of the report `kind`, about `month` (YYYY-MM) where it is a monthly one, else the newest delivered.

    UsageError for an unknown kind or month, or a publication of another revision whose marts do not fill the report.
    """
    try:
        return render_report(kind, engine.query, facts_of(published, month))
    except EngineError as error:
        if published.code_revision == code_revision():
            raise
        raise UsageError(
            f"Publication {published.number} was made by revision {published.code_revision}, and this is "
            f"{code_revision()}, whose report its marts do not fill ({error}); report on it with that version."
        ) from None
