"""One row per run and ancestor: the run itself, and each run it was resumed or fine-tuned from, however far back.

A run comes from the run that saved its base checkpoint, else from its parent; the parent of a sweep trial only leads
the sweep. Runs that claim to come from each other end the walk.
"""

from collections.abc import Mapping

import polars as pl

INPUTS = ("stg_tracker__run", "stg_tracker__checkpoint")


def build(stg_tracker__run: pl.DataFrame, stg_tracker__checkpoint: pl.DataFrame) -> pl.DataFrame:
    """(run_id, ancestor_run_id, generation_count); an unrecorded parent or checkpoint is an ancestor too."""
    run = stg_tracker__run.select("run_id", "parent_run_id", "base_checkpoint_id", "purpose")
    named = [stg_tracker__checkpoint.select(pl.col(name).alias("base"), "run_id") for name in ("checkpoint_id", "uri")]
    saved_by = (
        pl.concat(named)
        .drop_nulls()
        .group_by("base")
        .agg(base_run_id=pl.col("run_id").min(), saver_count=pl.col("run_id").n_unique())
    )
    # Several runs may call a checkpoint `step-100`, a run its own like the one it started from: such a name names none.
    is_named = (pl.col("saver_count") == 1) & (pl.col("base_run_id") != pl.col("run_id"))
    parent = pl.when(pl.col("purpose") != "sweep_trial").then("parent_run_id")
    # Without a parent, an ancestor without a record stands for the one of several that is not known.
    unknown = pl.when(pl.col("saver_count") > 1).then("base_checkpoint_id")
    step = (
        run.join(saved_by, left_on="base_checkpoint_id", right_on="base", how="left")
        .select("run_id", came_from=pl.coalesce(pl.when(is_named).then("base_run_id"), parent, unknown))
        .filter(pl.col("came_from").is_not_null() & (pl.col("came_from") != pl.col("run_id")))
    )
    came_from = dict(step.rows())
    rows = [
        (run_id, ancestor, generation)
        for run_id in run["run_id"]
        for generation, ancestor in enumerate(_line(run_id, came_from))
    ]
    schema = {"run_id": pl.String, "ancestor_run_id": pl.String, "generation_count": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("run_id", "generation_count")


def _line(run_id: str, came_from: Mapping[str, str]) -> dict[str, None]:
    """The run, the run it came from, and so on."""
    line = {run_id: None}
    while (above := came_from.get(run_id)) is not None and above not in line:
        line[above] = None
        run_id = above
    return line
