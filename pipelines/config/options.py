"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipelines.base.dates import date_of, month_date
from pipelines.base.errors import UsageError
from pipelines.config.file import read_config

if TYPE_CHECKING:
    from pipelines.config.settings import Settings

_EARLIER = (
    "Read an earlier publication: the newest at the end of this day (UTC), or at this timestamp with its zone. "
    "Default: the newest of all."
)


def _checked_moment(as_of: str | None) -> str | None:
    if as_of is not None:
        from pipelines.warehouse.publication import moment_of

        moment_of(as_of)
    return as_of


def checked_day(day: str | None) -> str | None:
    """A day as it was written; UsageError for other text."""
    if day is not None:
        date_of(day)
    return day


def checked_month(month: str | None) -> str | None:
    """A month as it was written; UsageError for other text."""
    if month is not None:
        month_date(month)
    return month


AsOf = Annotated[str | None, typer.Option("--as-of", help=_EARLIER, callback=_checked_moment)]
_FILE = "trainledger.toml to use. Default: the one here, then the demo's."
Config = Annotated[Path | None, typer.Option("--config", help=_FILE)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with every digit.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV with every digit.")]
Form = Literal["table", "json", "csv"]


def form_of(as_json: bool, as_csv: bool) -> Form:
    """The form of the output; UsageError where both options are set."""
    if as_json and as_csv:
        raise UsageError("Give --json or --csv, not both.")
    return "json" if as_json else "csv" if as_csv else "table"


def settings_of(config: Path | None) -> Settings:
    """The settings of a command; a file that is missing or broken is reported before any library is imported."""
    read_config(config)
    from pipelines.config.settings import load_settings

    return load_settings(config)
