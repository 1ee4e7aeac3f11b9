"""What the evaluations of each run show: its final metrics, which of them never moved, and where it met its target."""

from collections import defaultdict
from collections.abc import Mapping

import polars as pl

from pipelines.transforms import Row

_VALUE = ("step", "metric", "split", "value")
# The nodes of one job do not add up in the same order: by what part of it a value of one may differ from another's.
_NEAR = 1e-6


def evaluated(evaluation: pl.DataFrame, dim_run: pl.DataFrame) -> Mapping[str, Row]:
    """By run: the `final` value by metric and split; `still`, those with one value at several steps; `target_split`,
    of the first evaluation that met the target, `target_at`, its time, and `evaluation_count`, how often the target's
    metric was evaluated on that split until then, and `evaluation_gap`, the steps since the time before or the start;
    `evaluations`, a number for each step, metric, split and value, the
    same in all runs; `near_evaluations`, the same number also where values are nearly equal. A run that is not there
    has none."""
    none = {
        "evaluation_gap": None,
        "target_split": None,
        "target_at": None,
        "evaluation_count": 0,
        "evaluations": (),
        "near_evaluations": (),
    }
    found: defaultdict[str, Row] = defaultdict(lambda: {"final": {}, "still": set(), **none})
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
    of_target = values.join(
        target, left_on=["run_id", "metric"], right_on=["run_id", "target_metric"], maintain_order="left"
    )
    met = (
        of_target.filter(pl.when("is_most").then(value >= least).when(~pl.col("is_most")).then(value <= least))
        .group_by("run_id")
        .agg(target_split=pl.col("split").first(), target_at=pl.col("evaluated_at").first())
    )
    is_of_split = (pl.col("split") == pl.col("target_split")) & (pl.col("evaluated_at") <= pl.col("target_at"))
    until = of_target.join(met, on="run_id", how="left").filter(is_of_split | pl.col("target_at").is_null())
    steps = pl.col("step").drop_nulls().unique().sort().tail(2)
    count = until.group_by("run_id").agg(
        evaluation_count=pl.struct("step", "evaluated_at").n_unique(),
        evaluation_gap=pl.when(steps.len() > 1).then(steps.last() - steps.first()).otherwise(steps.last()),
    )
    for row in count.join(met, on="run_id", how="left").iter_rows(named=True):
        found[row.pop("run_id")] |= row
    same = values.join(_numbers(values), on=_VALUE, nulls_equal=True).group_by("run_id")
    for run_id, own, near in same.agg(pl.col("number", "near").unique().sort()).iter_rows():
        found[run_id] |= {"evaluations": tuple(own), "near_evaluations": tuple(near)}
    return found


def _numbers(values: pl.DataFrame) -> pl.DataFrame:
    """Each value with a `number`, and with one that nearly equal values of a step, metric and split share, `near`."""
    of = ("step", "metric", "split")
    ordered = values.select(_VALUE).unique().sort(_VALUE, nulls_last=True).with_row_index("number")
    value = pl.col("value")
    before = value.shift(1).over(of)
    is_near = value.is_finite() & (value - before <= _NEAR * pl.max_horizontal(value.abs(), before.abs()))
    return ordered.with_columns(near=(~(before.is_finite() & is_near).fill_null(False)).cum_sum())
