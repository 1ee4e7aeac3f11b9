"""A comparison repriced to another date, and shown: a workload by the hours of its runs, a claim by price ratios."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines.analysis.repricing import repriced_saving
from pipelines.base.console import Console
from pipelines.base.errors import CheckError, UsageError
from pipelines.compare.tables import workload_named
from pipelines.config.settings import Settings
from pipelines.engine.duckdb import quoted
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.present.text import show_text
from pipelines.prices.book import Price, PriceBook, amount_of, published_book, reviewed_book

Pair = tuple[str | None, str | None]
SIDES, FAMILIES = ("baseline", "candidate"), ("gpu", "trainium")


@dataclass(frozen=True)
class Side:
    """The baseline or the candidate of a comparison; None where nothing measures it.

    `then` is the price of a claim; `hours` are instance-hours and `cost` USD for a unit of work.
    """

    price: Price
    then: Price | None = None
    run_count: int | None = None
    hours: Decimal | None = None
    cost: Decimal | None = None


@dataclass(frozen=True)
class Repriced:
    """One comparison at the prices of a day; ratios below 1, None where nothing measures it."""

    subject: str
    at: date
    region_id: str
    sides: tuple[Side, Side]
    saving_before: Decimal
    before: str
    saving: Decimal
    low: Decimal | None = None
    high: Decimal | None = None
    unit_measure: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def break_even_baseline_usd(self) -> Decimal:
        """USD an hour of the GPU instance at which neither is cheaper."""
        return (1 - self.saving) * self.sides[0].price.usd_per_hour


def day_of(option: str, text: str) -> date:
    """The date of an option; UsageError for what is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text} is not a date; expected YYYY-MM-DD, such as 2026-08-01.") from None


def _price_of(option: str, text: str) -> Decimal:
    if not (price := amount_of(text.removeprefix("$"))):
        raise UsageError(f"{option} {text} is not a price; expected USD per hour of the whole instance, such as 21.50.")
    return price


def parse_saving(text: str) -> Decimal:
    """A saving as a ratio, from `46.3%` or `0.463`; UsageError where the unit is unclear."""
    found = re.fullmatch(r"\s*([+-]?[0-9]*\.?[0-9]+)\s*(%?)\s*", text)
    if not found:
        raise UsageError(f"--claim {text} is not a saving; expected 46.3% or 0.463.")
    saving = Decimal(found[1]) / (100 if found[2] else 1)
    if not found[2] and abs(saving) > 1:
        raise UsageError(f"--claim {text} is not a ratio; write {text.strip()}% if it is a percentage.")
    if saving >= 1:
        raise UsageError(f"--claim {text} would make Trainium free; a saving is below 100%.")
    return saving


def claimed(claim: str, types: Pair, then: str | None, prices: Pair, at: date, offer: str, region: str) -> Repriced:
    """A published claim, repriced with the reviewed list, not with the prices of our own bill."""
    saving, book = parse_saving(claim), reviewed_book()
    held: list[tuple[Price, Price]] = []
    for option, instance_type, price in zip(("--gpu", "--trainium"), types, prices, strict=True):
        if instance_type is None:
            raise UsageError(f"{option} is required: the instance type of the claim.")
        now = book.at(instance_type, at, offer, region)
        if price is not None:
            before = book.entered(instance_type, _price_of(f"{option}-price", price), f"{option}-price")
        elif then is not None:
            before = book.at(instance_type, day_of("--then", then), offer, region)
        else:
            raise UsageError(f"--then is required: the price date of the claim; or give {option}-price.")
        held.append((before, now))
    for (_, now), wanted in zip(held, FAMILIES, strict=True):
        if (family := book.family(now.instance_type)) != wanted:
            fix = "swap the two or choose another type"
            raise UsageError(f"--{wanted} {now.instance_type} belongs to family {family}; {fix}.")
    (gpu_then, gpu), (trainium_then, trainium) = held
    rates = (price.usd_per_hour for pair in held for price in pair)
    return Repriced(
        subject=f"{gpu.instance_type} and {trainium.instance_type}",
        at=at,
        region_id=region,
        sides=(Side(gpu, gpu_then), Side(trainium, trainium_then)),
        saving_before=saving,
        before="as claimed",
        saving=repriced_saving(saving, *rates),
    )


def repriced(settings: Settings, workload: str, at: date, offer: str, region: str) -> list[Repriced]:
    """Every pair of a workload of the newest publication, by the instance-hours its runs took for a unit of work."""
    warehouse = Warehouse(settings)
    sides = ", ".join(
        f"max({side}_hours_per_unit) as {side}_hours, "
        f"max({side}_run_count + coalesce({side}_failed_run_count, 0)) as {side}_runs"
        for side in SIDES
    )
    with open_marts(warehouse, published_of(warehouse)) as marts:
        workload_id, why_not = workload_named(marts, workload)
        if why_not:
            raise CheckError(why_not)
        pairs = marts.query(
            "select workload_id, baseline_instance_type, candidate_instance_type, billing_currency, unit_measure, "
            "max(saving_ratio) filter (where cost_basis = 'effective') as effective_saving, "
            "max(saving_ratio) filter (where cost_basis = 'list') as list_saving, "
            "max(saving_low_ratio) filter (where cost_basis = 'list') as low, "
            f"max(saving_high_ratio) filter (where cost_basis = 'list') as high, {sides} "
            f"from mart_silicon_comparison where workload_id = {quoted(workload_id)} and unit_measure <> 'none' "
            "group by all having max(saving_ratio) is not null order by all"
        )
        if pairs.is_empty():
            compared = f"from mart_silicon_comparison where workload_id = {quoted(workload_id)}"
            reason = marts.query(f"select min(verdict_reason) as reason {compared}")["reason"][0]
            raise CheckError(f"{workload_id} cannot be repriced: its comparison claims nothing: {reason}.")
        book = published_book(marts)
    return [_pair(book, pair, at, offer, region) for pair in pairs.iter_rows(named=True)]


def _pair(book: PriceBook, pair: dict[str, Any], at: date, offer: str, region: str) -> Repriced:
    baseline, candidate = (_side(book, pair, side, at, offer, region) for side in SIDES)
    saving = 1 - candidate.cost / baseline.cost  # pyright: ignore[reportOperatorIssue]
    before = pair["list_saving"]
    # Prices scale all runs of a side alike, so an interval moves with its saving.
    moved = None if before is None or before >= 1 else (1 - saving) / (1 - before)
    low, high = (None if moved is None or pair[end] is None else 1 - (1 - pair[end]) * moved for end in ("low", "high"))
    notes = [
        f"{pair[f'{name}_instance_type']} is SageMaker's; it is priced as {side.price.instance_type} of EC2"
        for name, side in zip(SIDES, (baseline, candidate), strict=True)
        if pair[f"{name}_instance_type"] != side.price.instance_type
    ]
    if before is None:
        lacking = "some runs have no list price on the bill"
        notes.append(f"{lacking}, so the list-price saving and its interval are unknown")
    return Repriced(
        subject=pair["workload_id"],
        at=at,
        region_id=region,
        sides=(baseline, candidate),
        saving_before=pair["effective_saving"] if before is None else before,
        before="measured on the bill, effective" if before is None else "measured on the bill, list",
        saving=saving,
        low=low,
        high=high,
        unit_measure=pair["unit_measure"],
        notes=tuple(notes),
    )


def _side(book: PriceBook, pair: dict[str, Any], side: str, at: date, offer: str, region: str) -> Side:
    """One side, by the instance-hours of all its ended runs over the units of work they did."""
    instance_type, measured = pair[f"{side}_instance_type"], pair[f"{side}_hours"]
    price = book.at(instance_type.removeprefix("ml."), at, offer, region)
    if measured is None:
        reason = f"the bill does not have the instance-hours of all its runs on {instance_type}"
        raise CheckError(f"{pair['workload_id']} cannot be repriced: {reason}.")
    hours = Decimal(repr(measured)).quantize(Decimal("1e-15"))
    return Side(price, run_count=pair[f"{side}_runs"], hours=hours, cost=hours * price.usd_per_hour)


def frame_of(found: Sequence[Repriced]) -> pl.DataFrame:
    """One flat row a comparison; amounts and ratios as text, exact to six places."""
    rows = []
    for one in found:
        row: dict[str, Any] = {
            "subject": one.subject,
            "price_date": one.at.isoformat(),
            "offer": one.sides[0].price.offer,
            "region_id": one.region_id,
            "unit_measure": one.unit_measure,
        }
        for name, side in zip(SIDES, one.sides, strict=True):
            price = side.price
            row |= {
                f"{name}_instance_type": price.instance_type,
                f"{name}_price_per_hour_usd": _six(price.usd_per_hour),
                f"{name}_price_from_date": price.from_date and price.from_date.isoformat(),
                f"{name}_price_evidence": price.evidence,
                f"{name}_price_source": price.source,
                f"{name}_price_then_per_hour_usd": _six(side.then.usd_per_hour) if side.then else None,
                f"{name}_run_count": side.run_count,
                f"{name}_unit_instance_hours": _six(side.hours),
                f"{name}_unit_cost_usd": _six(side.cost),
            }
        row |= {
            "saving_before_ratio": _six(one.saving_before),
            "saving_before_basis": one.before,
            "saving_ratio": _six(one.saving),
            "saving_low_ratio": _six(one.low),
            "saving_high_ratio": _six(one.high),
            "break_even_baseline_price_per_hour_usd": _six(one.break_even_baseline_usd),
            "notes": "; ".join(one.notes),
        }
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def show(found: Sequence[Repriced], console: Console) -> None:
    """Print each comparison: both instance types, then the saving in sentences."""
    shown = []
    for one in found:
        prices = [*filter(None, (side.then for side in one.sides)), *(side.price for side in one.sides)]
        sources = [*dict.fromkeys(f"{price.instance_type}: {price.source}" for price in prices)]
        shown.append(vars(one) | {"even": one.break_even_baseline_usd, "sources": sources})
    show_text("reprice.txt.j2", {"found": shown}, console, has_figures=True)


def _six(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:.6f}"
