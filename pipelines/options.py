"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
