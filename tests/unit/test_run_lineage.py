"""Where a run came from: the checkpoint it started from, else its parent, however far back, and never in a ring."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipelines.transforms.dim_run_ancestor import build

RUN = {"run_id": pl.String, "parent_run_id": pl.String, "base_checkpoint_id": pl.String, "purpose": pl.String}
SAVE = {"run_id": pl.String, "checkpoint_id": pl.String, "uri": pl.String}


def ancestors(runs: list[dict[str, Any]], saves: list[dict[str, Any]] | None = None) -> dict[str, list[tuple]]:
    """Each run's ancestors with how far back they are, the run itself left out."""
    runs = [{"purpose": "finetune", **run} for run in runs]
    found = build(pl.DataFrame(runs, schema=RUN), pl.DataFrame(saves or [], schema=SAVE))
    kept = found.filter(pl.col("generation_count") > 0)
    return {run: kept.filter(pl.col("run_id") == run).rows() for run in found["run_id"].unique().sort()}


def test_every_run_is_its_own_ancestor() -> None:
    found = build(pl.DataFrame([{"run_id": "a"}], schema=RUN), pl.DataFrame(schema=SAVE))
    assert found.rows() == [("a", "a", 0)]


def test_a_checkpoint_is_better_evidence_than_a_parent() -> None:
    runs = [{"run_id": "a"}, {"run_id": "b", "parent_run_id": "x", "base_checkpoint_id": "s3://b/a/1"}]
    assert ancestors(runs, [{"run_id": "a", "checkpoint_id": "1", "uri": "s3://b/a/1"}])["b"] == [("b", "a", 1)]


def test_a_name_that_two_runs_gave_a_checkpoint_names_neither() -> None:
    """An ancestor without a record keeps the lineage from being complete; a parent decides between them."""
    runs = [{"run_id": "c", "base_checkpoint_id": "step-100"}]
    saves = [{"run_id": run, "checkpoint_id": "step-100"} for run in ("a", "b")]
    assert ancestors(runs, saves)["c"] == [("c", "step-100", 1)]
    assert ancestors([{**runs[0], "parent_run_id": "b"}], saves)["c"] == [("c", "b", 1)]


def test_a_run_that_calls_its_own_checkpoint_like_its_base_comes_from_its_parent() -> None:
    runs = [{"run_id": "c", "base_checkpoint_id": "step-100", "parent_run_id": "p"}]
    assert ancestors(runs, [{"run_id": "c", "checkpoint_id": "step-100"}])["c"] == [("c", "p", 1)]


def test_runs_that_claim_each_other_end_the_walk() -> None:
    """Of a ring of three each has the other two behind it; one that claims itself has no one."""
    ring = [
        {"run_id": run, "parent_run_id": parent} for run, parent in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "d"))
    ]
    assert ancestors(ring) == {
        "a": [("a", "b", 1), ("a", "c", 2)],
        "b": [("b", "c", 1), ("b", "a", 2)],
        "c": [("c", "a", 1), ("c", "b", 2)],
        "d": [],
    }


def test_a_run_that_went_on_from_its_own_checkpoint_comes_from_its_parent_no_more_than_from_itself() -> None:
    runs = [{"run_id": "a", "base_checkpoint_id": "a/1"}]
    assert ancestors(runs, [{"run_id": "a", "checkpoint_id": "a/1"}])["a"] == []


def test_the_parent_of_a_trial_leads_and_did_not_train_it() -> None:
    assert ancestors([{"run_id": "t", "parent_run_id": "s", "purpose": "sweep_trial"}])["t"] == []
    assert ancestors([{"run_id": "t", "parent_run_id": "s", "purpose": "unknown"}])["t"] == [("t", "s", 1)]
