"""One row per pair of the comparison, cost basis and factor: what of the difference of a unit's cost each factor made.

The cost of a unit of the runs that succeeded is a product of ratios of sums: list price of the day compared × change of
price since the runs × rate (what was paid of it) × productive hours a step × steps to the target / goodput. Operations
are what remains of a side's unit cost: 1 / goodput, and what failed runs cost; all hours where goodput is unknown.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from math import fsum
from typing import Any

import polars as pl

from pipelines.analysis.comparison import SIDES
from pipelines.analysis.decomposition import Part, decompose
from pipelines.transforms import Row, Rows, quotient
from pipelines.transforms.detail_run_job import job_counts
from pipelines.transforms.price_book import Prices, price_on, prices_of
from pipelines.transforms.run_pair import PAIR_KEY

INPUTS = (
    "mart_silicon_comparison", "detail_compared_run", "detail_run_unit_cost", "detail_run_job", "mart_price_book",
)  # fmt: skip
OPERATIONS = "operations"
# In the order shown: the chip first, then what is not the chip's.
FACTORS = ("silicon_price", "silicon_hours", "rate", OPERATIONS, "convergence", "price_change")
_KEY = (*PAIR_KEY[:-1], "cost_basis", PAIR_KEY[-1])
_NO_HOURS = "not every run has instance-hours and a cost: it is in operations"
_NO_PRICE = (
    "the price book has no list price of both sides in their runs' regions, on both days and in this currency: "
    "it is in rate"
)
_MISSING = {
    "silicon_price": _NO_PRICE,
    "silicon_hours": _NO_HOURS,
    "rate": _NO_HOURS,
    "convergence": "not every run records the step at its target: it is in silicon_hours",
    "price_change": _NO_PRICE,
}


def build(**table: pl.DataFrame) -> Rows:
    """The factors of every pair that has a unit cost on both sides."""
    prices = prices_of(table["mart_price_book"])
    compared = table["detail_compared_run"].filter(comparison_part="compared").select(*_KEY, "run_id", "unit_measure")
    runs = compared.join(table["detail_run_unit_cost"], on=["run_id", "unit_measure"])
    runs = runs.join(job_counts(table["detail_run_job"]), on=["run_id", "unit_measure"]).sort("run_id")
    # A pair that claims no saving has none to explain; of a unit cost that rounds to zero there is no logarithm.
    costs = pl.min_horizontal("baseline_unit_cost_usd", "candidate_unit_cost_usd")
    measured = table["mart_silicon_comparison"].filter(pl.col("saving_ratio").is_not_null(), costs > 0).sort(_KEY)
    return [row for pair in measured.iter_rows(named=True) for row in _rows(pair, runs, prices)]


def _rows(pair: Row, runs: pl.DataFrame, prices: Prices) -> Iterator[Row]:
    sides = [_measured(pair, pair[f"{side}_instance_type"], runs, prices) for side in SIDES]
    # What one side lacks is divided out of neither.
    known = {name for name in sides[0] if all(side[name] is not None for side in sides)}
    # One price alone divides nothing: without the other, the whole price is in the rate.
    if not known >= {"paid", "compared"}:
        known -= {"paid", "compared"}
    baseline, candidate = (_factors(side, known) for side in sides)
    factors = {name: (baseline[name], candidate[name]) for name in baseline}
    parts = decompose(pair["baseline_unit_cost_usd"], pair["candidate_unit_cost_usd"], factors, OPERATIONS)
    for part in sorted(parts, key=lambda part: FACTORS.index(part.factor)):
        yield {
            **{name: pair[name] for name in (*_KEY, "unit_measure")},
            "factor": part.factor,
            "factor_no": FACTORS.index(part.factor) + 1,
            "baseline_factor": part.baseline,
            "candidate_factor": part.candidate,
            "log_part": part.log_ratio,
            "cost_part_usd": part.usd,
            "missing_evidence": _words(part, known),
        }


def _measured(pair: Row, instance_type: str, runs: pl.DataFrame, prices: Prices) -> dict[str, float | None]:
    """Ratios of sums over the successes of one side; None where one of them does not record a part."""
    own = runs.filter(**{name: pair[name] for name in _KEY}, instance_type=instance_type).to_dicts()
    # What several run ids of a job record, the job did once.
    units = _sum({run["job_id"]: run["job_count"] for run in own}.values())
    hours = _sum(run["instance_hours"] for run in own)
    steps: dict[str, float] = {}
    for run in own:
        steps[run["job_id"]] = max(steps.get(run["job_id"], 0), run["step_count"] or 0)

    def priced(on: Callable[[Row], date]) -> float | None:
        at_list = [(run["instance_hours"], price_on(prices, run, on(run))) for run in own]
        return quotient(_sum(None if usd is None or h is None else float(h) * usd for h, usd in at_list), hours)

    def summed(column: str) -> float | None:
        return _sum(run[column] for run in own)

    return {
        "cost": quotient(summed(f"{pair['cost_basis']}_cost_usd"), units),
        "hours": quotient(hours, units),
        "goodput": quotient(summed("productive_node_ms"), summed("billed_node_ms")),
        "steps": quotient(_sum(steps.values()), units) if pair["unit_measure"] == "cost_to_target" else 1.0,
        "paid": priced(lambda run: run["ended_at"].date()),
        "compared": priced(lambda run: pair["price_date"]),
    }


def _factors(side: dict[str, float | None], known: set[str]) -> dict[str, float | None]:
    """Every factor of a side but the remaining one, of what is known of both."""
    has = {name: value for name, value in side.items() if name in known and value is not None}
    hours, paid = has.get("hours"), has.get("paid", 1.0)
    return {
        "silicon_price": has.get("compared"),
        # Hours that waste may be part of are not the chip's.
        "silicon_hours": hours and hours * has["goodput"] / has.get("steps", 1.0) if "goodput" in has else None,
        "rate": None if hours is None or "cost" not in has else has["cost"] / (hours * paid),
        "convergence": has.get("steps"),
        "price_change": quotient(has.get("paid"), has.get("compared")),
    }


def _sum(values: Iterable[Any]) -> float | None:
    """The sum; None where a value is missing or not above zero, or there is none."""
    known = [float(value) if value is not None else 0.0 for value in values]
    return fsum(known) if known and min(known) > 0 else None


def _words(part: Part, known: set[str]) -> str | None:
    """What is not measured on both sides, and where it then stands."""
    if part.factor == OPERATIONS:
        return None if "goodput" in known else "goodput is not measured of every run: all hours are here"
    if part.factor == "silicon_hours" and "hours" in known and "goodput" not in known:
        return "goodput is not measured of every run: it is in operations"
    return None if part.usd is not None else _MISSING[part.factor]
