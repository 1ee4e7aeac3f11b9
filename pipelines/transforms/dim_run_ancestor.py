"""One row per run and ancestor: the run itself, and each run it was resumed or fine-tuned from, however far back.

A run comes from the run that saved its base checkpoint, else from its parent; the parent of a sweep trial only leads
the sweep. Walked back until nothing new is met, so runs that claim to come from each other end the walk.
"""

from __future__ import annotations

import polars as pl

INPUTS = ("stg_tracker__run", "stg_tracker__checkpoint")


def build(stg_tracker__run: pl.DataFrame, stg_tracker__checkpoint: pl.DataFrame) -> pl.DataFrame:
    """(run_id, ancestor_run_id, generation_count); an unrecorded parent is an ancestor too."""
    run = stg_tracker__run.select("run_id", "parent_run_id", "base_checkpoint_id", "purpose")
    named = [stg_tracker__checkpoint.select(pl.col(name).alias("base"), "run_id") for name in ("checkpoint_id", "uri")]
    # Several runs may call a checkpoint `step-100`: a name shared by several runs names none.
    saved_by = (
        pl.concat(named)
        .drop_nulls()
        .group_by("base")
        .agg(pl.col("run_id").unique())
        .filter(pl.col("run_id").list.len() == 1)
        .select("base", base_run_id=pl.col("run_id").list.first())
    )
    parent = pl.when(pl.col("purpose") != "sweep_trial").then("parent_run_id")
    step = (
        run.join(saved_by, left_on="base_checkpoint_id", right_on="base", how="left")
        .select("run_id", came_from=pl.coalesce("base_run_id", parent))
        .filter(pl.col("came_from").is_not_null() & (pl.col("came_from") != pl.col("run_id")))
    )
    newest = run.select("run_id", ancestor_run_id="run_id")
    found = newest.with_columns(generation_count=pl.lit(0, pl.Int64))
    while newest.height:
        newest = (
            newest.join(step, left_on="ancestor_run_id", right_on="run_id")
            .select("run_id", ancestor_run_id="came_from")
            .join(found, on=["run_id", "ancestor_run_id"], how="anti")
        )
        further = pl.col("generation_count").max().alias("generation_count")
        found = pl.concat([found, newest.join(found.select(further), how="cross").with_columns(further + 1)])
    return found.sort("run_id", "generation_count", "ancestor_run_id")
