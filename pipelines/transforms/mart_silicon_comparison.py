"""One row per workload × baseline and candidate instance type × cost basis × currency: saving, interval, verdict.

Brings the runs of each pair together; the arithmetic and the words are in pipelines/analysis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

import polars as pl

from pipelines.analysis.comparison import Context, compare
from pipelines.analysis.matched import Run
from pipelines.analysis.registration import registrations_by_workload
from pipelines.transforms.run_pair import BASES, PAIR_KEY, pairs_of

INPUTS = (
    "fct_run_unit_cost",
    "detail_run_efficiency",
    "fct_ledger",
    "dim_run",
    "stg_tracker__evaluation",
    "stg_proof__registration",
    "stg_proof__run",
    "mart_price_book",
)
# Accelerator spend of a month that no run explains: the worst case of a comparison.
QUERIES = {
    "fct_ledger": """
        select billing_month, billing_currency, instance_type,
            case when count(list_cost_usd) = count(*) then sum(list_cost_usd) end as list_cost_usd,
            sum(effective_cost_usd) as effective_cost_usd, sum(billed_cost_usd) as billed_cost_usd
        from fct_ledger
        where bucket = 'unattributed' and instance_type is not null
        group by billing_month, billing_currency, instance_type
    """
}
_SCHEMA = {
    **dict.fromkeys((*PAIR_KEY[:-1], "cost_basis", PAIR_KEY[-1]), pl.String),
    **dict.fromkeys(("baseline_run_count", "candidate_run_count", "excluded_run_count"), pl.Int64),
    **dict.fromkeys(("baseline_failed_run_count", "candidate_failed_run_count"), pl.Int64),
    **dict.fromkeys(("baseline_failed_cost_usd", "candidate_failed_cost_usd"), pl.Float64),
    **dict.fromkeys(("baseline_run_cost_usd", "candidate_run_cost_usd"), pl.Float64),
    "unit_measure": pl.String,
    **dict.fromkeys(("baseline_unit_cost_usd", "candidate_unit_cost_usd"), pl.Float64),
    **dict.fromkeys(("saving_ratio", "saving_low_ratio", "saving_high_ratio"), pl.Float64),
    "interval_method": pl.String,
    **dict.fromkeys(("more_baseline_run_count", "more_candidate_run_count"), pl.Int64),
    **dict.fromkeys(("quality_status", "quality_metric"), pl.String),
    **dict.fromkeys(
        ("baseline_final_quality", "candidate_final_quality", "quality_margin", "worst_quality_loss"), pl.Float64
    ),
    **dict.fromkeys(("verdict", "verdict_reason"), pl.String),
    "price_date": pl.Date,
    "estimated_cost_ratio": pl.Float64,
    "evidence_shares": pl.String,
    **dict.fromkeys(("baseline_residual_cost_usd", "candidate_residual_cost_usd"), pl.Float64),
    **dict.fromkeys(("worst_case_saving_ratio", "baseline_price_change_ratio"), pl.Float64),
    "verdict_sensitivity": pl.String,
    "registration": pl.String,
    "registered_on": pl.Date,
    **dict.fromkeys(("registration_seal", "registered_cost_basis"), pl.String),
}


def build(
    fct_run_unit_cost: pl.DataFrame,
    detail_run_efficiency: pl.DataFrame,
    fct_ledger: pl.DataFrame,
    dim_run: pl.DataFrame,
    stg_tracker__evaluation: pl.DataFrame,
    stg_proof__registration: pl.DataFrame,
    stg_proof__run: pl.DataFrame,
    mart_price_book: pl.DataFrame,
) -> pl.DataFrame:
    """Every pair of instance types on which a workload completed a run, on each basis."""
    context = _context(fct_ledger, dim_run, stg_tracker__evaluation, mart_price_book)
    registered = registrations_by_workload(stg_proof__registration.to_dicts(), stg_proof__run.to_dicts())
    impossible = detail_run_efficiency.select("run_id", "is_impossible")
    runs = fct_run_unit_cost.join(impossible, on="run_id", how="left")
    rows = []
    for key, sides in pairs_of(runs):
        pair = [
            key | {"cost_basis": basis} | compare(*sides[basis], context, registered.get(key["workload_id"]))
            for basis in BASES
        ]
        rows += [row | {"verdict_sensitivity": _sensitivity(row, pair)} for row in pair]
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    # More places than six would only differ from machine to machine.
    return frame.with_columns(pl.col(pl.Float64).round(6))


def _sensitivity(row: Mapping[str, Any], pair: Sequence[Mapping[str, Any]]) -> str | None:
    """What would change the verdict, other bases first."""
    others = [
        f"{other['verdict']} on the {other['cost_basis']} basis" for other in pair if other["verdict"] != row["verdict"]
    ]
    return "; ".join([*others, *filter(None, [row.get("verdict_sensitivity")])]) or None


def _context(residual: pl.DataFrame, dim_run: pl.DataFrame, evaluation: pl.DataFrame, prices: pl.DataFrame) -> Context:
    targets = {
        run["run_id"]: (run["target_metric"], run["target_direction"], run["target_value"])
        for run in dim_run.filter(pl.col("target_metric").is_not_null()).iter_rows(named=True)
    }
    unexplained = {
        (row["billing_month"], row["billing_currency"], row["instance_type"]): row
        for row in residual.iter_rows(named=True)
    }

    def held(run: Run) -> float:
        row = unexplained.get((run["billing_month"], run["billing_currency"], run["instance_type"]), {})
        return float(row.get(f"{run['cost_basis']}_cost_usd") or 0)

    def final(metric: str, runs: Sequence[str]) -> dict[str, float | None]:
        last = (
            evaluation.filter((pl.col("metric") == metric) & pl.col("run_id").is_in(list(runs)))
            .sort("evaluated_at", "step", nulls_last=True)
            .group_by("run_id", "split")
            .agg(pl.col("value").last())
        )
        # The same split of every run, the first by name if several are.
        shared = last.group_by("split").agg(run_count=pl.len()).sort("run_count", "split", descending=[True, False])
        chosen = last.filter(pl.col("split") == (shared["split"][0] if shared.height else ""))
        return dict(chosen.select("run_id", "value").iter_rows())

    return Context(targets.get, final, held, partial(_repriced, _changes(prices)))


def _changes(prices: pl.DataFrame) -> pl.DataFrame:
    """Days on which a reviewed list price became another one."""
    book = prices.filter(offer="on_demand", price_evidence="book").sort("instance_type", "region_id", "from_date")
    before = pl.col("price_per_hour_usd").shift().over("instance_type", "region_id")
    return book.filter(pl.col("price_per_hour_usd") != before).select("instance_type", "from_date")


def _repriced(changes: pl.DataFrame, instance_type: str, last: date, newest: date) -> date | None:
    own = changes.filter(
        pl.col("from_date") > last, pl.col("from_date") <= newest, instance_type=instance_type.removeprefix("ml.")
    )
    found: Any = own["from_date"].min()
    return found
