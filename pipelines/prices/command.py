"""The `trainledger reprice` and `trainledger prices` commands."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.config.file import find_config
from pipelines.config.options import Config, Csv, Json, form_of, settings_of

app = typer.Typer(help="Keep the price book up to date.", no_args_is_help=True)

Number = Annotated[str | None, typer.Option(help="Price of the claim: USD per hour of the whole instance.")]


@app.callback()
def prices() -> None:
    """Keep the price book up to date."""


@app.command()
def update(
    files: Annotated[list[Path], typer.Argument(help="CSV offer files of EC2 from the AWS Price List, one a region.")],
    write: Annotated[bool, typer.Option("--write", help="Append the changes to trainledger.toml.")] = False,
    config: Config = None,
) -> None:
    """Compare the price book with offer files of the AWS Price List.

    With --write, add what changed.
    """
    settings = settings_of(config)
    from pipelines.prices.book import reviewed_book
    from pipelines.prices.offer_file import as_toml, price_changes, show_changes

    changes, agreeing = price_changes(files, reviewed_book(settings.prices), settings.accelerator_families)
    console = Console()
    show_changes(changes, agreeing, console)
    if changes and write:
        path = find_config(config)
        with path.open("a", encoding="utf-8") as file:
            file.write(as_toml([change.price for change in changes]))
        console.say(f"Appended {len(changes)} [[prices]] to {path}; the next build uses them.")
    elif changes:
        console.say("Nothing was written; review the changes and run again with --write.")


def reprice(
    workload: Annotated[str | None, typer.Argument(help="A workload_id, or a part of it.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="Reprice to this date, such as 2026-08-01.")] = None,
    claim: Annotated[str | None, typer.Option("--claim", help="A published saving instead: 46.3% or 0.463.")] = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="GPU instance type of the claim.")] = None,
    trainium: Annotated[str | None, typer.Option("--trainium", help="Trainium instance type of the claim.")] = None,
    then: Annotated[str | None, typer.Option("--then", help="Price date of the claim.")] = None,
    gpu_price: Number = None,
    trainium_price: Number = None,
    table: Annotated[
        Path | None,
        typer.Option("--table", help="CSV of published prices or break-evens, checked against their inputs."),
    ] = None,
    offer: Annotated[str, typer.Option("--offer", help="on_demand, capacity_block or reserved.")] = "on_demand",
    region: Annotated[str, typer.Option("--region", help="Region of the prices.")] = "us-east-1",
    config: Config = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Reprice a comparison to the list prices of another date."""
    form = form_of(as_json, as_csv)
    if table is not None:
        if workload is not None or claim is not None:
            raise UsageError("--table cannot be combined with a workload or --claim; run them separately.")
        from pipelines.prices.book import reviewed_book
        from pipelines.prices.reprice import day_of
        from pipelines.prices.table import check_table

        def listed(instance_type: str) -> Decimal:
            if at is None:
                raise UsageError("--at is required: the day of the rates of the instance types, such as 2026-08-01.")
            return reviewed_book().at(instance_type, day_of("--at", at), offer, region).usd_per_hour

        Console().say(check_table(table, listed))
        return
    if at is None:
        raise UsageError("--at is required: the price date, such as 2026-08-01.")
    if (workload is None) == (claim is None):
        raise UsageError("Give either a workload or --claim, such as 46.3%.")
    of_claim = {
        "gpu": gpu,
        "trainium": trainium,
        "then": then,
        "gpu-price": gpu_price,
        "trainium-price": trainium_price,
    }
    for option, value in of_claim.items():
        if value is not None and workload is not None:
            raise UsageError(f"--{option} requires --claim; the types and prices of {workload} come from its bill.")
    settings = settings_of(config) if workload is not None else None
    from pipelines.present.csv_text import print_rows
    from pipelines.prices.book import OFFERS
    from pipelines.prices.reprice import claimed, day_of, frame_of, repriced, show

    if offer not in OFFERS:
        raise UsageError(f"--offer {offer} is not an offer; choose one of {', '.join(OFFERS)}.")
    day = day_of("--at", at)
    if settings and workload is not None:
        found = repriced(settings, workload, day, offer, region)
    else:
        found = [claimed(claim or "", (gpu, trainium), then, (gpu_price, trainium_price), day, offer, region)]
    if form == "table":
        show(found, Console())
    else:
        print_rows(frame_of(found), form)
