"""The `trainledger export` commands."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.config.options import Config, checked_month, settings_of

app = typer.Typer(help="Export published data in other formats.", no_args_is_help=True)


@app.callback()
def formats() -> None:
    """Export published data in other formats."""


@app.command()
def focus(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to; each month has a folder of its own.")],
    month: Annotated[
        str | None, typer.Option("--month", help="YYYY-MM. Default: every delivered month.", callback=checked_month)
    ] = None,
    version: Annotated[str, typer.Option("--version", help="Of FOCUS: 1.2, or 1.4 with four datasets.")] = "1.2",
    config: Config = None,
) -> None:
    """Write published months as FOCUS 1.2 or 1.4, Parquet and CSV."""
    settings = settings_of(config)
    from pipelines.exports.focus import export_focus

    export_focus(settings, month, out, Console(), version)


@app.command()
def dictionary(
    out: Annotated[Path, typer.Option("--out", help="Folder to write dictionary.md and lineage.md to.")] = Path("docs"),
) -> None:
    """Write the data dictionary and the lineage as Markdown.

    By default into the folder docs below the current one.
    """
    from pipelines.exports.dictionary import pages

    console = Console()
    for name, text in pages().items():
        out.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text, encoding="utf-8")
        console.say(f"Wrote {out / name} ({len(text.encode()) // 1024:,} KiB).")
