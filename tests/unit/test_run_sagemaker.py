"""SageMaker training jobs as runs: interruptions as attempts, the job as its resource."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.records import at, rows, source

from pipelines.base.errors import SourceError
from pipelines.ingest.runs.tracker import read_runs

Rows = list[dict[str, Any]]


ARN = "arn:aws:sagemaker:us-west-2:000033334444:training-job/tune-7"


def job(**more: Any) -> dict[str, Any]:
    return {
        "TrainingJobName": "tune-7",
        "TrainingJobArn": ARN,
        "TrainingJobStatus": "Completed",
        "CreationTime": "2026-07-01T09:55:00Z",
        "TrainingStartTime": "2026-07-01T10:00:00Z",
        "TrainingEndTime": "2026-07-01T13:00:00Z",
        "ResourceConfig": {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1},
        "HyperParameters": {"model": '"bart"', "max_seq_length": "1024"},
        "SecondaryStatusTransitions": [
            {"Status": "Starting", "StartTime": "2026-07-01T09:55:00Z", "EndTime": "2026-07-01T10:00:00Z"},
            {"Status": "Training", "StartTime": "2026-07-01T10:05:00Z", "EndTime": "2026-07-01T11:00:00Z"},
            {"Status": "Interrupted", "StartTime": "2026-07-01T11:00:00Z", "EndTime": "2026-07-01T11:30:00Z"},
            {"Status": "Training", "StartTime": "2026-07-01T11:30:00Z", "EndTime": "2026-07-01T12:55:00Z"},
            {"Status": "Completed", "StartTime": "2026-07-01T13:00:00Z"},
        ],
        **more,
    }


def test_an_interrupted_job_is_one_run_of_two_attempts(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps(job()))
    records = read_runs(source("sagemaker", tmp_path))
    assert rows(records, "run", "run_id", "model", "seq_len", "status") == [("tune-7", "bart", 1024, "completed")]
    assert rows(records, "attempt", "attempt_no", "started_at", "ended_at", "end_reason") == [
        (1, at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00"), "spot_interruption"),
        (2, at("2026-07-01T11:30:00"), at("2026-07-01T13:00:00"), "completed"),
    ]
    assert set(rows(records, "resource", "resource_id", "account_id", "region_id", "evidence")) == {
        (ARN, "000033334444", "us-west-2", "api")
    }


def test_what_is_no_job_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{broken")
    with pytest.raises(
        SourceError, match=r"job\.json is not JSON .*; record the response of DescribeTrainingJob again"
    ):
        read_runs(source("sagemaker", tmp_path))
