"""The `trainledger query` command."""

from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.config.options import AsOf, Config, Csv, Json, form_of, settings_of


def query(
    sql: Annotated[
        str | None, typer.Argument(help="A SELECT over the marts. Without it, the marts are listed.")
    ] = None,
    config: Config = None,
    as_of: AsOf = None,
    detail: Annotated[bool, typer.Option("--detail", help="List the tables of schema `detail` too.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Show amounts with every digit instead of cents.")] = False,
    as_json: Json = False,
    as_csv: Csv = False,
    reader: Annotated[
        str | None, typer.Option("--reader", help="Show only what this reader of the access policy may see.")
    ] = None,
) -> None:
    """Run a SQL query on the published marts, or list them."""
    form = form_of(as_json, as_csv)
    settings = settings_of(config)
    from pipelines.query.marts import run_query

    run_query(settings, sql, form, Console(), as_of, detail=detail, exact=exact, reader=reader)
