"""One row per port: what it cost, what a run saves, and whether, when and how probably it pays back."""

from datetime import date, timedelta

import polars as pl

from pipelines.analysis.break_even import payback_probability, runs_to_break_even
from pipelines.transforms import Row, Rows, port_case
from pipelines.transforms.port_case import CURRENCY, MONTH_DAYS, PortCase, port_cases

INPUTS = (*port_case.INPUTS, "detail_savings_run", "detail_savings_adjustment")


def build(**table: pl.DataFrame) -> Rows:
    """Every declared port; null where nothing measures or plans what a figure needs."""
    days = table["fct_run"].select("run_id", begun_date=pl.col("started_at").dt.date())
    savings, adjustments = table["detail_savings_run"].join(days, on="run_id"), table["detail_savings_adjustment"]
    savings = savings.filter(~pl.col("is_other_work")).with_columns(pl.col("begun_date").min().over("job_id"))
    return [_row(found, savings, adjustments) for found in port_cases(table)]


def _row(found: PortCase, savings: pl.DataFrame, adjustments: pl.DataFrame) -> Row:
    port, case = found.port, found.case
    row: Row = {
        **{name: port[name] for name in ("port_name", "workload_id", "started_date", "horizon_months")},
        "billing_currency": CURRENCY,
        **{f"{kind}_cost_usd": usd for kind, usd in found.costs.items()},
        "port_cost_usd": found.port_cost,
        "baseline_cost_per_run_usd": found.baseline,
        "saving_low_per_run_usd": found.low,
        "saving_high_per_run_usd": found.high,
        "saving_evidence": found.saving_evidence,
        "runs_per_month": found.runs_per_month,
        "cadence_evidence": found.cadence_evidence,
        "missing_evidence": "; ".join(found.missing) or None,
        **_realized(found, savings, adjustments),
    }
    if found.pair:
        row |= {name: found.pair[name] for name in ("baseline_instance_type", "candidate_instance_type")}
    if found.baseline is not None and found.candidate is not None:
        row |= _runs(found, found.baseline - found.candidate)
    if case is not None:
        needed = row["break_even_run_count"]
        months = needed / case.runs_per_month if needed is not None and case.runs_per_month else None
        row |= {
            "payback_months": months,
            "payback_date": _after(port["started_date"], months),
            "payback_probability_ratio": payback_probability(case, found.low, found.high),
            "npv_usd": case.npv,
            "expected_npv_usd": case.expected,
        }
    return row


def _runs(found: PortCase, saving: float) -> Row:
    """Runs to break even, fewest where a run saves most; null is never, or unknown as the port's cost is."""
    if found.port_cost is None:
        return {"saving_per_run_usd": saving}
    needed = runs_to_break_even(found.port_cost, saving)
    row = {"saving_per_run_usd": saving, "break_even_run_count": needed, "break_even": _words(needed)}
    if found.low is None or found.high is None:
        return row
    fewest, most = (runs_to_break_even(found.port_cost, end) for end in (found.high, found.low))
    return row | {
        "break_even_low_run_count": fewest,
        "break_even_high_run_count": most,
        "break_even": f"{_words(needed)} ({_words(fewest)} to {_words(most)})",
    }


def _words(runs: int | None) -> str:
    return "never" if runs is None else f"{runs} run{'' if runs == 1 else 's'}"


def _after(start: date, months: float | None) -> date | None:
    """The day so many months later; None where there is none, or the calendar lacks it."""
    days = None if months is None else months * MONTH_DAYS
    return None if days is None or days > (date.max - start).days else start + timedelta(days=days)


def _realized(found: PortCase, savings: pl.DataFrame, adjustments: pl.DataFrame) -> Row:
    """What runs since the port began avoided, as in mart_savings_monthly, compared with the plan for as many runs.

    Runs that are part of its cost, such as its pilot, are not counted again. Adjustments are of months.
    """
    port = found.port
    is_its_cost = pl.col("run_id").is_in(found.run_ids).any().over("job_id")
    begun = (pl.col("begun_date") >= port["started_date"]) & ~is_its_cost
    month = pl.col("month_date") >= port["started_date"].replace(day=1)
    runs, adjusted = (
        table.filter(since, workload_id=port["workload_id"], billing_currency=CURRENCY)
        for table, since in ((savings, begun), (adjustments, month))
    )
    if runs.is_empty() and adjusted.is_empty():
        return {}
    count = runs["job_id"].n_unique()
    row: Row = {"realized_run_count": count}
    planned_usd, planned_ratio = port["planned_baseline_cost_per_run_usd"], port["planned_saving_ratio"]
    if planned_usd is not None and planned_ratio is not None:
        row["planned_saving_usd"] = count * float(planned_usd) * planned_ratio
    avoided = runs.select(pl.col("baseline_cost_usd") - pl.col("actual_cost_usd")).to_series()
    if not avoided.null_count():
        row["realized_saving_usd"] = float(avoided.sum()) + float(adjusted["adjustment_usd"].sum())
        if found.port_cost is not None:
            row["realized_net_usd"] = row["realized_saving_usd"] - found.port_cost
    return row
