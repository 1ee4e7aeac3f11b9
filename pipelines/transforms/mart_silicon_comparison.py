"""One row per workload × baseline and candidate instance type × cost basis × currency: saving, interval, verdict.

Brings the runs of each pair together; the arithmetic and the words are in pipelines/analysis.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

import polars as pl

from pipelines.analysis.compared_runs import Context
from pipelines.analysis.comparison import SIDES, compare
from pipelines.analysis.matched import FAILED, Run, has_failed, has_result
from pipelines.analysis.registration import registrations_by_workload
from pipelines.base.groups import grouped
from pipelines.transforms import Row, Rows, run_pair
from pipelines.transforms.price_book import price_on, prices_of
from pipelines.transforms.run_pair import FIELDS, PAIR_KEY, pairs_of, runs_of

INPUTS = (
    *run_pair.INPUTS, "detail_run_efficiency", "fct_ledger", "stg_proof__registration", "stg_tracker__unread_run",
    "mart_price_book", "declared_workload", "policy",
)  # fmt: skip
# What is known of a run that may not be compared.
_LEFT_OUT = ("run_id", "workload_id", "purpose", "status", "started_at", "ended_at")
# How often a two-sided 95 % interval leads to a false verdict.
FALSE_RATIO = 0.05
# Accelerator spend of a month that no recorded run explains, the worst case of a comparison; without a month, all of
# it, with the storage and network of runs.
QUERIES = run_pair.QUERIES | {
    "fct_ledger": """
        select billing_month, billing_currency, instance_type,
            case when count(list_cost_usd) = count(*) then sum(list_cost_usd) end as list_cost_usd,
            sum(effective_cost_usd) as effective_cost_usd, sum(billed_cost_usd) as billed_cost_usd
        from fct_ledger
        where (bucket = 'unattributed' or evidence = 'tag_only') and instance_type is not null
        group by billing_month, billing_currency, instance_type
        union all
        select null, billing_currency, null, null,
            case when count(effective_cost_usd) = count(*) then sum(effective_cost_usd) end, null
        from fct_ledger
        where accelerator_family <> 'none' or bucket = 'run'
        group by billing_currency
    """
}


def build(**table: pl.DataFrame) -> Rows:
    """Every pair of instance types on which a workload completed a run, on each basis."""
    delay = dict(table["declared_workload"].select("workload_id", "delay_usd_per_day").iter_rows())
    impossible = dict(table["detail_run_efficiency"].select("run_id", "is_impossible").iter_rows())
    runs: list[Run] = [{**run, "is_impossible": impossible.get(run["run_id"])} for run in runs_of(table)]
    context = _context(
        runs, table["fct_ledger"], table["mart_price_book"], table["policy"]["equal_quality_ratio"].item()
    )
    context = replace(context, left_out=left_out(table, runs), unread=unread(table, runs), unrated=unrated(table, runs))
    registrations = table["stg_proof__registration"].to_dicts()
    registered = registrations_by_workload(registrations)
    by_name = {row["registration"]: row for row in registrations}
    found = list(pairs_of(runs))
    pairs = [
        (key, compare(baseline, candidate, context, registered.get(key["workload_id"])))
        for key, baseline, candidate in found
    ]
    count = sum(
        looks(by_name, rows[0]["registration"], [*baseline, *candidate])
        for (_, rows), (_, baseline, candidate) in zip(pairs, found, strict=True)
        if rows[0].get("registration")
    )
    _name_cheaper([(key, row) for key, rows in pairs for row in rows])
    of_all = {"registered_comparison_count": count, "expected_false_count": count * FALSE_RATIO}
    return [
        key | row | of_all | {"delay_cost_usd": delay_cost(row, delay.get(key["workload_id"]))}
        for key, rows in pairs
        for row in rows
    ]


def looks(by_name: Mapping[str, Row], name: str, runs: Sequence[Run]) -> int:
    """How many comparisons of these runs were registered: the last one, and each before it that had results by then."""
    newer = row = by_name[name]
    count = 1
    while row := by_name.get(row["supersedes"]):
        # One of another workload, which was misspelled, may be between.
        if row["workload_id"] == newer["workload_id"]:
            days = row["registered_on"], newer["registered_on"]
            count += any(days[0] <= run["ended_at"].date() <= days[1] for run in runs)
            newer = row
    return count


def _name_cheaper(rows: Sequence[tuple[Row, Row]]) -> None:
    """Name the cheapest baseline machine that costs less than the candidate of a pair, where its own costs more."""
    cheaper: dict[tuple[Any, ...], tuple[float, str]] = {}

    def work(key: Row, row: Row) -> tuple[Any, ...]:
        return *(key[name] for name in PAIR_KEY if name != "baseline_instance_type"), row["cost_basis"]

    for key, row in rows:
        if (saving := row.get("saving_ratio")) is not None and saving < 0:
            found = saving, key["baseline_instance_type"]
            cheaper[work(key, row)] = min(found, cheaper.get(work(key, row), found))
    for key, row in rows:
        if work(key, row) in cheaper and (saving := row.get("saving_ratio")) is not None and saving >= 0:
            name = row["cheaper_baseline_instance_type"] = cheaper[work(key, row)][1]
            words = f"{name} costs less than {key['candidate_instance_type']}, so nothing is recommended to move"
            row["verdict_reason"] += f"; {words}"


def left_out(table: Mapping[str, pl.DataFrame], runs: Sequence[Run]) -> list[Run]:
    """Recorded runs that no comparison counts though it might, and `why`: their cost may be what makes it fail.

    What ended before the first billed run or after the newest usage is no part of the bill. Every run of `runs` is left
    out of the pairs of other machines and currencies.
    """
    completed = {_side(run) for run in runs if has_result(run)}
    first = _first_month(runs)
    found: list[Run] = []
    for run, cost in _uncounted(table, runs):
        if first and first <= run["started_at"].date() and run["ended_at"].date() <= cost["newest_usage_date"]:
            why = f"has no {'machine' if cost['is_billed'] else 'cost'} on the bill"
            why = "ran on several kinds of machines" if run["instance_type"] == "mixed" else why
            found.append({**run, "billing_currency": None, "is_alone": False, "why": why})
    return [*found, *({**run, "is_alone": run["status"] != "running" and _side(run) not in completed} for run in runs)]


def unrated(table: Mapping[str, pl.DataFrame], runs: Sequence[Run]) -> list[Run]:
    """Ended runs of accelerators, or of a machine that is not known, that no failure rate counts."""
    return [run for run, _ in _uncounted(table, runs)]


def _uncounted(table: Mapping[str, pl.DataFrame], runs: Sequence[Run]) -> Iterator[tuple[Run, Row]]:
    """Ended runs that are not in `runs`, with their cost, of GPUs or Trainium or of machines that are not known.

    A failed run that named no machine may be of either family.
    """
    described = {row["run_id"]: row for row in table["dim_run"].select(_LEFT_OUT).to_dicts()}
    counted = {run["run_id"] for run in runs}
    for cost in table["fct_run_cost"].iter_rows(named=True):
        run = {**described[cost["run_id"]], "instance_type": cost["instance_type"]}
        has_no_machine = cost["instance_type"] == "unknown" and (cost["is_billed"] or run["status"] in FAILED)
        is_ended = run["status"] != "running" and run["purpose"] != "compile_only" and run["run_id"] not in counted
        if is_ended and (has_no_machine or cost["accelerator_family"] in ("gpu", "trainium", "mixed")):
            yield run, cost


def _side(run: Run) -> tuple[Any, ...]:
    return run["workload_id"], run["billing_currency"], run["accelerator_family"], run["instance_type"]


def _first_month(runs: Sequence[Run]) -> date | None:
    return min((run["first_billing_month"] for run in runs if run["first_billing_month"]), default=None)


def unread(table: Mapping[str, pl.DataFrame], runs: Sequence[Run]) -> list[Run]:
    """Runs of which a record cannot be read and that are not known to have ended before the first billed run."""
    first = _first_month(runs)
    rows = table["stg_tracker__unread_run"].to_dicts()
    return [row for row in rows if row["last_seen_at"] is None or (first and row["last_seen_at"].date() >= first)]


def delay_cost(row: Row, usd_per_day: Any) -> float | None:
    """USD by which a later result of the candidate costs more; negative where it is sooner."""
    hours = [row.get(f"{side}_hours_to_target") for side in SIDES]
    if usd_per_day is None or hours[0] is None or hours[1] is None:
        return None
    return (hours[1] - hours[0]) / 24 * float(usd_per_day)


def _context(runs: Sequence[Run], residual: pl.DataFrame, prices: pl.DataFrame, equal_quality: float) -> Context:
    unexplained = {
        (row["billing_month"], row["billing_currency"], row["instance_type"]): row
        for row in residual.iter_rows(named=True)
    }

    def held(run: Run, month: date | None, basis: str) -> float:
        row = unexplained.get((month, run["billing_currency"], run["instance_type"]), {})
        return float(row.get(f"{basis}_cost_usd") or 0)

    def rate(family: str, since: date, until: date, but: frozenset[str]) -> tuple[int, int]:
        jobs: dict[str, bool] = {}
        for run in runs:
            is_of_set = run["accelerator_family"] == family and run["run_id"] not in but and run["status"] != "running"
            if is_of_set and run["started_at"].date() >= since and run["ended_at"].date() <= until:
                jobs[run["job_id"]] = has_failed(run) and jobs.get(run["job_id"], True)
        return len(jobs), sum(jobs.values())

    by_model = grouped(runs, lambda run: _machine_and_model(run, run["model"]))

    def alike(run: Run) -> list[Run]:
        near = [*by_model[_machine_and_model(run, run["model"])], *by_model.get(_machine_and_model(run, None), [])]
        return [other for other in near if other["workload_id"] != run["workload_id"] and _may_be_same(other, run)]

    def spend(run: Run) -> float:
        return held({**run, "instance_type": None}, None, "effective")

    return Context(held, partial(price_on, prices_of(prices)), rate, alike, spend, equal_quality)


def _may_be_same(other: Run, run: Run) -> bool:
    """Whether a run records nothing but what `run` does, its model or its dataset at the least: null is unknown.

    However names are spelled in case and at their ends.
    """
    is_named = run["model"] and (other["model"] or other["dataset"])
    return bool(is_named) and all(other[name] is None or _folded(other[name]) == _folded(run[name]) for name in FIELDS)


def _folded(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


def _machine_and_model(run: Run, model: str | None) -> tuple[Any, ...]:
    return run["instance_type"], run["billing_currency"], run["origin_checkpoint_id"], _folded(model)
