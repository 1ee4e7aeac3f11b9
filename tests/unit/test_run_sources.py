"""Runs as other tools record them: each kind of source in the one set of tables, and what it cannot know left null."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipelines.errors import SourceError, UsageError
from pipelines.settings import RunSource
from pipelines.sources.run_slurm import hostlist
from pipelines.sources.run_tracker import RunRecords, read_runs, runs_fingerprint

Rows = list[dict[str, Any]]


def source(kind: str, location: Path | str, **more: str) -> RunSource:
    return RunSource.model_validate({"name": "lab", "kind": kind, "location": str(location), **more})


def rows(told: RunRecords, table: str, *columns: str) -> list[tuple]:
    return told.tables[f"tracker_{table}"].select(columns).rows()


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


# Slurm -------------------------------------------------------------------------------------------------------------

SACCT = """\
JobIDRaw|JobName|User|Account|State|Submit|Start|End|NNodes|NodeList|AllocTRES
77|pretrain|ada|nlp|REQUEUED|2026-07-01T09:00:00|2026-07-01T10:00:00|2026-07-01T12:00:00|2|q1-dy-trn1-[1-2]|billing=2,cpu=256,gres/neuron=32,node=2
77|pretrain|ada|nlp|COMPLETED|2026-07-01T12:00:00|2026-07-01T12:10:00|2026-07-01T15:00:00|2|q1-dy-trn1-[2-3]|billing=2,cpu=256,gres/neuron=32,node=2
78|sweep|ada|nlp|CANCELLED by 1001|2026-07-01T09:00:00|Unknown|2026-07-01T09:30:00|1|None assigned|
79|eval|bob|vision|RUNNING|2026-07-01T09:00:00|2026-07-01T14:00:00|Unknown|1|gpu-1|billing=1,gres/gpu:h100=8,node=1
"""
NODES = """\
node,started_at,ended_at,instance_id,instance_type
q1-dy-trn1-1,2026-07-01T09:50:00,2026-07-01T12:05:00,i-01,trn1.32xlarge
q1-dy-trn1-2,2026-07-01T09:50:00,2026-07-01T13:00:00,i-02,trn1.32xlarge
q1-dy-trn1-2,2026-07-01T13:05:00,,i-09,trn1.32xlarge
q1-dy-trn1-3,2026-07-01T12:05:00,,i-03,trn1.32xlarge
"""


def slurm(root: Path, text: str = SACCT, **more: str) -> RunRecords:
    root.mkdir(exist_ok=True)
    (root / "jobs.txt").write_text(text)
    (root / "nodes.csv").write_text(NODES)
    return read_runs(source("slurm", root, **more))


def test_a_requeued_job_is_one_run_of_two_attempts(tmp_path: Path) -> None:
    told = slurm(tmp_path)
    assert rows(told, "run", "run_id", "status", "owner", "team", "experiment") == [
        ("lab-77", "completed", "ada", "nlp", "pretrain"),
        ("lab-79", None, "bob", "vision", "eval"),
    ]
    assert rows(told, "attempt", "run_id", "attempt_no", "started_at", "ended_at", "end_reason") == [
        ("lab-77", 1, at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"), "preempted"),
        ("lab-77", 2, at("2026-07-01T12:10:00"), at("2026-07-01T15:00:00"), "completed"),
        ("lab-79", 1, at("2026-07-01T14:00:00"), None, None),
    ]


def test_a_node_name_taken_over_by_a_new_instance_is_two_stays(tmp_path: Path) -> None:
    """q1-dy-trn1-2 was i-02 until 13:00 and i-09 from 13:05; 32 chips of 2 nodes are 16 each."""
    told = slurm(tmp_path)
    stays = told.tables["tracker_resource"].filter(pl.col("run_id") == "lab-77")
    columns = ("attempt_no", "resource_id", "joined_at", "left_at", "accelerators_used")
    assert sorted(stays.select(columns).rows()) == [
        (1, "i-01", at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"), 16),
        (1, "i-02", at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"), 16),
        (2, "i-02", at("2026-07-01T12:10:00"), at("2026-07-01T13:00:00"), 16),
        (2, "i-03", at("2026-07-01T12:10:00"), at("2026-07-01T15:00:00"), 16),
        (2, "i-09", at("2026-07-01T13:05:00"), at("2026-07-01T15:00:00"), 16),
    ]
    assert told.warnings == ["Run lab-79: no nodes.csv says which instance node gpu-1 was; its cost is not found."]


def test_a_prologs_log_says_which_instance_a_name_was(tmp_path: Path) -> None:
    """12:10 to 15:00 on q1-dy-trn1-2 and -3: -2 was i-02 at 09:55 and i-09 at 13:05; a cut line is left out."""
    slurm(tmp_path)
    (tmp_path / "nodes.csv").unlink()
    clocks = (
        ("09:55", 1, "i-01"),
        ("09:55", 2, "i-02"),
        ("12:10", 2, "i-02"),
        ("12:10", 3, "i-03"),
        ("13:05", 2, "i-09"),
    )
    lines = [f"2026-07-01T{clock}:00Z q1-dy-trn1-{n} {instance} trn1.32xlarge" for clock, n, instance in clocks]
    (tmp_path / "nodes.log").write_text("\n".join([*lines, "17829"]))
    told = read_runs(source("slurm", tmp_path)).tables["tracker_resource"].filter(pl.col("attempt_no") == 2)
    columns = ("resource_id", "joined_at", "left_at", "evidence")
    assert sorted(told.select(columns).rows()) == [
        ("i-02", at("2026-07-01T12:10:00"), at("2026-07-01T13:05:00"), "nodemap"),
        ("i-03", at("2026-07-01T12:10:00"), at("2026-07-01T15:00:00"), "nodemap"),
        ("i-09", at("2026-07-01T13:05:00"), at("2026-07-01T15:00:00"), "nodemap"),
    ]
    (tmp_path / "nodes.log").write_text("who knows\n" + "\n".join(lines))
    with pytest.raises(SourceError, match=r"nodes\.log, line 1 is not time, node, instance id and type"):
        read_runs(source("slurm", tmp_path))


def test_a_job_may_say_whose_run_it_is(tmp_path: Path) -> None:
    comment = SACCT.replace("AllocTRES\n", "AllocTRES|Comment\n").replace(
        "node=2\n", "node=2|trainledger.run_id=llama\n"
    )
    lines = [line if line.count("|") == 11 else f"{line}|" for line in comment.splitlines()]
    told = slurm(tmp_path, "\n".join(lines))
    assert rows(told, "run", "run_id") == [("lab-79",), ("llama",)]
    assert told.declared == {"llama"}


def test_slurm_times_are_the_clusters(tmp_path: Path) -> None:
    """10:00 in Oslo in July is 08:00 UTC."""
    told = slurm(tmp_path, timezone="Europe/Oslo")
    assert rows(told, "run", "started_at")[0] == (at("2026-07-01T08:00:00"),)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu-1", ["gpu-1"]),
        ("q1-[1-3]", ["q1-1", "q1-2", "q1-3"]),
        ("q1-[08-10,12],head", ["q1-08", "q1-09", "q1-10", "q1-12", "head"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_host_lists(text: str, names: list[str]) -> None:
    assert hostlist(text) == names


def test_what_is_no_sacct_output_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"jobs\.txt has no column JobIDRaw"):
        slurm(tmp_path, "JobID|State\n1|COMPLETED\n")
    with pytest.raises(SourceError, match=r"jobs\.txt, line 2 has 3 of 11 fields"):
        slurm(tmp_path, SACCT.splitlines()[0] + "\n77|a|b\n")
    with pytest.raises(UsageError, match="timezone 'Mars/Base' is unknown"):
        slurm(tmp_path, timezone="Mars/Base")


# MLPerf ------------------------------------------------------------------------------------------------------------


def mllog(key: str, ms: int, value: Any = None, **metadata: Any) -> str:
    return ":::MLLOG " + json.dumps({"time_ms": ms, "key": key, "value": value, "metadata": metadata})


def test_an_mlperf_log_is_a_run_with_its_set_up_on_the_bill(tmp_path: Path) -> None:
    """Init of 60 s before the clock, two blocks of 100 s with evaluations of 10 s, score 0.93 at the second."""
    lines = [
        mllog("submission_benchmark", 0, "llama2_70b_lora"),
        mllog("target_accuracy", 0, 0.925),
        mllog("init_start", 0),
        mllog("init_stop", 60_000),
        mllog("run_start", 60_000),
        mllog("block_start", 60_000),
        mllog("block_stop", 160_000, samples_count=100),
        mllog("eval_start", 160_000),
        mllog("eval_accuracy", 170_000, 0.90, samples_count=100),
        mllog("eval_stop", 170_000),
        mllog("block_start", 170_000),
        mllog("block_stop", 270_000, samples_count=200),
        mllog("eval_start", 270_000),
        mllog("eval_accuracy", 280_000, 0.93, samples_count=200),
        mllog("eval_stop", 280_000),
        mllog("run_stop", 280_000, status="success"),
        "some other line",
    ]
    (tmp_path / "result_0.txt").write_text("\n".join(lines))
    told = read_runs(source("mllog", tmp_path))
    assert rows(told, "run", "run_id", "model", "target_metric", "target_direction", "status") == [
        ("result_0", "llama2_70b_lora", "eval_accuracy", "max", "completed")
    ]
    start = at("1970-01-01T00:00:00")
    seconds = [
        (phase, (began - start).total_seconds(), (ended - start).total_seconds())
        for phase, began, ended in rows(told, "phase", "phase", "started_at", "ended_at")
    ]
    assert sorted(seconds, key=lambda phase: phase[1]) == [
        ("init", 0, 60),
        ("train", 60, 160),
        ("eval", 160, 170),
        ("train", 170, 270),
        ("eval", 270, 280),
    ]
    assert rows(told, "epoch", "epoch_index", "samples_seen") == [(1, 100), (2, 200)]
    assert rows(told, "evaluation", "value") == [(0.90,), (0.93,)]


def test_a_log_cut_short_is_a_run_without_end(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(mllog("run_start", 1000) + "\n" + mllog("run_stop", 2000)[:20])
    told = read_runs(source("mllog", tmp_path))
    assert rows(told, "run", "status", "ended_at") == [(None, None)]
    assert any("the last line is cut short" in warning for warning in told.warnings)
    assert any("has no run_stop" in warning for warning in told.warnings)


def test_a_broken_line_inside_a_log_is_refused_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(":::MLLOG {broken\n" + mllog("run_stop", 2000))
    with pytest.raises(SourceError, match=r"a\.log, line 1 is no MLLOG entry"):
        read_runs(source("mllog", tmp_path))


def test_gpt3_counts_tokens_where_others_count_epochs(tmp_path: Path) -> None:
    """Facts 1.11: a block of gpt3 is 51,904,512 tokens; two blocks are 103,809,024, not so many epochs."""
    lines = [mllog("submission_benchmark", 0, "gpt3"), mllog("run_start", 0)]
    for number in range(2):
        at, place = number * 100_000, number * 51_904_512
        lines += [
            mllog("block_start", at, first_epoch_num=place, epoch_count=51_904_512),
            mllog("block_stop", at + 90_000, first_epoch_num=place),
        ]
    (tmp_path / "result_0.txt").write_text("\n".join([*lines, mllog("run_stop", 200_000, status="success")]))
    read = read_runs(source("mllog", tmp_path))
    assert read.tables["tracker_run"].select("epoch_unit", "epoch_unit_size").row(0) == ("token_block", 51_904_512)
    told = read.tables["tracker_epoch"].select("epoch_index", "tokens_seen").rows()
    assert told == [(1, 51_904_512), (2, 103_809_024)]


# HF Trainer, Lightning ----------------------------------------------------------------------------------------------


def put(root: Path, key: str, content: str, moment: str) -> None:
    path = root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    stamp = datetime.fromisoformat(moment + "+00:00").timestamp()
    os.utime(path, (stamp, stamp))


def trainer_state(step: int, epoch: float, **more: Any) -> str:
    return json.dumps({"global_step": step, "epoch": epoch, "max_steps": 200, "log_history": [], **more})


def test_trainer_states_date_what_they_tell_by_when_they_were_written(tmp_path: Path) -> None:
    log = [{"eval_loss": 2.1, "eval_runtime": 9.0, "epoch": 1.0, "step": 100}]
    for step, epoch, hour in ((100, 1.0, "10"), (200, 2.0, "12")):
        folder = f"out/checkpoint-{step}"
        put(tmp_path, f"{folder}/model.safetensors", "w" * 10, f"2026-07-01T{hour}:00:00")
        put(tmp_path, f"{folder}/optimizer.pt", "o" * 5, f"2026-07-01T{hour}:00:00")
        state = trainer_state(step, epoch, log_history=log, num_input_tokens_seen=step * 1000)
        put(tmp_path, f"{folder}/trainer_state.json", state, f"2026-07-01T{hour}:01:00")
    put(tmp_path, "out/checkpoint-150/trainer_state.json", trainer_state(150, 1.5), "2026-07-01T11:00:00")
    told = read_runs(source("trainer_state", tmp_path))
    assert rows(told, "run", "run_id", "status", "ended_at") == [("out", "completed", at("2026-07-01T12:01:00"))]
    assert rows(told, "epoch", "epoch_index", "completed_at", "tokens_seen") == [
        (1, at("2026-07-01T10:01:00"), 100_000),
        (2, at("2026-07-01T12:01:00"), 200_000),
    ]
    # The one without weights is no save, and a speed is no score.
    saves = rows(told, "checkpoint", "step", "is_complete", "is_resumable", "durable_at")
    assert sorted(saves) == [
        (100, True, True, at("2026-07-01T10:01:00")),
        (150, False, False, at("2026-07-01T11:00:00")),
        (200, True, True, at("2026-07-01T12:01:00")),
    ]
    assert rows(told, "evaluation", "metric", "value", "step", "evaluated_at") == [
        ("eval_loss", 2.1, 100, at("2026-07-01T10:01:00"))
    ]


def test_a_broken_trainer_state_is_refused_by_name(tmp_path: Path) -> None:
    put(tmp_path, "out/checkpoint-1/trainer_state.json", '{"epoch": 1}', "2026-07-01T10:00:00")
    with pytest.raises(SourceError, match=r"checkpoint-1/trainer_state\.json is no trainer state"):
        read_runs(source("trainer_state", tmp_path))


def test_lightning_counts_from_nought_and_we_from_one(tmp_path: Path) -> None:
    """Columns may stand in any order; the checkpoint of epoch 0 dates it, the file the rest."""
    put(tmp_path, "version_3/metrics.csv", "val_loss,step,epoch\n,24,0\n2.5,49,1\n", "2026-07-01T12:00:00")
    put(tmp_path, "version_3/checkpoints/epoch=0-step=24.ckpt", "w" * 7, "2026-07-01T11:00:00")
    told = read_runs(source("lightning", tmp_path))
    assert rows(told, "epoch", "epoch_index", "step", "completed_at") == [
        (1, 24, at("2026-07-01T11:00:00")),
        (2, 49, at("2026-07-01T12:00:00")),
    ]
    assert rows(told, "checkpoint", "step", "bytes") == [(24, 7)]
    assert rows(told, "evaluation", "metric", "value") == [("val_loss", 2.5)]


# W&B ---------------------------------------------------------------------------------------------------------------


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
    told = read_runs(source("wandb", tmp_path))
    assert rows(told, "run", "status", "model", "seq_len", "ended_at") == [
        ("failed", "llama", 4096, at("2026-07-01T14:00:00"))
    ]
    assert rows(told, "attempt", "attempt_no", "started_at", "ended_at") == [
        (1, at("2026-07-01T10:00:00"), at("2026-07-01T10:20:00")),
        (2, at("2026-07-01T13:00:00"), at("2026-07-01T14:00:00")),
    ]
    assert sorted(set(rows(told, "resource", "resource_id", "evidence"))) == [("i-01", "imds"), ("i-02", "imds")]
    assert rows(told, "evaluation", "attempt_no", "metric", "value") == [(2, "val_loss", 2.2)]
    assert told.warnings == [
        "Run w1: a target needs target_metric, target_value, target_direction together; it is read as none."
    ]


def test_ranks_of_one_job_are_one_run(tmp_path: Path) -> None:
    ranks = [wandb_run(f"w{rank}", "finished", [], group="job-7", config={"rank": rank}) for rank in range(4)]
    (tmp_path / "export.jsonl").write_text("\n".join(ranks))
    assert rows(read_runs(source("wandb", tmp_path)), "run", "run_id", "status") == [("job-7", "completed")]


def test_a_line_that_is_no_wandb_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "export.jsonl").write_text(wandb_run("w1", "finished", []) + "\n" + '{"id": "w2"}\n')
    with pytest.raises(SourceError, match=r"export\.jsonl, line 2 is no exported run .*created_at is missing"):
        read_runs(source("wandb", tmp_path))


# SageMaker ---------------------------------------------------------------------------------------------------------

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
    told = read_runs(source("sagemaker", tmp_path))
    assert rows(told, "run", "run_id", "model", "seq_len", "status") == [("tune-7", "bart", 1024, "completed")]
    assert rows(told, "attempt", "attempt_no", "started_at", "ended_at", "end_reason") == [
        (1, at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00"), "spot_interruption"),
        (2, at("2026-07-01T11:30:00"), at("2026-07-01T13:00:00"), "completed"),
    ]
    assert set(rows(told, "resource", "resource_id", "account_id", "region_id", "evidence")) == {
        (ARN, "000033334444", "us-west-2", "api")
    }


def test_what_is_no_job_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{broken")
    with pytest.raises(SourceError, match=r"job\.json is no DescribeTrainingJob response"):
        read_runs(source("sagemaker", tmp_path))


# Kubernetes --------------------------------------------------------------------------------------------------------


def pod(name: str, node: str, start: str, end: str | None, limits: dict[str, str]) -> dict[str, Any]:
    state = (
        {"terminated": {"startedAt": start, "finishedAt": end, "reason": "Completed"}}
        if end
        else {"running": {"startedAt": start}}
    )
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "train",
            "uid": name,
            "labels": {"batch.kubernetes.io/job-name": "ft-1"},
        },
        "spec": {"nodeName": node, "containers": [{"resources": {"limits": limits}}]},
        "status": {"startTime": start, "containerStatuses": [{"state": state}]},
    }


def node(name: str, instance: str, instance_type: str) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"node.kubernetes.io/instance-type": instance_type}},
        "spec": {"providerID": f"aws:///us-west-2a/{instance}"},
    }


def test_a_job_that_was_tried_twice_is_joined_by_its_nodes(tmp_path: Path) -> None:
    """4 of 8 GPUs on the first node; 32 NeuronCores are 16 chips on trn1. The pod of the first try ended first."""
    items = [
        {
            "kind": "Job",
            "metadata": {"name": "ft-1", "namespace": "train", "uid": "j"},
            "status": {"conditions": [{"type": "Complete", "status": "True"}]},
        },
        pod("a", "n1", "2026-07-01T10:00:00Z", "2026-07-01T11:00:00Z", {"nvidia.com/gpu": "4"}),
        pod("b", "n2", "2026-07-01T11:05:00Z", "2026-07-01T12:00:00Z", {"aws.amazon.com/neuroncore": "32"}),
        node("n1", "i-01", "p4d.24xlarge"),
        node("n2", "i-02", "trn1.32xlarge"),
    ]
    (tmp_path / "snapshot.json").write_text(json.dumps({"kind": "List", "items": items}))
    told = read_runs(source("kubernetes", tmp_path))
    assert rows(told, "run", "run_id", "status", "started_at", "ended_at") == [
        ("ft-1", "completed", at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"))
    ]
    assert rows(told, "resource", "attempt_no", "resource_id", "instance_type", "accelerators_used", "evidence") == [
        (1, "i-01", "p4d.24xlarge", 4, "api"),
        (2, "i-02", "trn1.32xlarge", 16, "api"),
    ]


def test_pods_side_by_side_on_a_node_hold_it_together(tmp_path: Path) -> None:
    """Two workers of 4 GPUs from 10:00; one ends at 11:00, the other at 12:00: 8 GPUs for an hour, then 4."""
    four = {"nvidia.com/gpu": "4"}
    items = [
        pod("a", "n1", "2026-07-01T10:00:00Z", "2026-07-01T11:00:00Z", four),
        pod("b", "n1", "2026-07-01T10:00:00Z", "2026-07-01T12:00:00Z", four),
        node("n1", "i-01", "p5.48xlarge"),
    ]
    (tmp_path / "snapshot.json").write_text(json.dumps({"kind": "List", "items": items}))
    told = read_runs(source("kubernetes", tmp_path))
    assert sorted(rows(told, "resource", "resource_id", "joined_at", "left_at", "accelerators_used")) == [
        ("i-01", at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00"), 8),
        ("i-01", at("2026-07-01T11:00:00"), at("2026-07-01T12:00:00"), 4),
    ]


def test_a_claim_leads_to_what_is_billed_for_as_long_as_a_pod_has_it(tmp_path: Path) -> None:
    """Both pods mount the file system, 10:00 to 12:00 in all; the first alone a volume; one claim is in no snapshot."""

    def claim(name: str, volume: str) -> dict[str, Any]:
        meta = {"name": name, "namespace": "train", "uid": name}
        return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": volume}}

    def volume(name: str, handle: str) -> dict[str, Any]:
        spec = {"csi": {"driver": "x.csi.aws.com", "volumeHandle": handle}}
        return {"kind": "PersistentVolume", "metadata": {"name": name, "uid": name}, "spec": spec}

    def mounts(told: dict[str, Any], *claims: str) -> dict[str, Any]:
        told["spec"]["volumes"] = [{"persistentVolumeClaim": {"claimName": name}} for name in claims]
        return told

    items = [
        mounts(pod("a", "n1", "2026-07-01T10:00:00Z", "2026-07-01T11:00:00Z", {}), "data", "scratch", "lost"),
        mounts(pod("b", "n1", "2026-07-01T10:30:00Z", "2026-07-01T12:00:00Z", {}), "data"),
        node("n1", "i-01", "p5.48xlarge"),
        claim("data", "pv-1"),
        claim("scratch", "pv-2"),
        volume("pv-1", "fs-0abc::fsap-0def"),
        volume("pv-2", "vol-0abc"),
    ]
    (tmp_path / "snapshot.json").write_text(json.dumps({"kind": "List", "items": items}))
    told = read_runs(source("kubernetes", tmp_path))
    stays = rows(told, "resource", "resource_id", "joined_at", "left_at", "evidence")
    assert [stay for stay in stays if not stay[0].startswith("i-")] == [
        ("fs-0abc", at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"), "api"),
        ("vol-0abc", at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00"), "api"),
    ]
    assert told.warnings == ["Run ft-1: claim lost and its volume are in no snapshot; its cost is not found."]


def test_a_running_pod_is_open_and_a_lost_node_is_told(tmp_path: Path) -> None:
    items = [pod("a", "gone", "2026-07-01T10:00:00Z", None, {})]
    (tmp_path / "snapshot.json").write_text(json.dumps({"kind": "PodList", "items": items}))
    told = read_runs(source("kubernetes", tmp_path))
    assert rows(told, "resource", "resource_id", "left_at", "accelerators_used") == [("gone", None, None)]
    assert told.warnings == ["Run ft-1: node gone is in no snapshot with a providerID; its cost is not found."]


# All ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["kubernetes", "lightning", "mllog", "sagemaker", "slurm", "trainer_state", "wandb"])
def test_an_empty_folder_records_no_run_and_keeps_its_state(kind: str, tmp_path: Path) -> None:
    told = read_runs(source(kind, tmp_path))
    assert all(isinstance(table, pl.DataFrame) and table.is_empty() for table in told.tables.values())
    assert runs_fingerprint(source(kind, tmp_path)) == runs_fingerprint(source(kind, tmp_path))
