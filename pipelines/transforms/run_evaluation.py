"""What the evaluations of each run show: its final metrics, which of them never moved, and where it met its target."""

from dataclasses import dataclass

import polars as pl

_VALUE = ("step", "metric", "split", "value")


@dataclass(frozen=True)
class Evaluated:
    """By run: the last value by metric and split; `still` those with one value at several steps; the split of the first
    evaluation that met the target; and a number for each step, metric, split and value, the same in all runs."""

    final: dict[str, dict[tuple[str, str], float | None]]
    still: dict[str, set[tuple[str, str]]]
    target_split: dict[str, str]
    same: dict[str, tuple[int, ...]]


def evaluated(evaluation: pl.DataFrame, dim_run: pl.DataFrame) -> Evaluated:
    """What comparisons take of the evaluations of all runs."""
    values = evaluation.sort("evaluated_at", "step", "evaluation_no", nulls_last=True).select("run_id", *_VALUE)
    final: dict[str, dict[tuple[str, str], float | None]] = {}
    still: dict[str, set[tuple[str, str]]] = {}
    of_split = values.group_by("run_id", "metric", "split", maintain_order=True).agg(
        pl.col("value").last(), (pl.col("step").n_unique() > 1) & (pl.col("value").n_unique() == 1)
    )
    for run_id, metric, split, value, is_still in of_split.iter_rows():
        final.setdefault(run_id, {})[metric, split] = value
        if is_still:
            still.setdefault(run_id, set()).add((metric, split))
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
    return Evaluated(final, still, dict(met.iter_rows()), {run_id: tuple(own) for run_id, own in same.iter_rows()})
