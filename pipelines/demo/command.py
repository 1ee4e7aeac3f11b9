"""The `trainledger demo` command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.config.file import DEMO_FOLDER


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder the demo is written to.")] = Path(DEMO_FOLDER),
) -> None:
    """Generate a small company's bill and runs, build and report."""
    from pipelines.config.settings import load_settings
    from pipelines.demo.write import write_demo
    from pipelines.models.command import build_marts
    from pipelines.models.marts import DATABASE, open_marts
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.present.text import show_key_figures
    from pipelines.report.command import write_report

    console = Console()
    if not (out / "trainledger.toml").is_file():
        console.note(f"Generating a bill and training runs in {out} …")
        write_demo(out)
    settings = load_settings(out / "trainledger.toml")
    build_marts(settings, console, list_warnings=False)
    write_report(settings, out / "report.html", console)
    warehouse = Warehouse(settings)
    with open_marts(warehouse, published_of(warehouse)) as engine:
        show_key_figures(engine, console)
    console.say(f"Marts:  {Path(settings.warehouse.location) / DATABASE} (schema mart, any DuckDB client)")
    console.code(f"Next:   trainledger query --config {shlex.quote(str(out / 'trainledger.toml'))}")
