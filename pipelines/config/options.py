"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipelines.base.dates import date_of, moment_of, month_date
from pipelines.base.errors import UsageError
from pipelines.config.file import read_config

if TYPE_CHECKING:
    from pipelines.config.settings import Settings

_EARLIER = (
    "Read an earlier publication: the newest at the end of this day (UTC), or at this timestamp with its zone. "
    "Default: the newest of all."
)


def _checked(check: Callable[[str], object]) -> Callable[[str | None], str | None]:
    """A callback that leaves an option as it was written; `check` raises UsageError for other text."""

    def checked(value: str | None) -> str | None:
        if value is not None:
            check(value)
        return value

    return checked


checked_day, checked_month = _checked(date_of), _checked(month_date)
AsOf = Annotated[str | None, typer.Option("--as-of", help=_EARLIER, callback=_checked(moment_of))]
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
