"""One row per kind of baseline run × kind of candidate run that differ in one field: its name and both values.

Code may differ, and how often a target must hold: such pairs of one workload are compared, and listed with
`is_compared` for a reader to judge. A declared workload makes no other field alike. Any two models differ in their
name: that alone is a near miss only of workloads that nothing of the other side matches.
"""

import polars as pl

from pipelines.transforms import run_pair

INPUTS = ("dim_run", "fct_run")
FIELDS = (*run_pair.FIELDS, "target_passes", "billing_currency")
UNRECORDED = "not recorded"
_KEY = ["baseline_workload_id", "candidate_workload_id", "differing_field", "baseline_value", "candidate_value"]


def build(dim_run: pl.DataFrame, fct_run: pl.DataFrame) -> pl.DataFrame:
    """Every such pair, by the workloads of both sides; a field that a side leaves out is `not recorded`."""
    target = pl.concat_str("target_metric", "target_direction", pl.col("target_value").cast(pl.String), separator=" ")
    described = (
        dim_run.filter(pl.col("purpose") != "compile_only")
        .with_columns(target=target)
        .join(fct_run.select("run_id", "billing_currency", "accelerator_family"), on="run_id")
        .with_columns(pl.col(name).cast(pl.String).fill_null(UNRECORDED) for name in FIELDS)
        .group_by("workload_id", "accelerator_family", *FIELDS)
        .agg(run_count=pl.len().cast(pl.Int64), code=pl.col("code_revision").drop_nulls().unique().sort())
    )
    baseline, candidate = (described.filter(pl.col("accelerator_family") == family) for family in ("gpu", "trainium"))
    matched = baseline.join(candidate, on=FIELDS, how="semi").select(FIELDS)
    found = [_differing(baseline, candidate, field) for field in FIELDS if field != "model"]
    baseline_alone, candidate_alone = (side.join(matched, on=FIELDS, how="anti") for side in (baseline, candidate))
    found.append(_differing(baseline_alone, candidate_alone, "model"))
    common = pl.col("code").list.set_intersection("code_right")
    known = pl.min_horizontal(pl.col("code", "code_right").list.len()) > 0
    other_code = baseline.join(candidate, on=FIELDS, suffix="_right").filter(known, common.list.len() == 0)
    codes = {"baseline_value": _code("code"), "candidate_value": _code("code_right")}
    found.append(_rows(other_code.with_columns(**codes, differing_field=pl.lit("code_revision"))))
    # One declared workload may hold several kinds of run.
    return (
        pl.concat(found)
        .group_by(_KEY)
        .agg(pl.col("baseline_run_count", "candidate_run_count").sum(), pl.col("is_compared").any())
        .sort(_KEY)
    )


def _differing(baseline: pl.DataFrame, candidate: pl.DataFrame, field: str) -> pl.DataFrame:
    others = [name for name in FIELDS if name != field]
    pair = baseline.join(candidate, on=others, suffix="_right").filter(pl.col(field) != pl.col(f"{field}_right"))
    values = {"baseline_value": field, "candidate_value": f"{field}_right"}
    return _rows(pair.with_columns(**values, differing_field=pl.lit(field)))


def _rows(pair: pl.DataFrame) -> pl.DataFrame:
    may_differ = pl.col("differing_field").is_in(["code_revision", "target_passes"])
    same = (pl.col("workload_id") == pl.col("workload_id_right")) & may_differ
    return pair.with_columns(
        baseline_workload_id="workload_id",
        candidate_workload_id="workload_id_right",
        baseline_run_count="run_count",
        candidate_run_count="run_count_right",
        is_compared=same,
    ).select(*_KEY, "baseline_run_count", "candidate_run_count", "is_compared")


def _code(name: str) -> pl.Expr:
    code, count = pl.col(name), pl.col(name).list.len()
    return pl.when(count == 1).then(code.list.first()).otherwise(pl.format("{} revisions", count))
