"""On-demand prices of AWS Price List offer files, and what they change in the price book."""

from collections.abc import Collection, Sequence
from datetime import date
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipelines.base.console import Console
from pipelines.base.errors import SourceError, UsageError
from pipelines.config.listed import ListPrice
from pipelines.explain.terminal import grid
from pipelines.prices.book import Price, PriceBook, amount_of

# Else p5.48xlarge also matches a Capacity Block's SKU at 0.00 (facts aws-billing 5).
_SELECTED = {
    "TermType": "OnDemand", "Tenancy": "Shared", "Operating System": "Linux", "Pre Installed S/W": "NA",
    "CapacityStatus": "Used", "MarketOption": "OnDemand", "Currency": "USD", "Unit": "Hrs",
}  # fmt: skip
_READ = ("Instance Type", "Region Code", "PricePerUnit", "EffectiveDate", "SKU")
# Lines above the header: version, disclaimer, publication date and the like.
_MOST_HEAD_LINES = 20
_HOW = "give the index.csv of AmazonEC2 of a region, from the AWS Price List"


class Change(NamedTuple):
    """A price of an offer file that the book does not have; `held` is the book's of that day, None for none."""

    price: ListPrice
    held: Price | None


def price_changes(paths: Sequence[Path], book: PriceBook, instance_types: Collection[str]) -> tuple[list[Change], int]:
    """Prices of `instance_types` that differ from the book's by more than a hundredth of a percent, and how many agree.

    SourceError for a file that is no CSV offer file of EC2, or that has two prices for one machine.
    """
    changes, agreeing = [], 0
    for price in (price for path in paths for price in _offered(path, instance_types)):
        held = book.held(price.instance_type, price.from_date, price.offer, price.region_id)
        if held and abs(held.usd_per_hour - price.price_per_hour_usd) * 10000 <= held.usd_per_hour:
            agreeing += 1
        else:
            changes.append(Change(price, held))
    return changes, agreeing


def show_changes(changes: Sequence[Change], agreeing: int, console: Console) -> None:
    """Print each changed price next to the book's, and how many agree."""
    rows = [
        (price.instance_type, price.region_id, price.from_date.isoformat(), held.since if held else "not in the book",
         f"{held.usd_per_hour.normalize():f}" if held else "", f"{price.price_per_hour_usd:f}",
         f"{(price.price_per_hour_usd / held.usd_per_hour - 1) * 100:+.1f}%" if held else "new")
        for price, held in changes
    ]  # fmt: skip
    if rows:
        head = ("instance type", "region", "from", "book's", "USD/hour", "USD/hour now", "change")
        for line in grid(head, rows, 4, console.width):
            console.say(line)
    differing = "1 price differs" if len(changes) == 1 else f"{len(changes)} prices differ"
    console.say(f"{differing} from the book, {agreeing} {'agrees' if agreeing == 1 else 'agree'}.")


def as_toml(prices: Sequence[ListPrice]) -> str:
    """`[[prices]]` entries to be appended to a configuration file."""
    return "".join(
        f'\n[[prices]]\ninstance_type = "{price.instance_type}"\nregion_id = "{price.region_id}"\n'
        f'offer = "{price.offer}"\nfrom_date = {price.from_date}\n'
        f'price_per_hour_usd = "{price.price_per_hour_usd}"\nsource = "{price.source}"\n'
        for price in prices
    )


def _offered(path: Path, instance_types: Collection[str]) -> list[ListPrice]:
    published, header_line = _head(path)
    try:
        lines = pl.scan_csv(path, skip_lines=header_line, infer_schema=False)
        missing = [name for name in (*_SELECTED, *_READ) if name not in lines.collect_schema()]
        if missing:
            raise SourceError(f"{path} has no column {missing[0]}; {_HOW}.")
        selected = [pl.col(name) == value for name, value in _SELECTED.items()]
        rows = (
            lines.filter(*selected, pl.col("Instance Type").is_in(list(instance_types)))
            .select(_READ)
            .collect(engine="streaming")
            .sort(_READ)
        )
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read as CSV ({str(error).splitlines()[0]}); {_HOW}.") from None
    found: dict[tuple[str, str], ListPrice] = {}
    for instance_type, region_id, amount, effective, sku in rows.iter_rows():
        # The term's date is its version's, not that of the price: the price is known to hold when it was published.
        day = max(published, _day(path, effective))
        usd = _usd(path, sku, amount)
        if usd == 0:
            continue
        price = ListPrice(
            instance_type=instance_type, region_id=region_id, offer="on_demand", from_date=day,
            price_per_hour_usd=usd, source=f"AWS Price List, published {published}, SKU {sku}",
        )  # fmt: skip
        other = found.setdefault((instance_type, region_id), price)
        if other.price_per_hour_usd != usd:
            both = f"{other.price_per_hour_usd} and {usd}"
            raise SourceError(f"{path} has two prices of {instance_type} in {region_id}, {both} (SKU {sku}); {_HOW}.")
    return list(found.values())


def _head(path: Path) -> tuple[date, int]:
    """The publication date of an offer file and the number of lines above its header."""
    published = None
    if not path.is_file():
        raise UsageError(f"{path} does not exist; {_HOW}.")
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(islice(file, _MOST_HEAD_LINES)):
                first, _, rest = line.strip().replace('"', "").partition(",")
                if first == "Publication Date":
                    published = _day(path, rest[:10])
                if first == "SKU" and published:
                    return published, number
    except OSError as error:
        raise SourceError(f"{path} cannot be read ({error.strerror}); check its permissions.") from None
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} cannot be read ({error}); {_HOW}.") from None
    raise SourceError(f"{path} has no Publication Date above a header that starts with SKU; {_HOW}.")


def _day(path: Path, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SourceError(f"{path}: {text!r} is not a date; {_HOW}.") from None


def _usd(path: Path, sku: str, text: str) -> Decimal:
    if (amount := amount_of(text)) is None:
        raise SourceError(f"{path}: the price of SKU {sku} is {text!r}, not an amount; {_HOW}.")
    return Decimal(f"{amount.normalize():f}")
