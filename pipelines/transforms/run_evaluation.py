"""What the evaluations of each run show: its final metrics, which of them never moved, and where it met its target."""

from collections import defaultdict
from collections.abc import Mapping

import polars as pl

from pipelines.transforms import Row

_VALUE = ("step", "metric", "split", "value")


def evaluated(evaluation: pl.DataFrame, dim_run: pl.DataFrame) -> Mapping[str, Row]:
    """By run: the `final` value by metric and split; `still`, those with one value at several steps; `target_split`,
    of the first evaluation that met the target, and `target_at`, its time; `evaluations`, a number for each step,
    metric, split and value, the same in all runs. A run that is not there has none."""
    found: defaultdict[str, Row] = defaultdict(
        lambda: {"final": {}, "still": set(), "target_split": None, "target_at": None, "evaluations": ()}
    )
    values = evaluation.sort("evaluated_at", "step", "evaluation_no", nulls_last=True)
    of_split = values.group_by("run_id", "metric", "split", maintain_order=True).agg(
        pl.col("value").last(), (pl.col("step").n_unique() > 1) & (pl.col("value").n_unique() == 1)
    )
    for run_id, metric, split, value, is_still in of_split.iter_rows():
        found[run_id]["final"][metric, split] = value
        if is_still:
            found[run_id]["still"].add((metric, split))
    target = dim_run.select("run_id", "target_metric", "target_value", is_most=pl.col("target_direction") == "max")
    value, least = pl.col("value").fill_nan(None), pl.col("target_value")
    met = (
        values.join(target, left_on=["run_id", "metric"], right_on=["run_id", "target_metric"], maintain_order="left")
        .filter(pl.when("is_most").then(value >= least).when(~pl.col("is_most")).then(value <= least))
        .group_by("run_id")
        .agg(pl.col("split", "evaluated_at").first())
    )
    for run_id, split, at in met.iter_rows():
        found[run_id] |= {"target_split": split, "target_at": at}
    numbers = values.select(_VALUE).unique().with_row_index("number")
    same = values.join(numbers, on=_VALUE, nulls_equal=True).group_by("run_id").agg(pl.col("number").unique().sort())
    for run_id, own in same.iter_rows():
        found[run_id]["evaluations"] = tuple(own)
    return found
