"""The ways to serve each model, in the terminal: figures and verdicts of mart_serving_comparison."""

from collections.abc import Iterator

import polars as pl

from pipelines.analysis.comparison import SIDES
from pipelines.base.console import Console, counted
from pipelines.base.errors import UsageError
from pipelines.compare.tables import Lines, Row, amount, show_block
from pipelines.engine import Engine
from pipelines.present.formats import cents, day, figure, large, percent, unit_usd


def ways_of(marts: Engine, model: str | None) -> pl.DataFrame:
    """The rows of mart_serving_comparison, of all models for None; UsageError where there are none.

    `model` is a name, or a part of one or several.
    """
    rows = marts.query(
        "select * from mart_serving_comparison order by billing_currency, baseline_cost_per_month_usd desc nulls last, "
        "model, baseline_platform, baseline_tier nulls first, candidate_platform nulls last, "
        "candidate_cost_per_month_usd"
    )
    if model is not None:
        rows = rows.filter(pl.col("model").str.to_lowercase().str.contains(model.lower(), literal=True))
    if rows.is_empty():
        unknown = "No model is served" if model is None else f"Model {model!r} is not served"
        raise UsageError(f"{unknown} on this bill; mart_inference_cost_daily lists the served models.")
    return rows


def show_ways(rows: pl.DataFrame, console: Console) -> None:
    """One block per way: both sides, then the crossover, the verdict and what is missing."""
    for number, row in enumerate(rows.iter_rows(named=True)):
        other = f"{_named(row, 'candidate')} instead" if row["candidate_platform"] else "no other way known"
        sides = f"today: {_named(row, 'baseline')}", other
        show_block(number, row["model"], sides, _figures(row), _words(row), console)


def _figures(row: Row) -> Lines:
    """A line per figure, today next to the other way."""
    amounts = {"a month": ("cost_per_month_usd", cents), "per million tokens": ("cost_per_million_total_usd", unit_usd)}
    return [
        (label, *(amount(row, f"{side}_{name}", form) for side in SIDES)) for label, (name, form) in amounts.items()
    ]


def _named(row: Row, side: str) -> str:
    model = (
        "" if side == "baseline" or row["candidate_model"] in (None, row["model"]) else f"{row['candidate_model']}, "
    )
    tier = row["baseline_tier"] if side == "baseline" else None
    return model + (row[f"{side}_instance_type"] or str(row[f"{side}_platform"])) + (f", {tier}" if tier else "")


def _words(row: Row) -> Iterator[str]:
    if row["tokens_per_month"] is None:
        yield "Traffic:   unknown."
    else:
        days = counted(row["day_count"], "day")
        yield f"Traffic:   {large(row['tokens_per_month'])} tokens a month, the mean of {days}."
    if row["crossover_tokens_per_month"] is not None:
        used = row["crossover_utilization_ratio"]
        of_capacity = "" if used is None else f", {percent(used)} of its capacity"
        rate = f" or {figure(row['break_even_tokens_per_second'])} a second" if row["baseline_tier"] else ""
        yield (
            f"Crossover: {large(row['crossover_tokens_per_month'])} tokens a month{rate}, "
            f"{figure(row['traffic_multiple'])} times today's traffic{of_capacity}."
        )
    yield f"Verdict:   {row['verdict']}: {row['verdict_reason']}."
    if row["payback_months"] and row["port_cost_usd"]:
        yield f"Port:      {amount(row, 'port_cost_usd', cents)}, paid back in {figure(row['payback_months'])} months."
    yield f"Prices:    of {day(row['price_date'])}{'; ' + row['candidate_source'] if row['candidate_source'] else ''}."
    if row["missing_evidence"] and row["missing_evidence"] not in row["verdict_reason"]:
        yield f"Missing:   {row['missing_evidence']}."
