"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.config.file import read_config

if TYPE_CHECKING:
    from pipelines.config.settings import Settings

AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        help="As known on a date: read the publication that was the newest when this day (UTC) ended, or at this "
        "moment with its zone; without it the newest of all.",
    ),
]
Config = Annotated[
    Path | None, typer.Option("--config", help="trainledger.toml to use; else the one here, else the demo's.")
]


def settings_of(config: Path | None) -> Settings:
    """The settings of a command; a file that is missing or broken is reported before any library is imported."""
    read_config(config)
    from pipelines.config.settings import load_settings

    return load_settings(config)
