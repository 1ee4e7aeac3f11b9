"""Runs that would match but for one field: listed by that field, as pure rows."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.transforms.detail_comparison_near_miss import FIELDS, build

SAME = {
    "purpose": "pretrain",
    "model": "llama",
    "dataset": "corp",
    "seq_len": 8192,
    "global_batch_samples": 256,
    "precision": "bf16",
    "code_revision": "c1",
    "target_metric": "loss",
    "target_direction": "min",
    "target_value": 2.0,
    "target_passes": None,
    "billing_currency": "USD",
}
TYPES = {"seq_len": pl.Int64, "global_batch_samples": pl.Int64, "target_value": pl.Float64, "target_passes": pl.Int64}


def misses(*changed: dict[str, Any]) -> list[tuple[Any, ...]]:
    """(field, GPU's value, Trainium's, compared) of runs given as a family and what differs from SAME."""
    rows = [
        SAME | {"run_id": f"run-{number}", "workload_id": f"of {number}"} | run for number, run in enumerate(changed)
    ]
    runs = pl.DataFrame(rows, schema_overrides=TYPES, orient="row")
    billed = ("billing_currency", "accelerator_family")
    frame = build(runs.drop(billed), runs.select("run_id", *billed))
    return frame.select("differing_field", "baseline_value", "candidate_value", "is_compared").rows()


def gpu(**more: Any) -> dict[str, Any]:
    return {"accelerator_family": "gpu", **more}


def trainium(**more: Any) -> dict[str, Any]:
    return {"accelerator_family": "trainium", **more}


def test_the_field_and_both_values_are_reported() -> None:
    assert misses(gpu(), trainium(precision="fp8")) == [("precision", "bf16", "fp8", False)]
    assert misses(gpu(), trainium(target_value=2.1)) == [("target", "loss min 2.0", "loss min 2.1", False)]
    assert misses(gpu(), trainium(billing_currency="NOK")) == [("billing_currency", "USD", "NOK", False)]


def test_what_a_side_leaves_out_is_not_reported() -> None:
    assert misses(gpu(global_batch_samples=None), trainium()) == [
        ("global_batch_samples", "not recorded", "256", False)
    ]


def test_another_model_is_a_near_miss_only_where_nothing_matches() -> None:
    """Else each model would miss every other: of two that have their match neither name is mistyped."""
    assert misses(gpu(), trainium(model="Llama")) == [("model", "llama", "Llama", False)]
    assert misses(gpu(), trainium(), gpu(model="b"), trainium(model="b")) == []


def test_two_fields_are_no_near_miss_and_none_is_a_match() -> None:
    assert misses(gpu(), trainium(precision="fp8", seq_len=4096)) == []
    assert misses(gpu(), trainium()) == []


def test_one_side_alone_and_precompiling_miss_nothing() -> None:
    assert misses(gpu(), gpu(precision="fp8")) == []
    assert misses(gpu(), trainium(precision="fp8", purpose="compile_only")) == []


def test_code_that_never_ran_on_both_is_reported_though_the_runs_are_compared() -> None:
    of = {"workload_id": "w"}
    other = trainium(code_revision="c2", **of)
    assert misses(gpu(**of), other) == [("code_revision", "c1", "c2", True)]
    assert misses(gpu(**of), other, trainium(**of)) == []
    assert misses(gpu(**of), gpu(code_revision="c3", **of), other) == [("code_revision", "2 revisions", "c2", True)]


def test_a_declared_workload_makes_no_field_alike() -> None:
    of = {"workload_id": "w"}
    assert misses(gpu(**of), trainium(dataset="other", **of)) == [("dataset", "corp", "other", False)]
    assert misses(gpu(**of), trainium(billing_currency="NOK", **of)) == [("billing_currency", "USD", "NOK", False)]


@settings(deadline=None, max_examples=40)
@given(st.sets(st.sampled_from(["model", "dataset", "precision", "seq_len", "global_batch_samples"])))
def test_exactly_the_runs_that_differ_once_are_listed(fields: set[str]) -> None:
    other = {name: 1 if name in TYPES else "other" for name in fields}
    found = misses(gpu(), trainium(**other))
    assert [row[0] for row in found] == (list(fields) if len(fields) == 1 else [])
    assert fields <= set(FIELDS)
