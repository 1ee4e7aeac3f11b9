"""One row per run and ancestor: the run itself, and each run it was resumed or fine-tuned from, however far back.

A run comes from the run that saved its base checkpoint, else from its parent; the parent of a sweep trial only leads
the sweep. Runs that claim to come from each other end the walk.
"""

from collections.abc import Mapping

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
