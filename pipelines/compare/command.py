"""The `trainledger compare` command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pipelines.console import Console
from pipelines.errors import UsageError
from pipelines.options import Config

Workload = Annotated[
    str | None, typer.Argument(help="A workload_id, or a part only one has; without it all that are compared.")
]
Basis = Annotated[str | None, typer.Option("--basis", help="effective, list or billed; else the registered one.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: the rows of mart_silicon_comparison.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV: the rows of mart_silicon_comparison.")]


def compare(
    workload: Workload = None,
    basis: Basis = None,
    config: Config = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Set a workload's GPU and Trainium runs side by side: saving, interval, verdict and what would change it."""
    from pipelines import commands
    from pipelines.compare.asked import rows_of
    from pipelines.compare.shown import show
    from pipelines.settings import load_settings
    from pipelines.spreadsheet import csv_text
    from pipelines.warehouse import Warehouse

    if as_json and as_csv:
        raise UsageError("Give --json or --csv, not both.")
    warehouse = Warehouse(load_settings(config))
    with commands.open_marts(warehouse, commands.published_of(warehouse)) as marts:
        rows = rows_of(marts, workload, basis)
    if as_json or as_csv:
        sys.stdout.write(rows.write_json() + "\n" if as_json else csv_text(rows))
    else:
        show(rows, basis, Console())
