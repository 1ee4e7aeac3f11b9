"""One row per run that may be compared: its job, the units of work of the whole job, and what makes runs alike.

What counts units or runs takes jobs from here: run ids of one job are one run, as in the comparison.
"""

from collections import Counter
from collections.abc import Collection

import polars as pl

from pipelines.analysis.comparison_faults import EPOCH_KINDS, MATCHED
from pipelines.analysis.matched import FAILED, Run, ended_of, job_units, jobs_of
from pipelines.transforms import Row, Rows, run_pair
from pipelines.transforms.run_pair import runs_of

# The column with the units of a whole job, by unit of work.
JOB_COUNTS = {
    "cost_to_target": "job_target_count",
    "cost_per_epoch": "job_epoch_count",
    "cost_per_million_tokens": "job_million_token_count",
}
INPUTS = run_pair.INPUTS
QUERIES = run_pair.QUERIES


def build(**table: pl.DataFrame) -> Rows:
    """Every run on one kind of GPU or Trainium machine; what ran after its job's success is not the job's last run."""
    runs = runs_of(table)
    jobs = {own[0]["job_id"]: own for own in jobs_of(runs)}
    without = {*table["dim_run"].filter(pl.col("epoch_completed_count") == 0)["run_id"]}
    whole = {job_id: _whole(own, without) for job_id, own in jobs.items()}
    size = Counter(run["job_id"] for run in runs)
    rows = []
    for run in runs:
        first, last, counts = whole[run["job_id"]]
        about = {name: run[name] for name in MATCHED} | {"job_run_count": size[run["job_id"]]}
        about |= {f"epoch_{kind[:-1]}_count": run["epoch_sizes"].get(kind) for kind in EPOCH_KINDS}
        rows.append({"run_id": run["run_id"], "job_id": first, "is_last_run": run["run_id"] == last, **about, **counts})
    return rows


def job_counts(detail_run_job: pl.DataFrame) -> pl.DataFrame:
    """The units of the whole job of each run by unit of work: `job_count` of `unit_measure`."""
    measures = {count: measure for measure, count in JOB_COUNTS.items()}
    counts = detail_run_job.unpivot(
        [*measures], index=["run_id", "job_id"], variable_name="count", value_name="job_count"
    )
    return counts.with_columns(unit_measure=pl.col("count").replace_strict(measures)).drop("count")


def _whole(own: list[Run], without: Collection[str]) -> tuple[str, str | None, Row]:
    """The first run of a job, the last that ended, and the units of both and all between; null if unknown.

    A job of which every run failed did what these had done by then; those of `without` completed no epoch.
    """
    ended = ended_of(own)
    last = max(ended, key=lambda run: (run["ended_at"], run["run_id"]))["run_id"] if ended else None
    if all(run["status"] in FAILED for run in ended):
        none = {"epoch_completed_count": 0}
        ended = [{**run, "status": "completed", **(none if run["run_id"] in without else {})} for run in ended]
    return own[0]["run_id"], last, {name: job_units(ended, measure) for measure, name in JOB_COUNTS.items()}
