"""One row per pair of the comparison, cost basis and factor: what of the difference of a unit's cost each factor made.

A side's cost is the geometric mean over its runs, so it is the product of the geometric means of their factors:
list price of the day compared × change of price since the run × rate (what was paid of it) × productive hours a step ×
1 / goodput × steps to the target. Hours a step are what remains; a factor not measured on both sides is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from math import exp, fsum, log
from typing import Any

import polars as pl

from pipelines.proof.decomposition import Part, decompose

INPUTS = ("fct_silicon_comparison", "fct_run_unit", "dim_list_price")
HOURS = "silicon_hours"
# As they are told: the chip first, then what is not the chip's.
FACTORS = ("silicon_price", HOURS, "rate", "operations", "convergence", "price_change")
# Where runs do not tell one region of the book: its fullest one, on both days alike.
REGION = "us-east-1"
_KEY = ("workload_id", "gpu_instance_type", "trainium_instance_type", "cost_basis", "billing_currency")
_MISSING = {
    "silicon_price": "the price book has no price of both sides on the day compared",
    "price_change": "the price book has no price of every run's own day",
    "rate": "no list price or hours of instances of every run",
    "operations": "no kept training time of every run",
    "convergence": "no step at the target of every run",
}
_SCHEMA = {
    **dict.fromkeys((*_KEY, "unit_measure", "factor"), pl.String),
    "factor_no": pl.Int64,
    "gpu_factor": pl.Float64,
    "trainium_factor": pl.Float64,
    "log_part": pl.Float64,
    "cost_part_usd": pl.Decimal(20, 10),
    "missing_evidence": pl.String,
}
Prices = dict[tuple[str, str], list[tuple[date, float]]]


def build(
    fct_silicon_comparison: pl.DataFrame, fct_run_unit: pl.DataFrame, dim_list_price: pl.DataFrame
) -> pl.DataFrame:
    """The factors of every pair that has a unit cost on both sides."""
    prices = _prices(dim_list_price)
    runs = fct_run_unit.filter(status="completed").sort("run_id")
    both = pl.all_horizontal(pl.col("gpu_unit_cost_usd", "trainium_unit_cost_usd") >= 0)
    measured = fct_silicon_comparison.filter(both).sort(_KEY)
    rows = [row for pair in measured.iter_rows(named=True) for row in _rows(pair, runs, prices)]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _rows(pair: dict[str, Any], runs: pl.DataFrame, prices: Prices) -> Iterator[dict[str, Any]]:
    gpu = _factors(pair, pair["gpu_instance_type"], pair["gpu_unit_cost_usd"], runs, prices)
    trainium = _factors(pair, pair["trainium_instance_type"], pair["trainium_unit_cost_usd"], runs, prices)
    factors = {name: (gpu[name], trainium[name]) for name in FACTORS if name in gpu}
    parts = decompose(pair["gpu_unit_cost_usd"], pair["trainium_unit_cost_usd"], factors, HOURS)
    unmeasured = [part.factor for part in parts if part.usd is None]
    for part in sorted(parts, key=lambda part: FACTORS.index(part.factor)):
        yield {
            **{name: pair[name] for name in (*_KEY, "unit_measure")},
            "factor": part.factor,
            "factor_no": FACTORS.index(part.factor) + 1,
            "gpu_factor": _shown(part.gpu),
            "trainium_factor": _shown(part.trainium),
            "log_part": _shown(part.log_ratio),
            "cost_part_usd": part.usd,
            "missing_evidence": _words(part, unmeasured),
        }


def _factors(
    pair: dict[str, Any], instance_type: str, unit_cost: Any, runs: pl.DataFrame, prices: Prices
) -> dict[str, float | None]:
    """Every factor of one side but the remaining one; None where a run of the side does not measure it."""
    own = runs.filter(
        workload_id=pair["workload_id"],
        instance_type=instance_type,
        unit_measure=pair["unit_measure"],
        billing_currency=pair["billing_currency"],
    ).rows(named=True)
    hours = _mean(_quotient(run["instance_hours"], run["unit_count"]) for run in own)
    paid = _mean(_price(prices, run, run["ended_at"].date()) for run in own)
    compared = _mean(_price(prices, run, pair["price_date"]) for run in own)
    goodput = _mean(_quotient(run["productive_node_ms"], run["billed_node_ms"]) for run in own)
    return {
        "silicon_price": compared,
        "rate": _quotient(unit_cost, None if paid is None or hours is None else paid * hours),
        "operations": _quotient(1, goodput),
        "convergence": _mean(run["step_count"] for run in own) if pair["unit_measure"] == "cost_to_target" else 1.0,
        "price_change": _quotient(paid, compared),
    }


def _prices(listed: pl.DataFrame) -> Prices:
    """On-demand prices by instance type and region, oldest first."""
    found: Prices = {}
    for row in listed.filter(offer="on_demand").sort("from_date").iter_rows(named=True):
        place = row["instance_type"], row["region_id"]
        found.setdefault(place, []).append((row["from_date"], float(row["price_per_hour_usd"])))
    return found


def _price(prices: Prices, run: dict[str, Any], day: date) -> float | None:
    """The price of an instance-hour on a day; the oldest one known where the book begins later."""
    for region in (run["region_id"], REGION):
        if held := prices.get((run["instance_type"], region)):
            return next((usd for from_date, usd in reversed(held) if from_date <= day), held[0][1])
    return None


def _mean(values: Iterable[Any]) -> float | None:
    """The geometric mean; None where a value is missing or not above zero, or there is none."""
    known = [float(value) if value is not None else 0.0 for value in values]
    return exp(fsum(map(log, known)) / len(known)) if known and min(known) > 0 else None


def _quotient(part: Any, whole: Any) -> float | None:
    return None if part is None or not whole else float(part) / float(whole)


def _shown(value: float | None) -> float | None:
    # Beyond twelve digits logarithms differ from machine to machine.
    return None if value is None else float(f"{value:.12g}")


def _words(part: Part, unmeasured: list[str]) -> str | None:
    if part.usd is None:
        return f"{_MISSING[part.factor]}: it is in {HOURS}"
    if part.factor == HOURS and unmeasured:
        return f"with {', '.join(unmeasured)}, not measured apart"
    return None
