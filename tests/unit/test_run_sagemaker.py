"""SageMaker training jobs as runs: interruptions as attempts, the job as its resource."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from support.bills import instance_hour, write_export
from support.ledgers import ask, lazy_warehouse
from support.records import at, rows, source

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


def test_a_job_that_ended_before_it_had_a_machine_is_no_run(tmp_path: Path) -> None:
    """It waited ten hours for capacity: AWS bills a job from TrainingStartTime, which it has not."""
    waited = {"LastModifiedTime": "2026-07-01T20:00:00Z", "TrainingEndTime": "2026-07-01T20:00:00Z"}
    never = job(TrainingJobStatus="Failed", TrainingStartTime=None, SecondaryStatusTransitions=[], **waited)
    (tmp_path / "job.json").write_text(json.dumps(never))
    assert rows(read_runs(source("sagemaker", tmp_path)), "run", "run_id") == []


def step(status: str, begin: str, end: str | None = None) -> dict[str, str]:
    times = {"StartTime": begin, "EndTime": end}
    return {"Status": status} | {name: f"2026-07-01T{clock}:00Z" for name, clock in times.items() if clock}


SPOT = [
    step("Starting", "09:55", "10:04"),
    step("Downloading", "10:04", "10:06"),
    step("Training", "10:06", "11:00"),
    # Reported twice, and its end is unknown.
    step("Interrupted", "11:00"),
    step("Interrupted", "11:10", "11:20"),
    step("Starting", "11:20", "11:25"),
    step("Downloading", "11:25", "11:30"),
    step("Training", "11:30", "12:55"),
    step("Uploading", "12:55", "13:00"),
]


def test_a_status_that_repeats_after_an_interruption_is_of_the_second_attempt(tmp_path: Path) -> None:
    """Training lasts 10:06 to 11:00 and 11:30 to 12:55; of the first start only 10:00 to 10:04 is billed."""
    (tmp_path / "job.json").write_text(json.dumps(job(SecondaryStatusTransitions=SPOT)))
    records = read_runs(source("sagemaker", tmp_path))
    phases = [
        (number, phase, f"{begin:%H:%M}", f"{end:%H:%M}")
        for number, phase, begin, end in rows(records, "phase", "attempt_no", "phase", "started_at", "ended_at")
    ]
    assert phases == [
        (1, "init", "10:04", "10:06"),
        (1, "provision", "10:00", "10:04"),
        (1, "train", "10:06", "11:00"),
        (2, "init", "11:25", "11:30"),
        (2, "provision", "11:20", "11:25"),
        (2, "teardown", "12:55", "13:00"),
        (2, "train", "11:30", "12:55"),
    ]


def test_statuses_that_overlap_follow_one_another(tmp_path: Path) -> None:
    """Starting and Pending are one phase; both last over the start of the job at 10:00, where Pending is the later."""
    steps = [step("Starting", "09:50", "10:01"), step("Pending", "09:55", "10:02"), step("Training", "10:02")]
    (tmp_path / "job.json").write_text(json.dumps(job(SecondaryStatusTransitions=steps)))
    found = rows(read_runs(source("sagemaker", tmp_path)), "phase", "phase", "started_at", "ended_at")
    assert found == [
        ("provision", at("2026-07-01T10:00:00"), at("2026-07-01T10:02:00")),
        ("train", at("2026-07-01T10:02:00"), None),
    ]


def test_an_interrupted_job_is_built_and_its_phases_have_its_cost(tmp_path: Path) -> None:
    """Three hours at 24 dollars. The phases last 54 + 2 + 4 minutes and 5 + 5 + 85 + 5, so 160 minutes have a phase."""
    billed = {"line_item_product_code": "AmazonSageMaker", "line_item_usage_type": "USW2-Train:ml.p4d.24xlarge"}
    hours = ("2026-07-01T10", "2026-07-01T11", "2026-07-01T12")
    lines = [instance_hour(hour, ARN, "ml.p4d.24xlarge", "24", **billed) for hour in hours]
    bill = write_export(tmp_path, {"2026-07": lines})
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "job.json").write_text(json.dumps(job(SecondaryStatusTransitions=SPOT)))
    config = tmp_path / "trainledger.toml"
    config.write_text(
        f'[warehouse]\nlocation = "warehouse"\n[[billing]]\nname = "payer"\nlocation = "{bill}"\n'
        '[[runs]]\nname = "sm"\nkind = "sagemaker"\nlocation = "runs"\n'
    )
    builder = lazy_warehouse(config)
    minutes = "select sum(epoch(ended_at - started_at)) / 60 from stg_tracker__phase"
    assert ask(builder, minutes).item() == 160
    assert ask(builder, "select sum(effective_cost_usd) from fct_ledger where run_id = 'tune-7'").item() == 72


def test_a_job_in_two_saved_answers_is_the_one_that_ended(tmp_path: Path) -> None:
    """The answer of 11:00 was saved again under a later name; of answers without an end the last change counts."""
    running = job(TrainingJobStatus="InProgress", TrainingEndTime=None, LastModifiedTime="2026-07-01T11:00:00Z")
    fresher = running | {"LastModifiedTime": "2026-07-01T12:00:00Z", "TrainingJobStatus": "Stopping"}
    for name, answer in (("a", fresher), ("b", running)):
        (tmp_path / f"{name}.json").write_text(json.dumps(answer))
    seen = rows(read_runs(source("sagemaker", tmp_path)), "run", "last_seen_at", "ended_at")
    assert seen == [(at("2026-07-01T12:00:00"), None)]
    (tmp_path / "a.json").write_text(json.dumps(job(LastModifiedTime="2026-07-01T13:00:00Z")))
    records = read_runs(source("sagemaker", tmp_path))
    assert rows(records, "run", "run_id", "status", "ended_at") == [("tune-7", "completed", at("2026-07-01T13:00:00"))]
    assert rows(records, "resource", "attempt_no") == [(1,), (2,)]


def test_what_is_no_job_is_left_out_by_name(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{broken")
    (warning,) = read_runs(source("sagemaker", tmp_path)).warnings
    assert re.search(r"job\.json is not JSON .*; record the response of DescribeTrainingJob again", warning)
