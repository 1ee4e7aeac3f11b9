"""The `trainledger export` commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.console import Console
from pipelines.options import Config

app = typer.Typer(help="Write what was published in somebody else's format.", no_args_is_help=True)


@app.callback()
def formats() -> None:
    """Write what was published in somebody else's format."""


@app.command()
def focus(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to; a month's files lie in a folder of its own.")],
    month: Annotated[str | None, typer.Option("--month", help="YYYY-MM; without it every delivered month.")] = None,
    config: Config = None,
) -> None:
    """Write the published months as FOCUS 1.2 Cost and Usage datasets, Parquet and csv."""
    from pipelines.exports.focus import export_focus
    from pipelines.settings import load_settings

    export_focus(load_settings(config), month, out, Console())
