"""Real logs and API answers of training runs; expected values are read off the files by eye, line numbers given."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from shutil import copy

import polars as pl
import pytest

from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import RunRecords
from pipelines.ingest.runs.tracker import read_runs


def read(kind: str, folder: Path) -> RunRecords:
    return read_runs(RunSource(name="real", kind=kind, location=str(folder)))


@pytest.fixture
def mlperf(shared_data: Path, tmp_path: Path) -> Path:
    for path in (shared_data / "training" / "mlperf").glob("*_result_*.txt"):
        copy(path, tmp_path)
    return tmp_path


def seconds(records: RunRecords, run: str, phase: str) -> list[float]:
    found = records.tables["tracker_phase"].filter(pl.col("run_id").str.contains(run), pl.col("phase") == phase)
    spans = found.sort("started_at").select("started_at", "ended_at").rows()
    return [(ended - started).total_seconds() for started, ended in spans]


def test_every_mlperf_log_is_a_run_that_reached_its_target(mlperf: Path) -> None:
    records = read("mllog", mlperf)
    assert records.tables["tracker_run"].height == len(list(mlperf.glob("*.txt"))) == 6
    assert set(records.tables["tracker_run"]["status"]) == {"completed"}


def test_set_up_of_an_mlperf_run_is_off_its_clock_and_on_its_bill(mlperf: Path) -> None:
    """v4.0 eos, lines 4, 22: init from 1714897671.343 to 1714897740.668, 69 s (facts 1.11); end 1714899369.711."""
    records = read("mllog", mlperf)
    assert seconds(records, "v4.0_NVIDIA_eos_ngc24.04", "init") == [69.325]
    run = records.tables["tracker_run"].filter(pl.col("run_id").str.contains("v4.0_NVIDIA_eos_ngc24.04"))
    started_at, ended_at = run.select("started_at", "ended_at").row(0)
    # From the first line, in the init, to run_stop: 1698.368 s, of which 69.325 are outside the score of 1629.043.
    assert (ended_at - datetime(1970, 1, 1)).total_seconds() == 1714899369.711
    assert (ended_at - started_at).total_seconds() >= 1698.368


def test_an_eval_accuracy_that_is_a_loss_is_to_fall(mlperf: Path) -> None:
    """v5.1 theia: target 0.925, five evaluations from 0.957 down to 0.922, then success (lines 9, 49 to 99)."""
    records = read("mllog", mlperf)
    is_theia = pl.col("run_id").str.contains("theia")
    target = records.tables["tracker_run"].filter(is_theia).select("target_metric", "target_value", "target_direction")
    assert target.rows() == [("eval_accuracy", 0.925, "min")]
    values = records.tables["tracker_evaluation"].filter(is_theia).sort("evaluated_at")["value"].round(3).to_list()
    assert values == [0.957, 0.953, 0.946, 0.939, 0.922]


def test_real_answers_of_sagemaker(shared_data: Path) -> None:
    """One job that failed, 13:27:36 to 13:30:01 on 12 January 2018, and one that was still in progress."""
    records = read("sagemaker", shared_data / "training" / "sagemaker")
    run = records.tables["tracker_run"].sort("run_id").select("run_id", "status").rows()
    assert run == [("c7n-job-2018-01-12-18-23-33", "failed"), ("kmeans-2018-01-31-14-07-29-021", None)]
    failed = records.tables["tracker_resource"].filter(pl.col("run_id").str.starts_with("c7n"))
    assert failed.select("resource_id", "instance_type", "account_id", "region_id", "evidence").rows() == [
        (
            "arn:aws:sagemaker:us-east-1:644160558196:training-job/c7n-job-2018-01-12-18-23-33",
            "ml.c4.8xlarge",
            "644160558196",
            "us-east-1",
            "api",
        )
    ]
    joined_at, left_at = failed.select("joined_at", "left_at").row(0)
    assert [joined_at, left_at] == [datetime(2018, 1, 12, 13, 27, 36), datetime(2018, 1, 12, 13, 30, 1)]
