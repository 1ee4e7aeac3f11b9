"""When an attempt's start-up was over and up to when its work survived; shared by the transforms about runs."""

import polars as pl

STARTUP_PHASES = ("provision", "init", "compile", "restore")


def ms(column: str, name: str) -> pl.Expr:
    """A timestamp as UTC milliseconds."""
    return pl.col(column).dt.epoch("ms").alias(name)


def timed_phases(phase: pl.DataFrame) -> pl.DataFrame:
    """Declared phases with `started_ms` and `ended_ms`."""
    return phase.with_columns(ms("started_at", "started_ms"), ms("ended_at", "ended_ms"))


def durable_checkpoints(checkpoint: pl.DataFrame) -> pl.DataFrame:
    """Checkpoints a run can resume from, with `durable_ms`."""
    return checkpoint.filter("is_resumable", "is_complete").with_columns(ms("durable_at", "durable_ms"))


def working_time(attempt: pl.DataFrame, phase: pl.DataFrame, durable: pl.DataFrame) -> pl.DataFrame:
    """Each attempt with `trains_ms`, when its start-up is over, and `kept_ms`, up to when its work survived."""
    is_startup = pl.col("phase").is_in(STARTUP_PHASES)
    begun = phase.group_by("run_id", "attempt_no").agg(
        train_ms=pl.col("started_ms").filter(pl.col("phase") == "train").min(),
        startup_ms=pl.col("ended_ms").filter(is_startup).max(),
    )
    saved = durable.group_by("run_id", "attempt_no").agg(saved_ms=pl.col("durable_ms").max())
    timed = (
        attempt.with_columns(ms("started_at", "started_ms"), ms("ended_at", "ended_ms"))
        .join(begun, on=["run_id", "attempt_no"], how="left")
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
