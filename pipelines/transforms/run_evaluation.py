"""What the evaluations of each run show: its final metrics, which of them moved, and the split that met its target."""

import polars as pl

_VALUE = ("step", "metric", "split", "value")


def evaluated(
    evaluation: pl.DataFrame, dim_run: pl.DataFrame
) -> tuple[dict[str, dict[tuple[str, str], float | None]], dict[str, str], dict[str, tuple[int, ...]]]:
    """By run: the last value by metric and split; the split of the first evaluation that met the target; and a number
    for each step, metric, split and value, the same in all runs."""
    values = evaluation.sort("evaluated_at", "step", "evaluation_no", nulls_last=True).select("run_id", *_VALUE)
    final: dict[str, dict[tuple[str, str], float | None]] = {}
    of_split = values.group_by("run_id", "metric", "split", maintain_order=True).agg(pl.col("value").last())
    for run_id, metric, split, value in of_split.iter_rows():
        final.setdefault(run_id, {})[metric, split] = value
    target = dim_run.select("run_id", "target_metric", "target_value", is_most=pl.col("target_direction") == "max")
    value, least = pl.col("value").fill_nan(None), pl.col("target_value")
    met = (
        values.join(target, left_on=["run_id", "metric"], right_on=["run_id", "target_metric"], maintain_order="left")
        .filter(pl.when("is_most").then(value >= least).when(~pl.col("is_most")).then(value <= least))
        .group_by("run_id")
        .agg(pl.col("split").first())
    )
    numbers = values.select(_VALUE).unique().with_row_index("number")
    same = values.join(numbers, on=_VALUE, nulls_equal=True).group_by("run_id").agg(pl.col("number").unique().sort())
    return final, dict(met.iter_rows()), {run_id: tuple(own) for run_id, own in same.iter_rows()}
