"""The `trainledger compare` command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pipelines.base.errors import UsageError
from pipelines.config.options import AsOf, Config, settings_of
from pipelines.present.console import Console

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
    as_of: AsOf = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Set a workload's GPU and Trainium runs side by side: saving, interval, verdict and what would change it."""
    if as_json and as_csv:
        raise UsageError("Give --json or --csv, not both.")
    settings = settings_of(config)
    from pipelines.compare.query import recommendation_of, rows_of
    from pipelines.compare.tables import show
    from pipelines.models.marts import open_marts
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.present.csv_text import csv_text

    warehouse = Warehouse(settings)
    with open_marts(warehouse, published_of(warehouse, as_of)) as marts:
        rows = rows_of(marts, workload, basis)
        recommended = {
            key: recommendation_of(marts, *key)
            for key in rows.select("workload_id", "billing_currency").unique().rows()
        }
    if as_json or as_csv:
        sys.stdout.write(rows.write_json() + "\n" if as_json else csv_text(rows))
    else:
        show(rows, basis, recommended, Console())
