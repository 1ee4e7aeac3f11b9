"""Weights & Biases exports as runs: attempts by gaps, ranks as one."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.records import at, rows, source

from pipelines.ingest.runs.tracker import read_runs

Rows = list[dict[str, Any]]


def wandb_run(run_id: str, state: str, points: Rows, **more: Any) -> str:
    return json.dumps(
        {
            "id": run_id,
            "state": state,
            "created_at": "2026-07-01T10:00:00Z",
            "heartbeatAt": "2026-07-01T14:00:00Z",
            "history": points,
            **more,
        }
    )


def point(step: int, clock: str, **values: float) -> dict[str, Any]:
    return {"_step": step, "_timestamp": datetime.fromisoformat(f"2026-07-01T{clock}+00:00").timestamp(), **values}


def test_a_resumed_wandb_run_is_two_attempts_with_a_gap(tmp_path: Path) -> None:
    """Steps 10 and 20 until 10:20, silence, and step 10 again at 13:00: a restart that `_runtime` would hide."""
    points = [
        point(10, "10:10:00", loss=3.0),
        point(20, "10:20:00", loss=2.9),
        point(10, "13:00:00", loss=3.0),
        point(30, "13:30:00", loss=2.0, val_loss=2.2),
    ]
    config = {"model": "llama", "seq_len": 4096, "aws.resource_ids": "i-01, i-02", "target_metric": "val_loss"}
    (tmp_path / "export.jsonl").write_text(wandb_run("w1", "crashed", points, config=config) + "\n")
    records = read_runs(source("wandb", tmp_path))
    assert rows(records, "run", "status", "model", "seq_len", "ended_at") == [
        ("failed", "llama", 4096, at("2026-07-01T14:00:00"))
    ]
    assert rows(records, "attempt", "attempt_no", "started_at", "ended_at") == [
        (1, at("2026-07-01T10:00:00"), at("2026-07-01T10:20:00")),
        (2, at("2026-07-01T13:00:00"), at("2026-07-01T14:00:00")),
    ]
    assert sorted(set(rows(records, "resource", "resource_id", "evidence"))) == [("i-01", "imds"), ("i-02", "imds")]
    assert rows(records, "evaluation", "attempt_no", "metric", "value") == [(2, "val_loss", 2.2)]
    assert records.warnings == [
        "Run w1: a target needs target_metric, target_value, target_direction together; it is "
        "ignored. Log the missing ones."
    ]


def test_ranks_of_one_job_are_one_run(tmp_path: Path) -> None:
    ranks = [wandb_run(f"w{rank}", "finished", [], group="job-7", config={"rank": rank}) for rank in range(4)]
    (tmp_path / "export.jsonl").write_text("\n".join(ranks))
    assert rows(read_runs(source("wandb", tmp_path)), "run", "run_id", "status") == [("job-7", "completed")]


def test_ranks_of_one_job_hold_the_machines_of_all_and_have_the_evaluations_of_one(tmp_path: Path) -> None:
    """Each of two ranks names its own machine; only the one written last logs the epoch and its score."""
    loss = point(10, "10:10:00", loss=3.0)
    scored = point(20, "10:20:00", val_loss=2.2, epoch=1.0)
    second = {"rank": 1, "aws.resource_ids": "i-02"}
    first = {"rank": 0, "aws.resource_ids": "i-01", "model": "llama"}
    ranks = [
        wandb_run("w1", "finished", [loss, loss | {"_step": 15}], group="job-7", config=second),
        wandb_run("w2", "finished", [loss, scored], group="job-7", config=first),
    ]
    (tmp_path / "export.jsonl").write_text("\n".join(ranks))
    records = read_runs(source("wandb", tmp_path))
    assert rows(records, "run", "run_id", "model") == [("job-7", "llama")]
    assert rows(records, "resource", "resource_id", "evidence") == [("i-01", "imds"), ("i-02", "imds")]
    assert rows(records, "epoch", "epoch_index") == [(1,)]
    assert rows(records, "evaluation", "metric", "value") == [("val_loss", 2.2)]


def test_an_epoch_counts_whose_end_is_the_first_point_of_an_attempt(tmp_path: Path) -> None:
    """Epoch 1 ends before the restart; epoch 2 is completed after it, and its end is the first that is logged then."""
    points = [
        point(90, "10:50:00", loss=2.1),
        point(100, "11:00:00", loss=2.0, epoch=1.0),
        point(120, "11:10:00", loss=1.9),
        # It resumes at step 100.
        point(110, "13:10:00", loss=1.95),
        point(200, "14:00:00", loss=1.8, epoch=2.0),
    ]
    (tmp_path / "export.jsonl").write_text(wandb_run("w1", "finished", points) + "\n")
    records = read_runs(source("wandb", tmp_path))
    assert rows(records, "epoch", "epoch_index", "attempt_no") == [(1, 1), (2, 2)]


def test_a_run_that_still_runs_is_open_after_its_last_heartbeat(tmp_path: Path) -> None:
    """Its instance shows whether it runs on: an end at the heartbeat would be one of unknown status, so a failure."""
    ranks = [
        wandb_run(f"w{n}", state, [], group="job-7", config={"rank": n, "aws.resource_ids": "i-01"})
        for n, state in enumerate(("finished", "running"))
    ]
    (tmp_path / "export.jsonl").write_text("\n".join(ranks))
    records = read_runs(source("wandb", tmp_path))
    assert rows(records, "run", "status", "ended_at") == [(None, None)]
    assert rows(records, "attempt", "ended_at", "last_seen_at") == [(None, at("2026-07-01T14:00:00"))]
    assert rows(records, "resource", "left_at") == [(None,)]


def test_epochs_before_a_warm_start_are_not_the_runs(tmp_path: Path) -> None:
    """It logs each half epoch from 5.5 on: it began at 5, so its epochs are 6 and 7, and 5 of the 7 million tokens of
    its Trainer are not the run's."""
    tokens = "train/num_input_tokens_seen"
    points = [point(n, f"1{n}:30:00", loss=2.0, epoch=5 + n / 2, **{tokens: 5e6 + n / 2 * 1e6}) for n in (1, 2, 3, 4)]
    (tmp_path / "export.jsonl").write_text(wandb_run("w1", "finished", points) + "\n")
    assert rows(read_runs(source("wandb", tmp_path)), "epoch", "epoch_index", "tokens_seen") == [(6, None), (7, None)]


@pytest.mark.parametrize(
    ("first", "is_scored", "state", "expected"),
    [
        # Lightning counts from 0 (facts training-runs 3); a loop of one's own may count from 1.
        (0, True, "finished", [1, 2, 3]),
        (1, True, "finished", [1, 2, 3]),
        (0, False, "finished", [1, 2, 3]),
        # Killed before the validation of its third epoch, or where nothing shows how an epoch ends.
        (0, True, "killed", [1, 2]),
        (0, False, "killed", [1, 2]),
    ],
)
def test_an_epoch_counts_that_points_have_the_number_of(
    tmp_path: Path, first: int, is_scored: bool, state: str, expected: list[int]
) -> None:
    """Three epochs of two logged steps each; the last number is that of the third, not of epochs done."""
    points = []
    for n in range(3):
        points += [point(n * 10 + k, f"1{n}:{k}0:00", train_loss=2.0, epoch=n + first) for k in (1, 4)]
        if is_scored and (n < 2 or state == "finished"):
            points.append(point(n * 10 + 5, f"1{n}:50:00", val_loss=2.0, epoch=n + first))
    (tmp_path / "export.jsonl").write_text(wandb_run("w1", state, points) + "\n")
    found = rows(read_runs(source("wandb", tmp_path)), "epoch", "epoch_index", "step")
    last = 5 if is_scored else 4
    assert found == [(n, (n - 1) * 10 + last) for n in expected]


@pytest.mark.parametrize(("named", "expected"), [({"trainer/global_step": 5.0}, [(1,)]), ({}, [])])
def test_one_epoch_alone_counts_where_lightning_logs_it(
    tmp_path: Path, named: dict[str, float], expected: list[tuple[int]]
) -> None:
    """Without a name of Lightning's, 0 may be the rounded part of an epoch of another trainer."""
    points = [point(n, f"1{n}:00:00", loss=2.0, epoch=0, **named) for n in (1, 2)]
    (tmp_path / "export.jsonl").write_text(wandb_run("w1", "finished", points) + "\n")
    assert rows(read_runs(source("wandb", tmp_path)), "epoch", "epoch_index") == expected


def test_epochs_done_are_counted_where_the_first_evaluation_is_before_training(tmp_path: Path) -> None:
    """As the Hugging Face Trainer logs with `eval_on_start` and once an epoch: 0, 1 and 2 are epochs done."""
    points = [point(0, "10:00:00", **{"eval/loss": 3.0, "train/epoch": 0.0})]
    for n in (1, 2):
        points.append(point(2 * n, f"1{n}:00:00", **{"train/loss": 2.0, "train/epoch": float(n)}))
        points.append(point(2 * n + 1, f"1{n}:01:00", **{"eval/loss": 2.0, "train/epoch": float(n)}))
    points.append(point(6, "12:02:00", **{"train/train_loss": 2.0, "train/epoch": 2.0}))
    (tmp_path / "export.jsonl").write_text(wandb_run("w1", "finished", points) + "\n")
    assert rows(read_runs(source("wandb", tmp_path)), "epoch", "epoch_index") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("state", "last", "expected"), [("finished", 2.97, 3), ("killed", 2.97, 2), ("finished", 2.9, 2)]
)
def test_batches_that_were_dropped_at_the_end_take_no_epoch_from_a_completed_run(
    tmp_path: Path, state: str, last: float, expected: int
) -> None:
    points = [point(n, f"1{n}:00:00", loss=2.0, epoch=at_end) for n, at_end in ((1, 0.99), (2, 1.98), (3, last))]
    (tmp_path / "export.jsonl").write_text(wandb_run("w1", state, points) + "\n")
    assert len(rows(read_runs(source("wandb", tmp_path)), "epoch", "epoch_index")) == expected


def test_a_line_that_is_no_wandb_run_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "export.jsonl").write_text(wandb_run("w1", "finished", []) + "\n" + '{"id": "w2"}\n')
    found = read_runs(source("wandb", tmp_path))
    assert any("export.jsonl, line 2 lacks 'created_at'; export the run again" in one for one in found.warnings)
    assert rows(found, "run", "run_id") == [("w1",)]
