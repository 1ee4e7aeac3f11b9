"""The `trainledger explain` commands."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from inspect import Parameter, Signature, signature
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipelines.base.console import Console
from pipelines.config.options import Config, Csv, Json, checked_day, checked_month, form_of, settings_of


class _OrName(TyperGroup):
    """A group whose first words may also be a name to look up: `explain cost_per_epoch_usd`, `explain at stake`."""

    def resolve_command(self, ctx, args):  # type: ignore[no-untyped-def]
        if args and args[0] not in self.commands:
            words = list(takewhile(lambda word: not word.startswith("-"), args))
            args = ["name", *([" ".join(words)] if words else []), *args[len(words) :]]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_OrName,
    help="Trace a figure to its bill lines. Give a metric, column, table or term instead of a "
    "command for its definition: `trainledger explain cost_per_epoch_usd`.",
    no_args_is_help=True,
)

Lines = Annotated[
    int, typer.Option("--lines", min=0, max=1_000_000, help="Rows of each level; the others are summed in one.")
]
_OPTIONS = {
    "month": "Billing month, as 2026-07. Default: all.",
    "bucket": "run, serving, idle, capacity_unused, shared …",
    "account": "Account that used the service.",
    "payer": "Account that pays the bill.",
    "category": "Charge category: Usage, Tax, Credit …",
    "service": "Product code, such as AmazonEC2.",
    "family": "Accelerator family: gpu, trainium, none …",
    "currency": "Currency, where the bill has several.",
}
# Reported before anything is opened.
_CHECKS = {"day": checked_day, "month": checked_month}
_LEDGER = ("bucket", "account", "payer", "category", "service", "family", "currency")


def _command(
    kind: str,
    summary: str,
    names: Sequence[str],
    about: str | None = None,
    word: str = "",
    default: Any = Parameter.empty,
) -> None:
    """The command of a kind of question: the word it is about, its options, and those of all that show lines."""

    @app.command(kind, help=summary)
    def command(config: Config = None, lines: Lines = 20, as_json: Json = False, as_csv: Csv = False, **requested: str):
        _explain(config, kind, requested.pop(word or kind), requested, lines, as_json, as_csv)

    argument = Annotated[str, typer.Argument(metavar=word or kind, help=about or None, callback=_CHECKS.get(kind))]
    own = [Parameter(word or kind, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=argument)]
    for name in names:
        option = Annotated[str | None, typer.Option(f"--{name}", help=_OPTIONS[name], callback=_CHECKS.get(name))]
        own.append(Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option))
    *shared, _ = signature(command).parameters.values()
    shared = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in shared]
    command.__signature__ = Signature([*own, *shared])  # type: ignore[attr-defined]


_command("run", "The cost of a run, by day and resource, down to its bill lines.", ["currency"], word="run_id")
_command("day", "A day of the ledger, down to its bill lines.", _LEDGER, "A day of use, as 2026-07-03.")
_command("month", "A month of the ledger by day, down to its bill lines.", _LEDGER, "A billing month, as 2026-07.")
_command(
    "invoice",
    "An invoice compared with the ledger, down to its bill lines.",
    ["month", "payer", "currency"],
    "An invoice. Default: every invoice of the month.",
    word="invoice_id",
    default=None,
)
_command(
    "model",
    "The cost of serving a model, by server and usage type.",
    ["month", "currency"],
    "A served model, as mart_inference_cost_daily names it.",
)


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


def _explain(
    config: Path | None, kind: str, word: str, options: Mapping[str, str], lines: int, as_json: bool, as_csv: bool
) -> None:
    """Show the rows that a question selects and the bill lines behind them."""
    form = form_of(as_json, as_csv)
    settings = settings_of(config)
    from pipelines.explain.lines import as_json as json_of
    from pipelines.explain.lines import behind, question_of
    from pipelines.explain.tables import agreed, parts
    from pipelines.explain.terminal import show
    from pipelines.models.marts import of_other_revisions, open_marts
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.present.csv_text import print_csv

    console, warehouse = Console(), Warehouse(settings)
    published = published_of(warehouse)
    with of_other_revisions(published), open_marts(warehouse, published) as marts:
        question = question_of(marts, kind, word, options)
    with of_other_revisions(published), behind(warehouse, published, question) as explanation:
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
