"""The page of a publication over its marts."""

from pathlib import Path

from pipelines.base.console import Console
from pipelines.base.errors import EngineError, UsageError
from pipelines.engine import Engine
from pipelines.models.revision import code_revision
from pipelines.present.render import facts_of, render_report
from pipelines.warehouse.publication import Publication
from pipelines.warehouse.storage import fresh_file


def report_page(
    engine: Engine,
    published: Publication,
    kind: str = "training_cost",
    month: str | None = None,
    *,
    is_drawn: bool = True,
) -> str:
    """The HTML of the report `kind`, about `month` (YYYY-MM) where it is a monthly one, else the newest delivered.

    It has no charts unless `is_drawn`.
    UsageError for an unknown kind or month, and where marts of another revision do not fill the report.
    """
    try:
        return render_report(kind, engine.query, facts_of(published, month), is_drawn=is_drawn)
    except EngineError as error:
        if published.code_revision == code_revision():
            raise
        raise UsageError(
            f"Publication {published.number} was made by revision {published.code_revision}, and this is "
            f"{code_revision()}, whose reports need other marts ({error}); make the report with trainledger "
            f"{published.version}."
        ) from None


def put(page: bytes, out: Path, published: Publication, console: Console, option: str) -> None:
    """Write a report to `out` atomically. UsageError naming `option` where that fails."""
    try:
        with fresh_file(out) as fresh:
            fresh.write_bytes(page)
    except OSError as error:
        raise UsageError(f"{out} cannot be written ({error.strerror}); choose another file with {option}.") from None
    console.say(f"Wrote {out} ({len(page) // 1024:,} KiB) from publication {published.number}.")
