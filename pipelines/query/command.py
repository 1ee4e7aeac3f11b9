"""The `trainledger query` command."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.base.console import Console
from pipelines.base.errors import EngineError, UsageError
from pipelines.config.options import AsOf, Config, Csv, Form, Json, form_of, settings_of

if TYPE_CHECKING:
    import polars as pl

    from pipelines.config.settings import Settings


# Shown first where not every column fits.
BASES = ("effective_cost_usd", "billed_cost_usd")


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
    run_query(settings_of(config), sql, form, Console(), as_of, detail=detail, exact=exact, reader=reader)


def run_query(
    settings: Settings,
    sql: str | None,
    form: Form,
    console: Console,
    as_of: str | None = None,
    *,
    detail: bool = False,
    exact: bool = False,
    reader: str | None = None,
) -> None:
    """Print the rows of a SELECT over the published marts, the current ones or those of a date.

    Without one, the marts themselves, the most useful first; with `detail` the drill-downs too. Of all this only what
    `reader` may see, if one is named.
    """
    from pipelines.models.marts import open_marts
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.present.csv_text import print_rows
    from pipelines.query.marts import listed, show_list

    teams = settings.teams_of(reader)
    warehouse = Warehouse(settings)
    published = published_of(warehouse, as_of)
    with open_marts(warehouse, published, teams) as engine:
        try:
            frame = listed(engine, published, teams, detail=detail) if sql is None else engine.query(sql)
        except EngineError as error:
            select = f'`trainledger query "from {sql}"` shows a table, ' if sql and sql.isidentifier() else ""
            fix = f"{select}`trainledger query` without a query lists the marts."
            raise UsageError(f"{str(error).rstrip('.!')}; {fix}") from None
    if form == "table" and sql is None:
        show_list(frame, console, detail=detail)
    elif form == "table":
        try:
            console.table(frame if exact else in_cents(frame), keep=BASES)
        except (ValueError, OverflowError) as error:
            # Such as a day that Python's calendar lacks.
            raise UsageError(f"A value cannot be shown ({error}); cast it to varchar.") from None
    else:
        print_rows(frame, form)


def in_cents(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with amounts of money rounded to cents; amounts below a cent keep their first two digits."""
    import polars as pl

    def rounded(amount: pl.Series) -> pl.Series:
        small = (amount != 0) & (amount.abs() < Decimal("0.01"))
        if not small.any():
            return amount.round(2).cast(pl.Decimal(38, 2))
        figures = amount.cast(pl.Float64).round_sig_figs(2).cast(pl.Decimal(38, 10))
        return pl.select(pl.when(small).then(figures).otherwise(amount.round(2))).to_series().alias(amount.name)

    money = [name for name, kind in frame.schema.items() if name.endswith("_usd") and kind.is_decimal()]
    return frame.with_columns(rounded(frame[name]) for name in money)
