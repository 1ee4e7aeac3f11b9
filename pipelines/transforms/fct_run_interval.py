"""One row per stretch of a run's time that has a price of its own: phases, epochs, checkpoints, target.

Pure Polars over run-sized frames. Times are UTC milliseconds; intervals are half-open. The kinds:

* ``phase``: a stretch of an attempt in one phase and cause of waste, key = attempt and part (``attempt_phase``).
  Over a run these touch and cover every stay, so their costs sum to the cost of its compute.
* ``epoch``: the retained work of an epoch, key = its number. Work after the last durable checkpoint of an
  attempt that another one followed is not retained (facts training-runs 3, 4).
* ``checkpoint``: all time since the checkpoint before, key = its id; ``tail``: all time after the last one.
  Over a run these touch and cover it too.
* ``target``: from the start to the first evaluation that meets the target, key = how many in a row have met it then.
"""

import polars as pl

from pipelines.base.limits import MOST_PASSES
from pipelines.transforms.attempt_phase import attempt_phases, durable_checkpoints, ms, timed_phases, working_time

INPUTS = (
    "dim_run",
    "stg_tracker__attempt",
    "stg_tracker__resource",
    "stg_tracker__phase",
    "stg_tracker__epoch",
    "stg_tracker__checkpoint",
    "stg_tracker__evaluation",
)
# Of the events of runs, which are many, only what intervals are made of.
QUERIES = {
    "stg_tracker__checkpoint": """
        select
            run_id, attempt_no, checkpoint_id, step, save_started_at, durable_at, stall_seconds,
            is_resumable, is_complete
        from stg_tracker__checkpoint""",
    "stg_tracker__evaluation": """
        select run_id, attempt_no, step, metric, value, split, evaluated_at from stg_tracker__evaluation""",
}
_KINDS = ("checkpoint", "epoch", "phase", "tail", "target")


def build(**table: pl.DataFrame) -> pl.DataFrame:
    """Intervals as (run_id, interval_kind, interval_key, part_no, interval_no, started_ms, ended_ms) and phases' facts.

    Those are attempt_no, phase and waste_cause; null for other kinds. All parts of an interval have its interval_no.
    """
    # Run ids as numbers in their order: millions of rows are sorted, grouped and joined by them.
    run_id = pl.Enum(pl.concat([frame["run_id"].unique() for frame in table.values()]).unique().sort())
    table = {name: frame.cast({"run_id": run_id}) for name, frame in table.items()}
    run = table["dim_run"].select(
        "run_id",
        "target_metric",
        "target_value",
        "target_direction",
        ms("first_seen_at", "run_started_ms"),
        ms("last_seen_at", "run_ended_ms"),
    )
    durable = durable_checkpoints(table["stg_tracker__checkpoint"])
    phase = timed_phases(table["stg_tracker__phase"])
    work = working_time(table["stg_tracker__attempt"], phase, durable)
    parts = [
        _checkpoints(run, durable),
        _epochs(work, table["stg_tracker__epoch"]),
        attempt_phases(work, phase, durable, table).select(
            "run_id",
            pl.lit("phase", pl.Enum(_KINDS)).alias("interval_kind"),
            pl.format("{}/{}", "attempt_no", "part_no").alias("interval_key"),
            pl.exclude("run_id", "part_no"),
        ),
        _target(run, table["stg_tracker__evaluation"]),
    ]
    return (
        pl.concat(parts, how="diagonal")
        .select(
            pl.col("run_id", "interval_kind", "interval_key"),
            pl.col("part_no").fill_null(1),
            pl.col("attempt_no", "phase", "waste_cause", "started_ms", "ended_ms"),
        )
        # The engine sorts what is in order in a third of the time.
        .sort("run_id", "interval_kind", "interval_key", "part_no")
        .with_columns(interval_no=(pl.col("part_no") == 1).cum_sum().cast(pl.Int64))
        .cast({"run_id": pl.String, "interval_kind": pl.String})
    )


def _interval(frame: pl.DataFrame, kind: str, key: pl.Expr, started: str, ended: str) -> pl.DataFrame:
    return frame.select(
        "run_id",
        pl.lit(kind, pl.Enum(_KINDS)).alias("interval_kind"),
        key.cast(pl.String).alias("interval_key"),
        pl.col(started).cast(pl.Int64).alias("started_ms"),
        pl.col(ended).cast(pl.Int64).alias("ended_ms"),
    ).filter(pl.col("ended_ms") > pl.col("started_ms"))


def _epochs(attempt: pl.DataFrame, epoch: pl.DataFrame) -> pl.DataFrame:
    """Retained working time between one epoch's completion and the next, over all attempts of the run."""
    # An epoch repeated after a restart counts once, as it was completed last.
    completed = (
        epoch.with_columns(ms("completed_at", "completed_ms"), ms("started_at", "epoch_started_ms"))
        .sort("run_id", "epoch_index", "completed_ms")
        .group_by("run_id", "epoch_index", maintain_order=True)
        .last()
        .sort("run_id", "completed_ms", "epoch_index")
        .with_columns(before_ms=pl.col("completed_ms").shift(1).over("run_id"))
    )
    work = attempt.select("run_id", "trains_ms", "kept_ms")
    parts = _interval(
        completed.join(work, on="run_id").with_columns(
            started_ms=pl.max_horizontal("trains_ms", "before_ms", "epoch_started_ms"),
            ended_ms=pl.min_horizontal("kept_ms", "completed_ms"),
        ),
        "epoch",
        pl.col("epoch_index"),
        "started_ms",
        "ended_ms",
    )
    # The one kind of interval that several attempts have parts of.
    key = ["run_id", "interval_key"]
    return parts.sort(*key, "started_ms", "ended_ms").with_columns(part_no=pl.int_range(pl.len()).over(key) + 1)


def _checkpoints(run: pl.DataFrame, durable: pl.DataFrame) -> pl.DataFrame:
    saved = (
        durable.join(run, on="run_id")
        .with_columns(durable_ms=pl.col("durable_ms").clip(pl.col("run_started_ms"), pl.col("run_ended_ms")))
        .sort("run_id", "durable_ms", "checkpoint_id")
        .with_columns(before_ms=pl.col("durable_ms").shift(1).over("run_id").fill_null(pl.col("run_started_ms")))
    )
    last = saved.group_by("run_id").agg(pl.col("durable_ms").max())
    tail = run.join(last, on="run_id", how="left").with_columns(tail_ms=pl.coalesce("durable_ms", "run_started_ms"))
    return pl.concat(
        [
            _interval(saved, "checkpoint", pl.col("checkpoint_id"), "before_ms", "durable_ms"),
            _interval(tail, "tail", pl.lit(""), "tail_ms", "run_ended_ms"),
        ]
    )


def _target(run: pl.DataFrame, evaluation: pl.DataFrame) -> pl.DataFrame:
    met = (
        pl.when(pl.col("target_direction") == "max")
        .then(pl.col("value") >= pl.col("target_value"))
        .otherwise(pl.col("value") <= pl.col("target_value"))
    )
    # How many evaluations of one split have passed in a row, this one included.
    series = ["run_id", "split"]
    passed = (
        evaluation.join(run, left_on=["run_id", "metric"], right_on=["run_id", "target_metric"])
        .with_columns(ms("evaluated_at", "reached_ms"), met=met.fill_null(False))
        .sort(*series, "reached_ms", "step")
        .with_columns(seen=pl.int_range(pl.len()).over(series) + 1)
        .with_columns(failed_at=pl.when(~pl.col("met")).then("seen").forward_fill().over(series).fill_null(0))
        .with_columns(streak=pl.col("seen") - pl.col("failed_at"))
    )
    reached = pl.concat(
        passed.filter(pl.col("streak") >= passes)
        .group_by("run_id", "run_started_ms")
        .agg(pl.col("reached_ms").min())
        .with_columns(passes=pl.lit(passes))
        for passes in range(1, MOST_PASSES + 1)
    )
    return _interval(reached, "target", pl.col("passes"), "run_started_ms", "reached_ms")
