"""Hugging Face Trainer states and Lightning logs as runs; what they cannot know is left null."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.records import at, rows, source

from pipelines.ingest.runs.tracker import read_all, read_runs

Rows = list[dict[str, Any]]


def put(root: Path, key: str, content: str, moment: str) -> None:
    path = root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    stamp = datetime.fromisoformat(moment + "+00:00").timestamp()
    os.utime(path, (stamp, stamp))


def trainer_state(step: int, epoch: float, **more: Any) -> str:
    return json.dumps({"global_step": step, "epoch": epoch, "max_steps": 200, "log_history": [], **more})


def test_trainer_states_date_what_they_record_by_when_they_were_written(tmp_path: Path) -> None:
    log = [{"eval_loss": 2.1, "eval_runtime": 9.0, "epoch": 1.0, "step": 100}]
    for step, epoch, hour in ((100, 1.0, "10"), (200, 2.0, "12")):
        folder = f"out/checkpoint-{step}"
        put(tmp_path, f"{folder}/model.safetensors", "w" * 10, f"2026-07-01T{hour}:00:00")
        put(tmp_path, f"{folder}/optimizer.pt", "o" * 5, f"2026-07-01T{hour}:00:00")
        state = trainer_state(step, epoch, log_history=log, num_input_tokens_seen=step * 1000)
        put(tmp_path, f"{folder}/trainer_state.json", state, f"2026-07-01T{hour}:01:00")
    put(tmp_path, "out/checkpoint-150/trainer_state.json", trainer_state(150, 1.5), "2026-07-01T11:00:00")
    records = read_runs(source("trainer_state", tmp_path))
    assert rows(records, "run", "run_id", "status", "ended_at") == [("out", "completed", at("2026-07-01T12:01:00"))]
    assert rows(records, "epoch", "epoch_index", "completed_at", "tokens_seen") == [
        (1, at("2026-07-01T10:01:00"), 100_000),
        (2, at("2026-07-01T12:01:00"), 200_000),
    ]
    # The one without weights is no save, and a speed is no score.
    saves = rows(records, "checkpoint", "step", "is_complete", "is_resumable", "durable_at")
    assert sorted(saves) == [
        (100, True, True, at("2026-07-01T10:01:00")),
        (150, False, False, at("2026-07-01T11:00:00")),
        (200, True, True, at("2026-07-01T12:01:00")),
    ]
    assert rows(records, "evaluation", "metric", "value", "step", "evaluated_at") == [
        ("eval_loss", 2.1, 100, at("2026-07-01T10:01:00"))
    ]


def test_batches_that_were_dropped_at_the_end_take_no_epoch_from_a_completed_run(tmp_path: Path) -> None:
    """The last epoch may read 2.97 (facts training-runs 1.9); before the last step it is not done."""
    put(tmp_path, "done/checkpoint-200/trainer_state.json", trainer_state(200, 2.97), "2026-07-01T10:00:00")
    put(tmp_path, "stopped/checkpoint-199/trainer_state.json", trainer_state(199, 2.97), "2026-07-01T10:00:00")
    found = rows(read_runs(source("trainer_state", tmp_path)), "epoch", "run_id", "epoch_index")
    assert found == [*(("done", n) for n in (1, 2, 3)), *(("stopped", n) for n in (1, 2))]


def test_a_broken_trainer_state_is_left_out_by_name(tmp_path: Path) -> None:
    put(tmp_path, "out/checkpoint-1/trainer_state.json", '{"epoch": 1}', "2026-07-01T10:00:00")
    (warning,) = read_runs(source("trainer_state", tmp_path)).warnings
    assert "checkpoint-1/trainer_state.json lacks 'global_step'" in warning


def test_lightning_counts_from_nought_and_we_from_one(tmp_path: Path) -> None:
    """Columns may stand in any order; the checkpoint of epoch 0 dates it, the file the rest."""
    put(tmp_path, "version_3/metrics.csv", "val_loss,step,epoch\n,24,0\n2.5,49,1\n", "2026-07-01T12:00:00")
    put(tmp_path, "version_3/checkpoints/epoch=0-step=24.ckpt", "w" * 7, "2026-07-01T11:00:00")
    records = read_runs(source("lightning", tmp_path))
    assert rows(records, "epoch", "epoch_index", "step", "completed_at") == [
        (1, 24, at("2026-07-01T11:00:00")),
        (2, 49, at("2026-07-01T12:00:00")),
    ]
    assert rows(records, "checkpoint", "step", "bytes") == [(24, 7)]
    assert rows(records, "evaluation", "metric", "value") == [("val_loss", 2.5)]


@pytest.mark.parametrize(
    ("lines", "save", "expected"),
    [
        # Epochs 0 and 1 end with a validation; the run was killed some steps into epoch 2.
        ((",24,0", "2.5,49,0", ",74,1", "2.4,99,1", ",109,2"), "", 2),
        # It validates twice an epoch, and was killed between.
        (("2.6,24,0", "2.5,49,0", "2.4,74,1"), "", 1),
        # It logs steps alone, two an epoch.
        ((",24,0", ",49,0", ",74,1"), "", 1),
        ((",24,0", ",49,0", ",74,1", ",99,1"), "", 2),
        # One epoch alone is known to end by its save.
        ((",24,0",), "", 0),
        ((",24,0",), "epoch=0-step=50.ckpt", 1),
    ],
)
def test_an_epoch_of_lightning_that_was_cut_short_is_not_completed(
    tmp_path: Path, lines: tuple[str, ...], save: str, expected: int
) -> None:
    put(tmp_path, "version_0/metrics.csv", "\n".join(("val_loss,step,epoch", *lines)) + "\n", "2026-07-01T12:00:00")
    if save:
        put(tmp_path, f"version_0/checkpoints/{save}", "w", "2026-07-01T11:00:00")
    found = rows(read_runs(source("lightning", tmp_path)), "epoch", "epoch_index")
    assert found == [(number,) for number in range(1, expected + 1)]


def test_a_log_that_becomes_malformed_loses_no_save_of_its_run(tmp_path: Path) -> None:
    """A save that was seen stays while the log cannot be read, as after a rotation."""
    put(tmp_path, "v/metrics.csv", "step,epoch\n24,0\n", "2026-07-01T12:00:00")
    put(tmp_path, "v/checkpoints/epoch=0-step=24.ckpt", "w", "2026-07-01T11:00:00")
    before = read_all([source("lightning", tmp_path)]).tables
    put(tmp_path, "v/metrics.csv", "step,epoch\nmany,0\n", "2026-07-01T13:00:00")
    after = read_all([source("lightning", tmp_path)], before)
    assert rows(after, "checkpoint", "run_id", "step") == [("v", 24)]
    assert rows(after, "unread_run", "run_id") == [("v",)]
