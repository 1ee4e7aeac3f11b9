"""A repriced comparison as a table for people and as rows for programs."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines.base.console import Console, folded
from pipelines.explain.terminal import grid
from pipelines.prices.reprice import Repriced


def as_rows(found: Sequence[Repriced]) -> list[dict[str, Any]]:
    """One flat row a comparison; amounts and ratios as text, exact to six places."""
    rows = []
    for one in found:
        hours, counts, costs = one.hours or (None, None), one.run_counts or (None, None), one.unit_costs or (None, None)
        before = one.then or (None, None)
        row: dict[str, Any] = {
            "subject": one.subject,
            "price_date": one.at.isoformat(),
            "offer": one.baseline.offer,
            "region_id": one.region_id,
            "unit_measure": one.unit_measure,
        }
        for at, (side, price) in enumerate((("baseline", one.baseline), ("candidate", one.candidate))):
            then = before[at]
            row |= {
                f"{side}_instance_type": price.instance_type,
                f"{side}_price_per_hour_usd": _six(price.usd_per_hour),
                f"{side}_price_from_date": price.from_date and price.from_date.isoformat(),
                f"{side}_price_evidence": price.evidence,
                f"{side}_price_source": price.source,
                f"{side}_price_then_per_hour_usd": _six(then.usd_per_hour) if then else None,
                f"{side}_run_count": counts[at],
                f"{side}_unit_instance_hours": _six(hours[at]),
                f"{side}_unit_cost_usd": _six(costs[at]),
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
    return rows


def frame_of(found: Sequence[Repriced]) -> pl.DataFrame:
    """The same as a table."""
    return pl.DataFrame(as_rows(found), infer_schema_length=None)


def show(found: Sequence[Repriced], console: Console) -> None:
    """Print each comparison: both instance types, then the saving in sentences."""
    for number, one in enumerate(found):
        if number:
            console.say("")
        for line in _page(one, console.width):
            console.say(line)


def _page(one: Repriced, width: int) -> list[str]:
    lines = folded(f"{one.subject}, at {one.baseline.offer} prices of {one.at} in {one.region_id}", width, indent="")
    if one.unit_costs and one.hours and one.run_counts:
        unit = (one.unit_measure or "").removeprefix("cost_per_").removeprefix("cost_to_").replace("_", " ")
        head = ("instance type", "price held", "runs", f"hours/{unit}", "USD/hour", f"USD/{unit}")
        sides = zip((one.baseline, one.candidate), one.run_counts, one.hours, one.unit_costs, strict=True)
        rows = [
            (
                price.instance_type,
                f"{price.since}, {price.evidence}",
                str(runs),
                f"{hours:,.4f}",
                _usd(price.usd_per_hour),
                f"{cost:,.4f}",
            )
            for price, runs, hours, cost in sides
        ]
        lines += grid(head, rows, 4, width)
    elif one.then:
        head = ("instance type", "price held", "USD/hour then", "USD/hour")
        rows = [
            (price.instance_type, f"{then.since}; {price.since}", _usd(then.usd_per_hour), _usd(price.usd_per_hour))
            for price, then in zip((one.baseline, one.candidate), one.then, strict=True)
        ]
        lines += grid(head, rows, 2, width)
    interval = f" ({_percent(one.low)} to {_percent(one.high)})" if one.low is not None and one.high is not None else ""
    cheaper = f"Trainium is {_percent(abs(one.saving))} {'cheaper' if one.saving >= 0 else 'more expensive'}"
    sentences = [
        f"At these prices {cheaper}{interval}; {one.before} it was {_percent(one.saving_before)}.",
        f"The two cost the same at {_usd(one.break_even_baseline_usd)} USD per hour of {one.baseline.instance_type}.",
        *(f"{note[0].upper()}{note[1:]}." for note in one.notes),
        *_sources(one),
        "Basis: list price of instances only; commitments, credits, storage and network are excluded.",
    ]
    return lines + [line for sentence in sentences for line in folded(sentence, width, indent="")]


def _sources(one: Repriced) -> list[str]:
    sources = [f"{price.instance_type}: {price.source}." for price in (*(one.then or ()), one.baseline, one.candidate)]
    return list(dict.fromkeys(sources))


def _percent(ratio: Decimal | None) -> str:
    return "unknown" if ratio is None else f"{ratio * 100:.1f} %"


def _usd(amount: Decimal) -> str:
    return f"{amount:,.4f}".rstrip("0").rstrip(".") if amount < 1 else f"{amount:,.2f}"


def _six(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:.6f}"
