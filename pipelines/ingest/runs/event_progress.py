"""Progress of runs: epochs, checkpoints and evaluations, each once however many ranks recorded it."""

from __future__ import annotations

import hashlib

import polars as pl

from pipelines.ingest.runs.event_log import EventLog

_ATTEMPT = ["run_id", "attempt_no"]


def epochs(log: EventLog) -> pl.DataFrame:
    """One row per (run_id, attempt_no, epoch_index); not completed while completed_at is null."""
    epoch = [*_ATTEMPT, "epoch"]
    progress = ("step", "tokens_seen", "samples_seen", "fraction")
    started = log.frame("epoch_started").group_by(epoch).agg(started_at=pl.col("at").min())
    # An epoch is complete with its last rank.
    completed = (
        log.frame("epoch_completed").group_by(epoch).agg(pl.col(*progress).max(), completed_at=pl.col("at").max())
    )
    return completed.join(started, on=epoch, how="full", coalesce=True).rename({"epoch": "epoch_index"})


def checkpoints(log: EventLog, warnings: list[str]) -> pl.DataFrame:
    """One row per (run_id, checkpoint_id); not saved while durable_at is null."""
    saved = _identified(log.frame("checkpoint_saved"))
    started = _identified(log.frame("checkpoint_started"))
    # A start with only a step belongs to the save at that step.
    of_step = saved.group_by(*_ATTEMPT, "step").agg(saved_id=pl.col("name").min())
    started = started.join(of_step, on=[*_ATTEMPT, "step"], how="left", nulls_equal=False).with_columns(
        name=pl.when(pl.col("checkpoint_id").is_null(), pl.col("uri").is_null())
        .then(pl.coalesce("saved_id", "name"))
        .otherwise("name")
    )
    begun = started.select(*_ATTEMPT, "name", "step", "uri", save_started_at="at")
    kept = saved.with_columns(
        durable_at=pl.coalesce("durable_at", "at"),
        # Only a full save can be resumed (facts training-runs 3), unless the event states otherwise.
        is_resumable=pl.coalesce("resumable", pl.col("kind").fill_null("full") == "full"),
        is_complete=pl.col("complete").fill_null(True),
    ).drop("checkpoint_id")
    merged = (
        pl.concat([kept, begun], how="diagonal")
        .sort("at", "step", "uri", nulls_last=True)
        .group_by(*_ATTEMPT, "name")
        .agg(
            pl.col("uri").first(ignore_nulls=True),
            pl.col("step").max(),
            pl.col("save_started_at").min(),
            # Many ranks save shards: the save is durable with the last, complete only if each is.
            pl.col("durable_at", "stall_seconds", "bytes", "tokens_seen").max(),
            pl.col("is_resumable", "is_complete").min(),
            step_count=pl.col("step").n_unique(),
        )
    )
    mixed = merged.filter(pl.col("step_count") > 1).sort("run_id", "name")
    warnings += [
        f"Run {run!r} gives checkpoint_id {name!r} to saves of several steps; they count as one checkpoint."
        for run, name in mixed.select("run_id", "name").unique(maintain_order=True).iter_rows()
    ]
    # A later attempt saves again what was lost: the last save of a checkpoint counts.
    return (
        merged.sort("run_id", "name", pl.col("durable_at").is_not_null(), "attempt_no")
        .group_by("run_id", "name")
        .last()
        .rename({"name": "checkpoint_id"})
    )


def _identified(saves: pl.DataFrame) -> pl.DataFrame:
    """Saves with `name`: their id, or one made from run, step and address, the same on every rank."""
    uris = saves["uri"].unique().drop_nulls()
    digests = [hashlib.sha256(uri.encode()).hexdigest()[:12] for uri in uris]
    digest = pl.DataFrame({"uri": uris, "address": digests}, schema={"uri": pl.String, "address": pl.String})
    address = pl.col("address").fill_null("")
    # Without a step or an address, only its time distinguishes a save from the next.
    step = pl.coalesce(pl.col("step").cast(pl.String), pl.when(pl.col("uri").is_null()).then("at").cast(pl.String))
    made = pl.concat_str("run_id", pl.lit(":"), step.fill_null(""), pl.lit(":"), address)
    named = saves.join(digest, on="uri", how="left", maintain_order="left")
    return named.with_columns(name=pl.coalesce("checkpoint_id", made)).drop("address")


def evaluations(log: EventLog) -> pl.DataFrame:
    """One row per (run_id, attempt_no, metric, split, evaluated_at), the first record of each step; NaN is null."""
    found = log.ordered("evaluation").rename({"at": "evaluated_at"}).with_columns(pl.col("value").fill_nan(None))
    of_step = [*_ATTEMPT, "metric", "split", "step"]
    once = pl.concat(
        [
            found.filter(pl.col("step").is_not_null()).unique(of_step, keep="first", maintain_order=True),
            found.filter(pl.col("step").is_null()),
        ]
    )
    # One metric has one value at a time; the furthest step is the one it was measured at.
    return once.sort("step", "value", nulls_last=False).unique(
        [*_ATTEMPT, "metric", "split", "evaluated_at"], keep="last"
    )
