"""The `trainledger reprice` and `trainledger prices` commands."""

from __future__ import annotations

from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.config.file import find_config
from pipelines.config.options import Config, Csv, Json, form_of, settings_of

if TYPE_CHECKING:
    from pipelines.prices.reprice import Repriced

app = typer.Typer(help="Keep the price book up to date.", no_args_is_help=True)

Pair = tuple[str | None, str | None]
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
    """Compare the price book with AWS Price List offer files, and add what changed."""
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
        from pipelines.prices.table import check_table

        def listed(instance_type: str) -> Decimal:
            if at is None:
                raise UsageError("--at is required: the day of the rates of the instance types, such as 2026-08-01.")
            return reviewed_book().at(instance_type, _day("--at", at), offer, region).usd_per_hour

        Console().say(check_table(table, listed))
        return
    if at is None:
        raise UsageError("--at is required: the price date, such as 2026-08-01.")
    if (workload is None) == (claim is None):
        raise UsageError("Give either a workload or --claim, such as 46.3%.")
    from pipelines.prices.book import OFFERS

    if offer not in OFFERS:
        raise UsageError(f"--offer {offer} is not an offer; choose one of {', '.join(OFFERS)}.")
    day = _day("--at", at)
    if workload is not None:
        of_claim = {"gpu": gpu, "trainium": trainium, "then": then}
        of_claim |= {"gpu-price": gpu_price, "trainium-price": trainium_price}
        for option, value in of_claim.items():
            if value is not None:
                raise UsageError(f"--{option} requires --claim; the types and prices of {workload} come from its bill.")
        found = _own(config, workload, day, offer, region)
    else:
        found = [_claimed(claim or "", (gpu, trainium), then, (gpu_price, trainium_price), day, offer, region)]
    from pipelines.present.csv_text import print_rows
    from pipelines.prices.reprice import frame_of, show

    if form == "table":
        show(found, Console())
    else:
        print_rows(frame_of(found), form)


def _own(config: Path | None, workload: str, at: date, offer: str, region: str) -> list[Repriced]:
    settings = settings_of(config)
    from pipelines.models.marts import open_marts
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.prices.book import published_book
    from pipelines.prices.reprice import reprice_workload

    warehouse = Warehouse(settings)
    with open_marts(warehouse, published_of(warehouse)) as marts:
        return reprice_workload(marts, published_book(marts), workload, at, offer, region)


def _claimed(claim: str, types: Pair, then: str | None, prices: Pair, at: date, offer: str, region: str) -> Repriced:
    """A published claim is repriced with the reviewed list, not with the prices of our own bill."""
    from pipelines.prices.book import reviewed_book
    from pipelines.prices.reprice import parse_saving, reprice_claim

    saving, book = parse_saving(claim), reviewed_book()
    options = ("--gpu", "--trainium")
    before, now = [], []
    for option, instance_type, price in zip(options, types, prices, strict=True):
        if instance_type is None:
            raise UsageError(f"{option} is required: the instance type of the claim.")
        now.append(book.at(instance_type, at, offer, region))
        if price is not None:
            before.append(book.entered(instance_type, _usd(f"{option}-price", price), f"{option}-price"))
        elif then is not None:
            before.append(book.at(instance_type, _day("--then", then), offer, region))
        else:
            raise UsageError(f"--then is required: the price date of the claim; or give {option}-price.")
    for option, price, wanted in zip(options, now, ("gpu", "trainium"), strict=True):
        if (family := book.family(price.instance_type)) != wanted:
            fix = "swap the two or choose another type"
            raise UsageError(f"{option} {price.instance_type} belongs to family {family}; {fix}.")
    return reprice_claim(saving, (before[0], before[1]), (now[0], now[1]), at, region)


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text} is not a date; expected YYYY-MM-DD, such as 2026-08-01.") from None


def _usd(option: str, text: str) -> Decimal:
    try:
        price = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        price = Decimal(0)
    if not price.is_finite() or price <= 0:
        raise UsageError(f"{option} {text} is not a price; expected USD per hour of the whole instance, such as 21.50.")
    return price
