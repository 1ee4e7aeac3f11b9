"""What trackers write when they break: refused by name or read as unknown by name, never a traceback or a guess."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.inputs import inputs

from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import DECLARED, UNREAD, RunRecords
from pipelines.ingest.runs.tracker import read_runs
from pipelines.warehouse.storage import Object
from pipelines.warehouse.storage_local import LocalStore

SACCT = "JobIDRaw|State|Start|End|NodeList|AllocTRES\n1|COMPLETED|2026-07-01T10:00:00|{end}|{nodes}|{tres}\n"
WANDB: dict[str, Any] = {"id": "a", "state": "finished", "created_at": "2026-07-01T10:00:00Z"}
HF: dict[str, Any] = {"global_step": 10, "epoch": 1.0, "log_history": []}
POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"job-name": "j"}},
    "spec": {"nodeName": "n"},
    "status": {"startTime": "2026-07-01T10:00:00Z"},
}
JOB: dict[str, Any] = {
    "TrainingJobName": "j",
    "TrainingJobArn": "arn:aws:sagemaker:us-west-2:111122223333:training-job/j",
    "TrainingJobStatus": "Completed",
    "CreationTime": "2026-07-01T10:00:00Z",
    "TrainingEndTime": "2026-07-01T11:00:00Z",
}
RAY: dict[str, Any] = {
    "submission_id": "r",
    "status": "SUCCEEDED",
    "start_time": 1782900000000,
    "metadata": {"aws.resource_ids": "i-1", "aws.account_id": ["1"]},
}
BATCH: dict[str, Any] = {"jobId": "b", "jobArn": "arn:aws:batch:us-west-2:1:job/b", "startedAt": 1782900000000}
DEEP = "[" * 100_000 + "]" * 100_000


# Of every second point the step is one behind, so each begins an attempt; and no machine is named.
RESUMED = [{"_timestamp": 1_782_900_000 + n, "_step": 1 - n % 2, "loss": 1} for n in range(101)]
MANY = {"aws.instance_type": "p5.48xlarge", "aws.account_id": "1", "aws.region": "u", "aws.instance_count": 20_000}


def read(root: Path, kind: str, file: str, content: Any) -> RunRecords:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (root / file).write_text(text, encoding="utf-8")
    return read_runs(RunSource(name="mine", kind=kind, location=str(root)))


def wandb(**facts: Any) -> str:
    return json.dumps(WANDB | facts)


def sacct(end: str = "2026-07-01T11:00:00", nodes: str = "n1", tres: str = "") -> str:
    return SACCT.format(end=end, nodes=nodes, tres=tres)


@pytest.mark.parametrize(
    ("kind", "file", "content", "message"),
    [
        ("wandb", "r.jsonl", wandb(history=[{"_timestamp": 1e17, "loss": 1}]), "mine: run a .*1e.17 is not a time"),
        ("wandb", "r.jsonl", wandb(history=[{"_timestamp": 1, "epoch": 1e12}]), "mine: run a .*reports epoch 1e.12"),
        ("wandb", "r.jsonl", wandb(id=None), "r.jsonl, line 1 lacks 'id'; export the run again"),
        ("wandb", "r.jsonl", wandb(config="{}"), "r.jsonl: run a has an unexpected form .*; export the run again"),
        ("wandb", "r.jsonl", DEEP, "r.jsonl, line 1 is nested more than 100 levels deep"),
        ("wandb", "r.jsonl", wandb(history=RESUMED, config=MANY), "run a .*51 attempts on 20,000 machines are more"),
        ("trainer_state", "r/checkpoint-10/trainer_state.json", HF | {"epoch": 1e12}, "r/checkpoint-10.*epoch 1e.12"),
        (
            "trainer_state",
            "r/checkpoint-10/trainer_state.json",
            DEEP,
            "trainer_state.json is nested more than 100 levels deep",
        ),
        (
            "lightning",
            "v/metrics.csv",
            "epoch,step,val_loss\n0,1,1\n1,,1\n",
            "metrics.csv, line 3 lacks 'step'; fix or remove",
        ),
        (
            "lightning",
            "v/metrics.csv",
            "epoch,step,val_loss\n0,nan,1\n",
            "metrics.csv, line 2 has .*NaN.*; fix or remove",
        ),
        ("lightning", "v/metrics.csv", "epoch,step,val_loss\n1e30,1,1\n", "v/metrics.csv .*reports epoch 1e.30"),
        ("lightning", "v/metrics.csv", f"epoch,step,val_loss\n0,1,{'1' * 200_000}\n", "v/metrics.csv .*field limit"),
        ("slurm", "a.txt", sacct(end="9999-12-31T23:59:59-05:00"), "a.txt, line 2 has End '9999.* is not a time"),
        ("kubernetes", "a.json", DEEP, "a.json is nested more than 100 levels deep.*kubectl get"),
        ("kubernetes", "a.json", POD | {"status": "Running"}, "pod p has an unexpected form .*; snapshot it again"),
        ("sagemaker", "a.json", DEEP, "a.json is nested more than 100 levels deep.*DescribeTrainingJob"),
        ("sagemaker", "a.json", JOB | {"CreationTime": 1e20}, "training job j .*1e.20 is not a time"),
        ("sagemaker", "a.json", {"TrainingJobName": "j"}, "mine: training job j "),
        (
            "sagemaker",
            "a.json",
            JOB | {"TrainingEndTime": "9999-12-31T23:59:59Z"},
            "9999-12-31 .*, which is in the future",
        ),
        (
            "sagemaker",
            "a.json",
            JOB | {"CreationTime": "0001-01-01T00:00:00Z"},
            "0001-01-01 00:00:00, before 1970; fix it",
        ),
        ("ray", "a.json", [RAY | {"metadata": "x"}], "mine: Ray job r has an unexpected form"),
        ("ray", "a.json", [RAY | {"metadata": {DECLARED: ["a"]}}], "Ray job r has an id that is not text; fix it"),
        ("sagemaker", "a.json", JOB | {"TrainingJobName": None}, "training job None has an id that is not text"),
        ("batch", "a.json", {"jobs": [BATCH | {"tags": ["a"]}]}, "mine: Batch job b has an unexpected form"),
    ],
)
def test_what_cannot_be_read_is_left_out_by_name(
    tmp_path: Path, kind: str, file: str, content: Any, message: str
) -> None:
    found = read(tmp_path, kind, file, content)
    assert any(re.search(message, warning) for warning in found.warnings), found.warnings
    assert found.tables["tracker_run"].is_empty() and not found.tables[UNREAD].is_empty()


@pytest.mark.parametrize(
    ("kind", "wrong", "good", "message"),
    [
        ("ray", RAY | {"submission_id": 7}, RAY, "job 1 has an id that is not text"),
        ("ray", "x", RAY, "job 1 has an unexpected form"),
        ("batch", BATCH | {"jobId": 7}, BATCH, "job 1 has an id that is not text"),
        ("batch", None, BATCH, "job 1 has an unexpected form"),
        (
            "kubernetes",
            POD | {"metadata": {"name": "q", "namespace": []}},
            POD,
            "object 1 has a name, namespace or uid",
        ),
        ("kubernetes", "x", POD, "object 1 has an unexpected form"),
    ],
)
def test_one_entry_of_another_form_takes_none_of_its_answer_along(
    tmp_path: Path, kind: str, wrong: Any, good: Any, message: str
) -> None:
    form = {"ray": lambda jobs: jobs, "batch": lambda jobs: {"jobs": jobs}}
    content = form.get(kind, lambda items: {"kind": "List", "items": items})([wrong, good])
    found = read(tmp_path, kind, "a.json", content)
    assert any(f"a.json, {message}" in warning for warning in found.warnings), found.warnings
    assert (found.tables["tracker_run"].height, found.tables[UNREAD]["run_id"].to_list()) == (1, [None])


@pytest.mark.parametrize("kind", ["events", "kubernetes", "mllog", "ray", "slurm", "trainer_state"])
def test_a_file_that_is_gone_once_it_was_listed_is_left_out_by_name(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is removed as soon as it was listed; a copy stays."""
    for name, content in inputs()[f"runs of {kind}"].files.items():
        for folder in ("kept", "gone"):
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    listed = LocalStore.list

    def list_and_remove(store: LocalStore, prefix: str = "") -> list[Object]:
        found = listed(store, prefix)
        shutil.rmtree(tmp_path / "gone", ignore_errors=True)
        return found

    monkeypatch.setattr(LocalStore, "list", list_and_remove)
    found = read_runs(RunSource(name="mine", kind=kind, location=str(tmp_path), timezone="UTC"))
    assert any(re.search("/gone/.*: No such file", warning) for warning in found.warnings), found.warnings
    assert found.tables["tracker_run"].height == 1 and not found.tables[UNREAD].is_empty()


@pytest.mark.parametrize(
    ("kind", "file", "content", "message"),
    [
        ("slurm", "a.txt", sacct(nodes="n[1-999999999]"), "NodeList 'n[1-999999999]' names 999,999,999 nodes where"),
        ("slurm", "a.txt", sacct(nodes="n[1-300]m[1-400]"), "names 120,000 nodes where the job has at most 100,000;"),
        ("slurm", "a.txt", sacct(nodes="n[1]" * 2_000), "is not a host list; its nodes are unknown"),
        ("slurm", "a.txt", sacct(tres=f"gres/gpu={'9' * 23},node=1"), "accelerators_used cannot be '9999"),
        ("slurm", "a.txt", sacct(end="2026-07-01T09:00:00"), "left_at of its resource is 2026-07-01 09:00:00, before"),
        ("sagemaker", "a.json", JOB | {"TrainingEndTime": "2026-07-01T09:00:00Z"}, "ended_at of its attempt is"),
        ("sagemaker", "a.json", {"TrainingJobSummaries": []}, "contains no training job"),
        ("ray", "a.json", [RAY], "Run r: account_id cannot be \"['1']\"; it is read as"),
        (
            "wandb",
            "r.jsonl",
            wandb(
                config={
                    "aws.instance_type": "p5.48xlarge",
                    "aws.account_id": "1",
                    "aws.region": "us-west-2",
                    "aws.instance_count": "1e12",
                }
            ),
            "aws.instance_count is 1000000000000, which no run has",
        ),
        (
            "wandb",
            "r.jsonl",
            wandb(history=[{"_timestamp": 1782900000, "_step": 10**30, "val_loss": 1}]),
            "Run a: step cannot be '1000000000",
        ),
        ("wandb", "r.jsonl", wandb(config={"dataset_tokens": "1e300"}), "Run a: dataset_tokens cannot be '1e+300'"),
        ("wandb", "r.jsonl", wandb(config={"dataset_tokens": 1e-300}), "Run a: dataset_tokens cannot be '1e-300'"),
    ],
)
def test_what_cannot_be_is_reported_and_read_as_unknown(
    tmp_path: Path, kind: str, file: str, content: Any, message: str
):
    found = read(tmp_path, kind, file, content)
    assert [warning for warning in found.warnings if message in warning] != []
    # No column holds what was recorded: the figure is unknown, not another one.
    for table, opens, closes in (
        ("tracker_attempt", "started_at", "ended_at"),
        ("tracker_resource", "joined_at", "left_at"),
    ):
        assert found.tables[table].filter(pl.col(closes) < pl.col(opens)).height == 0
    assert found.tables["tracker_resource"]["accelerators_used"].drop_nulls().to_list() == []
    assert found.tables["tracker_evaluation"]["step"].drop_nulls().to_list() == []


@pytest.mark.parametrize("tres", ["gres/gpu=8,node=0", "gres/gpu=8,node=1"])
def test_a_job_of_no_nodes_is_of_those_it_names(tmp_path: Path, tres: str) -> None:
    found = read(tmp_path, "slurm", "a.txt", sacct(tres=tres))
    # Eight GPUs on the one node of the list.
    assert found.tables["tracker_resource"]["accelerators_used"].to_list() == [8]


NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "file", "content"),
    [
        ("wandb", "r.jsonl", wandb(history=[{"_timestamp": 1, "val_loss": NAN}, {"_timestamp": 2, "val_loss": "NaN"}])),
        (
            "trainer_state",
            "r/checkpoint-10/trainer_state.json",
            HF | {"log_history": [{"eval_loss": NAN, "step": 5}, {"eval_loss": float("inf"), "step": 6}]},
        ),
        ("lightning", "v/metrics.csv", "epoch,step,val_loss\n0,1,nan\n0,2,inf\n"),
        (
            "sagemaker",
            "a.json",
            JOB
            | {"FinalMetricDataList": [{"MetricName": "a", "Value": NAN}, {"MetricName": "b", "Value": float("-inf")}]},
        ),
    ],
)
def test_a_metric_that_is_no_number_was_measured_and_meets_no_target(
    tmp_path: Path, kind: str, file: str, content: Any
) -> None:
    # Both evaluations stand, without a value: a NaN would pass for more than any target, and dropped it would let
    # the passes before and after it count as a row.
    assert read(tmp_path, kind, file, content).tables["tracker_evaluation"]["value"].to_list() == [None, None]


def test_a_node_of_another_cloud_is_known_by_its_name_alone(tmp_path: Path) -> None:
    node = {"kind": "Node", "metadata": {"name": "n"}, "spec": {"providerID": "kind://docker/y"}}
    job = {"kind": "Job", "metadata": {"name": "j", "annotations": None}}
    found = read(tmp_path, "kubernetes", "a.json", {"kind": "List", "items": [POD, node, job]})
    assert found.tables["tracker_resource"].select("resource_id", "evidence").rows() == [("n", "nodemap")]


def test_a_target_that_is_no_number_is_no_target(tmp_path: Path) -> None:
    """A part of one would leave the run without a workload."""
    target = {"target_metric": "val_loss", "target_value": 1e200, "target_direction": "min"}
    found = read(tmp_path, "wandb", "r.jsonl", wandb(config=target))
    assert found.tables["tracker_run"].select(*target).row(0) == (None, None, None)
    assert [warning for warning in found.warnings if "Run a: target_value cannot be '1e+200'" in warning]


def test_half_a_character_is_read_as_unknown(tmp_path: Path) -> None:
    """Of a parameter that a tracker cut within an emoji."""
    found = read(tmp_path, "wandb", "r.jsonl", wandb(config={"model": "llama \ud83d"}))
    assert found.tables["tracker_run"]["model"].to_list() == ["llama ?"]
