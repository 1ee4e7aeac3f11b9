"""One row per stretch of a run's time that has a price of its own: epochs, checkpoints, target, waste.

Pure Polars over run-sized frames. Times are UTC milliseconds; intervals are half-open. The kinds:

* ``epoch``: the retained work of an epoch, key = its number. Work after the last durable checkpoint of an
  attempt that another one followed is not retained (facts training-runs 3, 4).
* ``checkpoint``: all time since the checkpoint before, key = its id; ``tail``: all time after the last one.
  Over a run these touch, so their costs sum to the cost of its compute.
* ``target``: from the start to the first evaluation that meets the target.
* ``lost_work``, ``restart``, ``compile``, ``failed_run``: waste by cause, never overlapping.
"""

from __future__ import annotations

import polars as pl

INPUTS = (
    "dim_run",
    "stg_tracker__attempt",
    "stg_tracker__phase",
    "stg_tracker__epoch",
    "stg_tracker__checkpoint",
    "stg_tracker__evaluation",
)
STARTUP_PHASES = ("provision", "init", "compile", "restore")
FAILED_STATUSES = ("failed", "killed", "abandoned")


def build(
    dim_run: pl.DataFrame,
    stg_tracker__attempt: pl.DataFrame,
    stg_tracker__phase: pl.DataFrame,
    stg_tracker__epoch: pl.DataFrame,
    stg_tracker__checkpoint: pl.DataFrame,
    stg_tracker__evaluation: pl.DataFrame,
) -> pl.DataFrame:
    """Intervals as (run_id, interval_kind, interval_key, part_no, started_ms, ended_ms)."""
    run = dim_run.select(
        "run_id",
        "status",
        "target_metric",
        "target_value",
        "target_direction",
        _ms("first_seen_at", "run_started_ms"),
        _ms("last_seen_at", "run_ended_ms"),
    )
    phase = stg_tracker__phase.with_columns(_ms("started_at", "started_ms"), _ms("ended_at", "ended_ms"))
    durable = stg_tracker__checkpoint.filter("is_resumable", "is_complete").with_columns(
        _ms("durable_at", "durable_ms")
    )
    attempt = _working_time(stg_tracker__attempt, phase, durable)
    parts = [
        _epochs(attempt, stg_tracker__epoch),
        _checkpoints(run, durable),
        _target(run, stg_tracker__evaluation),
        *_waste(run, attempt, phase),
    ]
    intervals = pl.concat(parts).filter(pl.col("ended_ms") > pl.col("started_ms"))
    order = ["run_id", "interval_kind", "interval_key"]
    return (
        intervals.sort(*order, "started_ms", "ended_ms")
        .with_columns(part_no=pl.int_range(pl.len()).over(order) + 1)
        .select(*order, "part_no", "started_ms", "ended_ms")
    )


def _ms(column: str, name: str) -> pl.Expr:
    return pl.col(column).dt.epoch("ms").alias(name)


def _interval(frame: pl.DataFrame, kind: str, key: pl.Expr, started: str, ended: str) -> pl.DataFrame:
    return frame.select(
        "run_id",
        pl.lit(kind).alias("interval_kind"),
        key.cast(pl.String).alias("interval_key"),
        pl.col(started).cast(pl.Int64).alias("started_ms"),
        pl.col(ended).cast(pl.Int64).alias("ended_ms"),
    )


def _working_time(attempt: pl.DataFrame, phase: pl.DataFrame, durable: pl.DataFrame) -> pl.DataFrame:
    """Each attempt with `trains_ms`, when its start-up is over, and `kept_ms`, up to when its work survived."""
    training = (
        phase.filter(pl.col("phase") == "train")
        .group_by("run_id", "attempt_no")
        .agg(pl.col("started_ms").min().alias("train_ms"))
    )
    startup = (
        phase.filter(pl.col("phase").is_in(STARTUP_PHASES))
        .group_by("run_id", "attempt_no")
        .agg(pl.col("ended_ms").max().alias("startup_ms"))
    )
    saved = durable.group_by("run_id", "attempt_no").agg(pl.col("durable_ms").max().alias("saved_ms"))
    timed = (
        attempt.with_columns(_ms("started_at", "started_ms"), _ms("ended_at", "ended_ms"))
        .join(training, on=["run_id", "attempt_no"], how="left")
        .join(startup, on=["run_id", "attempt_no"], how="left")
        .join(saved, on=["run_id", "attempt_no"], how="left")
        .sort("run_id", "attempt_no")
        .with_columns(
            trains_ms=pl.coalesce("train_ms", "startup_ms", "started_ms").clip(
                pl.col("started_ms"), pl.col("ended_ms")
            ),
            is_last=pl.col("attempt_no") == pl.col("attempt_no").max().over("run_id"),
        )
    )
    survives_whole = pl.col("is_last") | (pl.col("end_reason") == "completed")
    kept = pl.when(survives_whole).then("ended_ms").otherwise(pl.coalesce("saved_ms", "trains_ms"))
    return timed.with_columns(kept_ms=kept.clip(pl.col("trains_ms"), pl.col("ended_ms")))


def _epochs(attempt: pl.DataFrame, epoch: pl.DataFrame) -> pl.DataFrame:
    """Retained working time between one epoch's completion and the next, over all attempts of the run."""
    # An epoch repeated after a restart counts once, as it was completed last.
    completed = (
        epoch.with_columns(_ms("completed_at", "completed_ms"), _ms("started_at", "epoch_started_ms"))
        .sort("run_id", "epoch_index", "completed_ms")
        .group_by("run_id", "epoch_index", maintain_order=True)
        .last()
        .sort("run_id", "completed_ms", "epoch_index")
        .with_columns(before_ms=pl.col("completed_ms").shift(1).over("run_id"))
    )
    work = attempt.select("run_id", "trains_ms", "kept_ms")
    return _interval(
        completed.join(work, on="run_id").with_columns(
            started_ms=pl.max_horizontal("trains_ms", "before_ms", "epoch_started_ms"),
            ended_ms=pl.min_horizontal("kept_ms", "completed_ms"),
        ),
        "epoch",
        pl.col("epoch_index"),
        "started_ms",
        "ended_ms",
    )


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
    reached = (
        evaluation.join(run, left_on=["run_id", "metric"], right_on=["run_id", "target_metric"])
        .filter(met)
        .group_by("run_id", "run_started_ms")
        .agg(_ms("evaluated_at", "reached_ms").min())
    )
    return _interval(reached, "target", pl.lit(""), "run_started_ms", "reached_ms")


def _waste(run: pl.DataFrame, attempt: pl.DataFrame, phase: pl.DataFrame) -> list[pl.DataFrame]:
    failed = run.filter(pl.col("status").is_in(FAILED_STATUSES))
    # A failed run is waste as a whole; its lost work and restarts are inside it.
    useful = attempt.join(failed, on="run_id", how="anti")
    first_compile = phase.filter(pl.col("phase") == "compile", pl.col("attempt_no") == 1).join(
        failed, on="run_id", how="anti"
    )
    later = useful.filter(pl.col("attempt_no") > pl.col("attempt_no").min().over("run_id"))
    return [
        _interval(useful, "lost_work", pl.lit(""), "kept_ms", "ended_ms"),
        _interval(later, "restart", pl.lit(""), "started_ms", "trains_ms"),
        _interval(first_compile, "compile", pl.lit(""), "started_ms", "ended_ms"),
        _interval(failed, "failed_run", pl.lit(""), "run_started_ms", "run_ended_ms"),
    ]
