"""On-demand prices of mart_price_book: all of them, and the one of a machine on a day."""

from datetime import date

import polars as pl

from pipelines.analysis.matched import Run

Prices = dict[tuple[str, str, str], list[tuple[date, float]]]


def prices_of(mart_price_book: pl.DataFrame) -> Prices:
    """On-demand prices of an instance-hour by instance type, region and currency, oldest first."""
    found: Prices = {}
    listed = mart_price_book.filter(offer="on_demand")
    for row in listed.sort("from_date", "price_evidence", descending=[False, True]).iter_rows(named=True):
        key = row["instance_type"], row["region_id"], row["billing_currency"]
        found.setdefault(key, []).append((row["from_date"], float(row["price_per_hour_usd"])))
    return found


def price_on(prices: Prices, run: Run, day: date) -> float | None:
    """The on-demand price of the run's machine in its region on a day; None where the book begins later."""
    held = prices.get((run["instance_type"], run["region_id"], run["billing_currency"]), [])
    return next((usd for from_date, usd in reversed(held) if from_date <= day), None)
