"""A real training on this machine, killed and resumed, recorded by the recorder and priced by a bill made for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import instance_hour, write_config, write_export
from support.imds import metadata_service
from support.ledgers import ask, lazy_warehouse
from support.records import rows

from pipelines.config.sources import RunSource
from pipelines.ingest.runs.tracker import read_runs

ROOT = Path(__file__).resolve().parents[2]
RATE = Decimal("3600")  # USD an hour: a dollar a second


def python_with(libraries: str, advice: str) -> str:
    """An interpreter that has the `libraries`: the one in TRAINING_PYTHON, this one, or the system's own."""
    for candidate in (os.environ.get("TRAINING_PYTHON", sys.executable), sys.executable, "/usr/bin/python3"):
        found = subprocess.run([candidate, "-c", f"import {libraries}"], capture_output=True)
        if found.returncode == 0:
            return candidate
    pytest.skip(f"no interpreter here has {libraries} ({advice})")


def test_a_killed_and_resumed_training_costs_what_it_ran(tmp_path: Path) -> None:
    """g5.xlarge billed at 1 USD a second. Expected: the seconds between each process's first and last event.

    Four epochs of half a second are requested; the first process is killed (SIGKILL) when it has recorded its third
    epoch, one past the checkpoint of the second. The second goes on with epoch 3. The end of the first attempt is not
    recorded: it ends with its last line. What happened after the checkpoint is lost work and the run's waste.
    """
    python = python_with("torch", "apt-get install python3-torch")
    began = datetime.now(UTC)
    with metadata_service(life_cycle="on-demand") as imds:
        command = [python, ROOT / "tests" / "support" / "train.py", tmp_path, imds, "4"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "recorder")}
        with subprocess.Popen(command, env=environment) as process:
            first = tmp_path / "runs" / "cpu-1" / "attempt-1"
            deadline = time.monotonic() + 120
            while not any('"epoch": 3' in file.read_text() for file in first.glob("rank-0-*.jsonl")):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            process.kill()
        subprocess.run(command, env=environment, check=True, timeout=120)
    hours = [
        instance_hour(f"{hour:%Y-%m-%dT%H}", "i-0rec", "g5.xlarge", str(RATE))
        for hour in (began - timedelta(hours=1) + timedelta(hours=n) for n in range(4))
        if f"{hour:%Y-%m}" == f"{began:%Y-%m}"
    ]
    export = write_export(tmp_path, {f"{began:%Y-%m}": hours})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=tmp_path / "runs"))

    def recorded(attempt: int) -> list[dict]:
        (file,) = (tmp_path / "runs" / "cpu-1" / f"attempt-{attempt}").glob("rank-0-*.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()]

    def seconds(start: dict, end: dict) -> Decimal:
        span = datetime.fromisoformat(end["at"]) - datetime.fromisoformat(start["at"])
        return Decimal(span // timedelta(milliseconds=1)) / 1000

    attempts = [seconds(recorded(n)[0], max(recorded(n), key=lambda e: e["at"])) for n in (1, 2)]
    (run,) = ask(builder, "select * from mart_run_cost").rows(named=True)
    assert abs(run["effective_cost_usd"] - sum(attempts)) < Decimal("0.000001")
    assert run["epoch_completed_count"] == 4 and run["checkpoint_durable_count"] == 2
    assert run["status"] == "completed" and run["attempt_count"] == 2
    saved = next(event for event in recorded(1) if event["event"] == "checkpoint_saved")
    lost = seconds(saved, max(recorded(1), key=lambda e: e["at"]))
    assert abs(run["lost_work_cost_usd"] - lost) < Decimal("0.000001")
    assert run["estimated_cost_usd"] == 0


def test_callbacks_record_what_the_frameworks_did(tmp_path: Path) -> None:
    """Ten steps are an epoch; what each story trains, saves and evaluates is in `train_frameworks.STORIES`.

    A training that ends within an epoch counts the part; accumulating three batches of ten makes four steps. The last
    epoch's save is recorded too, saves of one step are one checkpoint, and weights alone protect no progress.
    """
    libraries = "torch, accelerate, transformers, lightning"
    python = python_with(libraries, "install them and name the interpreter in TRAINING_PYTHON")
    script = ROOT / "tests" / "support" / "train_frameworks.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "recorder")}
    subprocess.run([python, script, tmp_path], env=environment, check=True, timeout=300)
    scores = json.loads((tmp_path / "scores.json").read_text())
    records = read_runs(RunSource(name="jobs", location=str(tmp_path / "runs")))
    assert records.warnings == []
    epochs, saves = {}, {}
    for name, *epoch in rows(records, "epoch", "run_id", "epoch_index", "step", "fraction"):
        epochs.setdefault(name, []).append(tuple(epoch))
    for name, *save in rows(records, "checkpoint", "run_id", "step", "is_resumable"):
        saves.setdefault(name, []).append(tuple(save))
    saves = {name: sorted(of_run) for name, of_run in saves.items()}
    assert epochs == {
        "hf-epochs": [(1, 10, None), (2, 20, None), (3, 30, None)],
        "hf-half": [(1, 10, None), (2, 15, 0.5)],
        "hf-steps": [(1, 4, 0.4)],
        "hf-accumulation": [(1, 4, None), (2, 8, None)],
        "pl-epochs": [(1, 10, None), (2, 20, None), (3, 30, None)],
        "pl-steps": [(1, 10, None), (2, 15, 0.5)],
        "pl-weights": [(1, 10, None)],
        "pl-best": [(1, 10, None), (2, 20, None)],
    }
    assert saves == {
        "hf-epochs": [(10, True), (20, True), (30, True)],
        "hf-half": [(10, True), (15, True)],
        "hf-steps": [(4, True)],
        "hf-accumulation": [(4, True), (8, True)],
        "pl-epochs": [(10, True), (20, True), (30, True)],
        "pl-steps": [(4, True), (8, True), (12, True)],
        "pl-weights": [(10, False)],
        "pl-best": [(5, True), (10, True), (15, True), (20, True)],
    }
    stalls = rows(records, "checkpoint", "stall_seconds", "save_started_at", "durable_at")
    assert all(0 < stall <= (end - start).total_seconds() + 0.002 for stall, start, end in stalls)
    for name, values in scores.items():
        recorded = [row[1:] for row in rows(records, "evaluation", "run_id", "metric", "value") if row[0] == name]
        assert recorded == [("eval_loss" if name.startswith("hf") else "val_loss", value) for value in values]
    assert set(rows(records, "run", "status")) == set(rows(records, "attempt", "end_reason")) == {("completed",)}
