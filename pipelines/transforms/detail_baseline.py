"""One row per version of a baseline: what a unit of work took on the GPU, measured on the runs it names or asserted.

Figures of closed months are frozen when they are first published: later builds take them from that publication.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from pipelines.analysis.comparison_faults import work_faults
from pipelines.analysis.estimate import unit_cost
from pipelines.analysis.matched import Run, jobs_of, one_side
from pipelines.base.errors import UsageError
from pipelines.transforms import Row, Rows, run_pair
from pipelines.transforms.price_book import Prices, price_on, prices_of
from pipelines.transforms.run_pair import runs_of

INPUTS = (*run_pair.INPUTS, "declared_baseline", "declared_baseline_run", "published_baseline", "mart_price_book")
QUERIES = run_pair.QUERIES
HOURS = ("hours_per_unit", "hours_low_per_unit", "hours_high_per_unit")
FIGURES = (*HOURS, "success_hours_per_unit", "baseline_paid_ratio")


def build(**table: pl.DataFrame) -> Rows:
    """Every declared version, and those published before, which stay sealed. UsageError for one that was edited."""
    prices = prices_of(table["mart_price_book"])
    runs = {run["run_id"]: run for run in (runs_of(table) if table["declared_baseline"].height else ())}
    before = {_version(row): row for row in table["published_baseline"].iter_rows(named=True)}
    named: dict[tuple[str, int], list[str]] = {}
    for row in table["declared_baseline_run"].iter_rows(named=True):
        named.setdefault(_version(row), []).append(row["run_id"])
    rows = []
    for baseline in table["declared_baseline"].iter_rows(named=True):
        known = before.pop(_version(baseline), None)
        if known is not None and known["baseline_sha256"] != baseline["baseline_sha256"]:
            raise UsageError(
                f"Baseline {baseline['baseline_name']} version {baseline['baseline_version']} was changed after it was "
                f"published (sha256 {known['baseline_sha256'][:12]} then, {baseline['baseline_sha256'][:12]} now); put "
                "its file back, and write the change as a new version in a file of its own."
            )
        if known is None or not known["is_sealed"]:
            of_baseline = named.get(_version(baseline))
            known = baseline | (
                _asserted(baseline) if of_baseline is None else _measured(baseline, of_baseline, runs, prices)
            )
            known["figures_sha256"] = _digest(known) if known["is_sealed"] else None
        if known["baseline_evidence"] == "measured":
            known |= {"all_runs_hours_per_unit": _all_runs_hours(baseline, runs)}
        rows.append(known | {"is_configured": True})
    return rows + [row | {"is_configured": False} for row in before.values()]


def _version(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["baseline_name"], row["baseline_version"]


def _asserted(baseline: Mapping[str, Any]) -> Row:
    paid = baseline["baseline_paid_ratio"]
    return {
        "baseline_evidence": "asserted",
        "success_hours_per_unit": baseline["hours_per_unit"],
        "baseline_paid_ratio": 1.0 if paid is None else paid,
        "is_sealed": True,
    }


def _measured(baseline: Mapping[str, Any], named: Sequence[str], runs: Mapping[str, Run], prices: Prices) -> Row:
    """Hours and paid ratio of the named runs as ratios of sums, failed runs included, and the interval of hours.

    The ratio is of list prices in the region that the hours are later priced in: the runs' own, where it is one.
    """
    row: Row = {"baseline_evidence": "measured", "run_count": 0, "failed_run_count": 0, "is_sealed": False}
    own = [runs[run_id] for run_id in named if run_id in runs]
    regions = {run["region_id"] for run in own}
    if len(regions) == 1 and None not in regions:
        row["region_id"] = regions.pop()
    own = [_listed(run, row.get("region_id", baseline["region_id"]), prices) for run in own]
    faults = [*dict.fromkeys(_faults(baseline, named, runs))]
    side = None if faults else one_side(own, baseline["unit_measure"])
    if side is None:
        what = baseline["unit_measure"].replace("_", " ")
        return row | {"missing_evidence": "; ".join(faults) or f"no {what} is recorded of its runs"}
    row |= {"run_count": len(side.succeeded), "failed_run_count": len(side.failed)}
    starts = [run["started_at"].date() for run in own]
    row |= {"first_run_date": min(starts), "last_run_date": max(starts)}
    hours = side.sample("hours")
    spent, listed = (side.sample(basis) for basis in ("effective", "on_demand"))
    if hours is None or spent is None or listed is None:
        lacks = "hours" if hours is None else "cost" if spent is None else "on-demand price"
        return row | {"missing_evidence": f"the {lacks} of one of its runs is not known"}
    value, low, high, missing = unit_cost(hours)
    done = hours.costs[~hours.failed].sum() / hours.units.sum()
    return row | {
        **dict(zip(HOURS, (value, low, high), strict=True)),
        "success_hours_per_unit": float(done),
        "baseline_paid_ratio": float(spent.costs.sum() / listed.costs.sum()),
        "is_sealed": not any(run["open_billing_month"] for run in side.runs),
        "missing_evidence": missing,
    }


def _listed(run: Run, region_id: str, prices: Prices) -> Run:
    usd, hours = price_on(prices, {**run, "region_id": region_id}, run["ended_at"].date()), run["costs"]["hours"]
    listed = tuple(None if usd is None or part is None else part * usd for part in hours)
    return {**run, "costs": {**run["costs"], "on_demand": listed}}


def _all_runs_hours(baseline: Mapping[str, Any], runs: Mapping[str, Run]) -> float | None:
    """Hours of a unit of all ended runs of the baseline's kind: whoever names runs chooses when they begin and end."""
    kind = (baseline["workload_id"], baseline["baseline_instance_type"])
    side = one_side([run for run in runs.values() if _kind(run) == kind], baseline["unit_measure"])
    hours = side and side.sample("hours")
    return None if hours is None else unit_cost(hours)[0]


def _kind(run: Run) -> tuple[str, str]:
    return run["workload_id"], run["instance_type"]


def _faults(baseline: Mapping[str, Any], named: Sequence[str], runs: Mapping[str, Run]) -> Iterator[str]:
    """Why the named runs do not measure the baseline."""
    workload_id, instance_type = kind = baseline["workload_id"], baseline["baseline_instance_type"]
    for run_id in named:
        run = runs.get(run_id)
        if run is None:
            yield f"run {run_id} is not on the bill"
        elif run["workload_id"] != workload_id:
            yield f"run {run_id} is of the workload {run['workload_id']}"
        elif run["instance_type"] != instance_type:
            yield f"run {run_id} used {run['instance_type']}"
        elif run["status"] == "running":
            yield f"run {run_id} has not ended"
        elif run["ended_at"].date() > baseline["frozen_date"]:
            yield f"run {run_id} ended on {run['ended_at']:%Y-%m-%d}, after the baseline was frozen"
        else:
            yield from run["uncertain"]
    # Naming the expensive runs alone would raise the baseline, and so would a job without the run that completed it.
    own = [runs[run_id] for run_id in named if run_id in runs]
    yield from work_faults([own])
    starts, jobs = [run["started_at"] for run in own], {run["job_id"] for run in own}
    for run in (run for job in jobs_of([run for run in runs.values() if _kind(run) == kind]) for run in job):
        is_of_days = starts and min(starts) <= run["started_at"] <= max(starts)
        if run["run_id"] not in named and (is_of_days or run["job_id"] in jobs):
            yield f"run {run['run_id']} of the same {'days' if is_of_days else 'job'} is not named"


def _digest(row: Mapping[str, Any]) -> str:
    figures = [row["baseline_sha256"], *(f"{row[name] or 0:.12g}" for name in FIGURES)]
    return hashlib.sha256(" ".join(figures).encode()).hexdigest()
