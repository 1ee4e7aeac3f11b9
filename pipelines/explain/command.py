"""The `trainledger explain` commands."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.config.options import Config, Csv, Json, form_of, settings_of


class _OrName(TyperGroup):
    """A group whose first word may also be a name to look up: `explain cost_per_epoch_usd`."""

    def resolve_command(self, ctx, args):  # type: ignore[no-untyped-def]
        if args and args[0] not in self.commands:
            args = ["name", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_OrName,
    help="From a figure down to the bill lines behind it. Give a metric, column, table or term instead of a "
    "command for its definition: `trainledger explain cost_per_epoch_usd`.",
    no_args_is_help=True,
)

Lines = Annotated[
    int, typer.Option("--lines", min=0, max=1_000_000, help="Rows of each level; the others are summed in one.")
]
Currency = Annotated[str | None, typer.Option("--currency", help="Currency, where the bill has several.")]
Bucket = Annotated[str | None, typer.Option("--bucket", help="run, serving, idle, capacity_unused, shared …")]
Account = Annotated[str | None, typer.Option("--account", help="Account that used the service.")]
Payer = Annotated[str | None, typer.Option("--payer", help="Account that pays the bill.")]
Category = Annotated[str | None, typer.Option("--category", help="Charge category: Usage, Tax, Credit …")]
Service = Annotated[str | None, typer.Option("--service", help="Product code, such as AmazonEC2.")]
Family = Annotated[str | None, typer.Option("--family", help="Accelerator family: gpu, trainium, none …")]


@app.command()
def run(
    run_id: str,
    currency: Currency = None,
    config: Config = None,
    lines: Lines = 20,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The cost of a run, by day and resource, down to its bill lines."""
    _explain(config, lambda questions, marts: questions.for_run(marts, run_id, currency), lines, as_json, as_csv)


def _of_the_ledger(span: str, argument: str, summary: str) -> None:
    """The command of a span of the ledger, a day or a month; each takes the same options."""
    when_argument = typer.Argument(metavar=span, help=argument)

    @app.command(span, help=summary)
    def command(
        when: str = when_argument,
        bucket: Bucket = None,
        account: Account = None,
        payer: Payer = None,
        category: Category = None,
        service: Service = None,
        family: Family = None,
        currency: Currency = None,
        config: Config = None,
        lines: Lines = 20,
        as_json: Json = False,
        as_csv: Csv = False,
    ) -> None:
        def ask(questions, marts):  # type: ignore[no-untyped-def]
            options = questions.chosen(
                bucket=bucket, account=account, payer=payer, category=category, service=service, family=family,
                currency=currency,
            )  # fmt: skip
            return (questions.for_day if span == "day" else questions.for_month)(marts, when, options)

        _explain(config, ask, lines, as_json, as_csv)


_of_the_ledger("day", "A day of use, as 2026-07-03.", "A day of the ledger, down to its bill lines.")
_of_the_ledger("month", "A billing month, as 2026-07.", "A month of the ledger by day, down to its bill lines.")


@app.command()
def invoice(
    invoice_id: Annotated[str | None, typer.Argument(help="An invoice. Default: every invoice of the month.")] = None,
    month: Annotated[str | None, typer.Option("--month", help="Billing month, as 2026-07.")] = None,
    payer: Payer = None,
    currency: Currency = None,
    config: Config = None,
    lines: Lines = 20,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """An invoice compared with the ledger, down to its bill lines."""
    _explain(
        config,
        lambda questions, marts: questions.for_invoice(marts, invoice_id, month, payer, currency),
        lines,
        as_json,
        as_csv,
    )


@app.command()
def model(
    model: Annotated[str, typer.Argument(help="A served model, as mart_inference_cost_daily names it.")],
    month: Annotated[str | None, typer.Option("--month", help="Billing month, as 2026-07. Default: all.")] = None,
    currency: Currency = None,
    config: Config = None,
    lines: Lines = 20,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The cost of serving a model, by server and usage type, down to its bill lines."""

    def ask(questions, marts):  # type: ignore[no-untyped-def]
        from pipelines.explain.serving import for_model

        return for_model(marts, model, month, currency)

    _explain(config, ask, lines, as_json, as_csv)


@app.command(hidden=True)
def name(
    name: Annotated[str, typer.Argument(help="A metric, a column, a table or a term.")],
    config: Config = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The definition of a metric, column, table or term: formula, unit, meaning, inputs and users."""
    # Definitions do not depend on the warehouse; the option is accepted as every command accepts it.
    del config
    form = form_of(as_json, as_csv)
    from pipelines.explain.names import as_frame, look_up, show_name
    from pipelines.present.csv_text import print_csv

    found = look_up(name)
    if form == "json":
        sys.stdout.write(json.dumps(asdict(found), indent=1) + "\n")
    elif form == "csv":
        print_csv(as_frame(found))
    else:
        show_name(found, Console())


def _explain(config: Path | None, ask, lines: int, as_json: bool, as_csv: bool) -> None:  # type: ignore[no-untyped-def]
    """Show what `ask` selects and the bill lines behind it; `ask` takes the module of questions and the marts."""
    form = form_of(as_json, as_csv)
    settings = settings_of(config)
    from pipelines.explain import query as questions
    from pipelines.explain.lines import as_json as json_of
    from pipelines.explain.lines import behind
    from pipelines.explain.tables import agreed, parts
    from pipelines.explain.terminal import show
    from pipelines.models.marts import open_marts
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.present.csv_text import print_csv

    console, warehouse = Console(), Warehouse(settings)
    if settings.privacy.pseudonyms:
        raise UsageError(
            "`explain` shows bill lines as delivered, and [privacy] requires pseudonyms; use a configuration without "
            "[privacy]."
        )
    published = published_of(warehouse)
    with open_marts(warehouse, published) as marts:
        question = ask(questions, marts)
    with behind(warehouse, published, question) as explanation:
        if form == "json":
            sys.stdout.write(json_of(explanation))
        elif form == "csv":
            print_csv(explanation.lines())
        else:
            show(parts(explanation, lines), console)
        # Checked after printing, so that the reader sees both amounts of a difference.
        explanation.check()
        if form == "table":
            console.say("")
            console.paragraph(agreed(explanation))
