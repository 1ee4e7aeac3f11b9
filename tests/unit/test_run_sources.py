"""What every kind of source of runs has in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.records import at, rows, source

from pipelines.ingest.runs.tracker import read_all, read_runs, runs_fingerprint
from pipelines.models.contract import load_contract

Rows = list[dict[str, Any]]
# 1782900000000 ms is 2026-07-01 10:00.
TEN, HOUR = 1_782_900_000_000, 3_600_000
NODES = "node,started_at,ended_at,instance_id,instance_type\nn1,,,i-1,p5.48xlarge\n"
R = {"trainledger.run_id": "r"}


@pytest.mark.parametrize("kind", ["kubernetes", "lightning", "mllog", "sagemaker", "slurm", "trainer_state", "wandb"])
def test_an_empty_folder_records_no_run_and_keeps_its_state(kind: str, tmp_path: Path) -> None:
    records = read_runs(source(kind, tmp_path))
    assert all(isinstance(table, pl.DataFrame) and table.is_empty() for table in records.tables.values())
    assert runs_fingerprint(source(kind, tmp_path)) == runs_fingerprint(source(kind, tmp_path))


def ray(job_id: str, metadata: dict[str, str], begin: int = TEN, end: int = TEN + HOUR, **more: Any) -> Any:
    job = {"submission_id": job_id, "status": "SUCCEEDED", "start_time": begin, "end_time": end, "metadata": metadata}
    return job | more


def sacct(job: int, begin: int, end: int, nodes: str = "n1", comment: str = "trainledger.run_id=r") -> str:
    times = f"2026-07-01T{begin}:00:00|2026-07-01T{end}:00:00"
    header = "JobIDRaw|State|Start|End|NodeList|AllocTRES|Comment"
    return f"{header}\n{job}|COMPLETED|{times}|{nodes}|gres/gpu=8,node=1|{comment}\n"


def mllog(*entries: tuple[str, int]) -> str:
    return "".join(f':::MLLOG {{"key": "{key}", "time_ms": {TEN + ms}, "value": null}}\n' for key, ms in entries)


def pod(name: str, end: str, gpus: int) -> dict[str, Any]:
    begin = "2026-07-01T10:00:00Z"
    return {
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, "labels": {"job-name": "j"}},
        "spec": {"nodeName": "n", "containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]},
        "status": {"containerStatuses": [{"state": {"terminated": {"startedAt": begin, "finishedAt": end}}}]},
    }


def batch_node(rank: int, seconds: int) -> dict[str, Any]:
    span = {"startedAt": TEN, "stoppedAt": TEN + HOUR + 1000 * seconds}
    arn, container = f"arn:aws:batch:us-west-2:1:job/b#{rank}", {"containerInstanceArn": "c"}
    node = {"jobArn": arn, "jobId": f"b#{rank}", "nodeDetails": {"nodeIndex": rank, "isMainNode": rank == 0}}
    return node | span | {"status": "SUCCEEDED", "attempts": [span | {"container": container}]}


def wandb(**more: Any) -> str:
    run = {"id": "w", "state": "finished", "created_at": "2026-07-01T10:00:00Z", "heartbeatAt": "2026-07-01T12:00:00Z"}
    return json.dumps(run | more)


# Epochs 1 and 2 twice, after the step went back.
RESUMED = [{"_timestamp": TEN // 1000 + 60 * n, "_step": s, "epoch": s} for n, s in enumerate((1, 2, 1, 2, 3))]
CSV = "epoch,step,val_loss\n0,1,1\n"
SAVE = {"global_step": 10, "epoch": 1.0, "log_history": []}
EVALS = [("eval_start", 0), ("eval_stop", 0), ("eval_start", 0), ("eval_stop", 5), ("eval_start", 9), ("run_stop", 9)]


@pytest.mark.parametrize(
    "sources",
    [
        {"ray": {"a.json": [ray("b", R), ray("a", R, TEN + HOUR, TEN + 3 * HOUR)]}},
        {"ray": {"a.json": [ray("a", {"aws.resource_ids": "i-1,i-1"})]}},
        {
            "batch": {
                "a.json": {"jobs": [batch_node(0, 0), batch_node(1, 5)]},
                "b.json": {"containerInstances": [{"containerInstanceArn": "c", "ec2InstanceId": "i-1"}]},
            }
        },
        {"slurm": {"a.txt": sacct(9, 10, 11), "b.txt": sacct(10, 12, 13), "nodes.csv": NODES}},
        {"slurm": {"a.txt": sacct(9, 10, 11, "n1,n1"), "nodes.csv": NODES}},
        {"slurm": {"a.txt": sacct(9, 10, 11), "nodes.csv": NODES, "nodes.log": "2026-07-01T09:00:00Z n1 i-1"}},
        {"slurm": {"a.txt": sacct(9, 10, 11), "nodes.csv": NODES + "n1,,2026-07-01T10:30:00,i-1,p5.48xlarge\n"}},
        {
            "kubernetes": {
                "a.json": {
                    "kind": "List",
                    "items": [pod("a", "2026-07-01T11:00:00Z", 1), pod("b", "2026-07-01T10:00:00Z", 2)],
                }
            }
        },
        {"mllog": {"r.txt": mllog(("run_start", 0), *EVALS)}},
        {"mllog": {"r.txt": mllog(("run_start", 0), *EVALS), "r.log": mllog(("run_start", 0), ("run_stop", 50))}},
        {"wandb": {"1.jsonl": wandb(config={"aws.resource_ids": "i-1,i-1"})}},
        {"lightning": {"a/metrics.csv": CSV, "a_metrics.csv": CSV + "1,2,1\n"}},
        {"trainer_state": {"checkpoint-1/trainer_state.json": SAVE, "lab/checkpoint-2/trainer_state.json": SAVE}},
        {"slurm": {"a.txt": sacct(9, 10, 12)}, "wandb": {"1.jsonl": wandb(config=R, history=RESUMED)}},
    ],
)
def test_no_input_makes_two_rows_of_one_key(sources: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    """Two rows of one key stop the build of the staging table, with all runs of all sources."""
    read = []
    for kind, files in sources.items():
        for name, content in files.items():
            (tmp_path / kind / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / kind / name).write_text(content if isinstance(content, str) else json.dumps(content))
        read.append(source(kind, tmp_path / kind, name="lab" if not read else kind))
    tables = read_all(read).tables
    for thing in ("run", "attempt", "resource", "phase", "epoch", "checkpoint"):
        key = load_contract(f"staging/stg_tracker__{thing}").key
        assert not tables[f"tracker_{thing}"].select(key).is_duplicated().any(), thing


def test_jobs_that_declare_one_run_are_its_attempts(tmp_path: Path) -> None:
    """Job b failed at 11, job a goes on from 12 to 13: the run is completed, by its last job to start."""
    jobs = [
        ray("a", R | {"model": "bart"}, TEN + 2 * HOUR, TEN + 3 * HOUR),
        ray("b", R | {"dataset": "corp"}, status="FAILED"),
    ]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    records = read_runs(source("ray", tmp_path))
    assert rows(records, "run", "run_id", "status", "model", "dataset", "started_at", "ended_at") == [
        ("r", "completed", "bart", "corp", at("2026-07-01T10:00:00"), at("2026-07-01T13:00:00"))
    ]
    assert rows(records, "attempt", "attempt_no", "started_at", "end_reason") == [
        (1, at("2026-07-01T10:00:00"), "sw_error"),
        (2, at("2026-07-01T12:00:00"), "completed"),
    ]
    assert records.warnings == []


def test_records_that_share_an_undeclared_name_are_two_runs(tmp_path: Path) -> None:
    for name in ("a.log", "a.txt"):
        (tmp_path / name).write_text(mllog(("run_start", 0), ("run_stop", 50)))
    records = read_runs(source("mllog", tmp_path))
    assert rows(records, "run", "run_id") == [("a",), ("a@2",)]
    assert records.warnings == [
        "Run 'a' is recorded 2 times by the [[runs]] source lab; the records are kept apart as 'a' to 'a@2'. If they "
        "are one run, set `trainledger.run_id` in each, else rename them."
    ]


def test_a_run_in_two_exports_is_the_later(tmp_path: Path) -> None:
    """The export of 11:00, while the run was up, is not one more rank of it."""
    (tmp_path / "1.jsonl").write_text(wandb(state="running", heartbeatAt="2026-07-01T11:00:00Z"))
    (tmp_path / "2.jsonl").write_text(wandb())
    assert rows(read_runs(source("wandb", tmp_path)), "run", "status", "ended_at") == [
        ("completed", at("2026-07-01T12:00:00"))
    ]
