"""The `trainledger query` command."""

from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.base.errors import EngineError, UsageError
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
    from pipelines.models.marts import open_marts
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.present.csv_text import print_rows
    from pipelines.query.marts import in_cents, listed, refusal, show_list, shown_first

    console, teams, warehouse = Console(), settings.teams_of(reader), Warehouse(settings)
    published = published_of(warehouse, as_of)
    with open_marts(warehouse, published, teams) as engine:
        try:
            frame = listed(engine, published, teams, detail=detail) if sql is None else engine.query(sql)
        except EngineError as error:
            raise UsageError(refusal(str(error), sql or "")) from None
    if form != "table":
        print_rows(frame, form)
    elif sql is None:
        show_list(frame, console, detail=detail)
    else:
        try:
            console.table(frame if exact else in_cents(frame), keep=shown_first(frame.columns, sql))
        except (ValueError, OverflowError) as error:
            # Such as a day that Python's calendar lacks.
            raise UsageError(f"A value cannot be shown ({error}); cast it to varchar.") from None
