"""AWS Batch and Ray jobs as runs, by the fields of their APIs (botocore's model of Batch and ECS; Ray's Jobs API).

No recorded answer is at hand: these are written by hand, in milliseconds since 1970. 1782900000000 is 2026-07-01 10:00.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.records import at, rows, source

from pipelines.ingest.runs.records import UNREAD
from pipelines.ingest.runs.tracker import read_runs

TEN = 1782900000000
HOUR = 3_600_000
CONTAINER = "arn:aws:ecs:us-west-2:000033334444:container-instance/train/"


def job(job_id: str = "j-1", machines: str = "ab", **more: Any) -> dict[str, Any]:
    """A job that lost its machine at eleven and ran again from twelve to one."""
    tries = [(TEN, TEN + HOUR, machines[0], None), (TEN + 2 * HOUR, TEN + 3 * HOUR, machines[1], 0)]
    attempts = [
        {
            "startedAt": begin,
            "stoppedAt": end,
            "container": {"containerInstanceArn": CONTAINER + name, "exitCode": code},
        }
        for begin, end, name, code in tries
    ]
    return {
        "jobArn": f"arn:aws:batch:us-west-2:000033334444:job/{job_id}",
        "jobId": job_id,
        "jobName": "tune",
        "status": "SUCCEEDED",
        "startedAt": TEN + 2 * HOUR,
        "stoppedAt": TEN + 3 * HOUR,
        "attempts": attempts,
        "tags": {"model": "bart", "team": "nlp"},
    } | more


def machine(name: str) -> dict[str, Any]:
    kind = {"name": "ecs.instance-type", "value": "p4d.24xlarge"}
    return {"containerInstanceArn": CONTAINER + name, "ec2InstanceId": f"i-{name}", "attributes": [kind]}


def write(folder: Path, **answers: Any) -> None:
    for name, answer in answers.items():
        (folder / f"{name}.json").write_text(json.dumps(answer))


def test_the_attempts_of_a_batch_job_are_on_the_instances_they_ran_on(tmp_path: Path) -> None:
    running = job(status="RUNNING", attempts=job()["attempts"][:1], container=job()["attempts"][1]["container"])
    write(tmp_path, jobs={"jobs": [job()]}, before={"jobs": [running]}, machines={"containerInstances": [machine("a")]})
    found = read_runs(source("batch", tmp_path))
    assert rows(found, "run", "run_id", "model", "team", "status", "ended_at") == [
        ("j-1", "bart", "nlp", "completed", at("2026-07-01T13:00:00"))
    ]
    assert rows(found, "attempt", "attempt_no", "started_at", "ended_at", "end_reason") == [
        (1, at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00"), "unknown"),
        (2, at("2026-07-01T12:00:00"), at("2026-07-01T13:00:00"), "completed"),
    ]
    place = ("resource_id", "instance_type", "account_id", "region_id", "joined_at", "left_at", "evidence")
    assert rows(found, "resource", *place) == [
        (
            *("i-a", "p4d.24xlarge", "000033334444", "us-west-2"),
            *(at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00"), "api"),
        )
    ]
    (warning,) = found.warnings
    assert "1 container instances without an EC2 instance" in warning and CONTAINER + "b" in warning


def test_nodes_are_one_run_and_children_of_an_array_its_trials(tmp_path: Path) -> None:
    nodes = [
        job(f"m-1#{n}", on, nodeDetails={"nodeIndex": n, "isMainNode": n == 0}) for n, on in enumerate(("ab", "cd"))
    ]
    array = [job("s-1", arrayProperties={"size": 1}), job("s-1:0", arrayProperties={"index": 0})]
    queued = job("q-1", status="RUNNABLE", startedAt=None, attempts=[])
    machines = {"containerInstances": [machine(name) for name in "abcd"]}
    write(tmp_path, jobs={"jobs": [*nodes, *array, queued]}, machines=machines)
    found = read_runs(source("batch", tmp_path))
    assert rows(found, "run", "run_id", "parent_run_id", "purpose") == [
        ("m-1", None, None),
        ("s-1:0", "s-1", "sweep_trial"),
    ]
    ranks = [row for row in rows(found, "resource", "run_id", "attempt_no", "node_rank") if row[0] == "m-1"]
    assert sorted(ranks) == [("m-1", 1, 0), ("m-1", 1, 1), ("m-1", 2, 0), ("m-1", 2, 1)]


def test_a_job_has_the_gpus_that_its_container_reserves(tmp_path: Path) -> None:
    """Two of a machine's eight: others share it. Without a reservation it has the whole machine."""
    needs = {"resourceRequirements": [{"type": "VCPU", "value": "8"}, {"type": "GPU", "value": "2"}]}
    jobs = [job("part", container=needs), job("whole", container={})]
    write(tmp_path, jobs={"jobs": jobs}, machines={"containerInstances": [machine("a")]})
    found = read_runs(source("batch", tmp_path))
    assert rows(found, "resource", "run_id", "accelerators_used") == [("part", 2), ("whole", None)]


def test_a_node_may_start_before_the_main_one(tmp_path: Path) -> None:
    main = {"nodeIndex": 0, "isMainNode": True}
    waiting = job("m-1#0", status="STARTING", startedAt=None, stoppedAt=None, attempts=[], nodeDetails=main)
    running = job("m-1#1", status="RUNNING", attempts=[], stoppedAt=None, nodeDetails={"nodeIndex": 1})
    write(tmp_path, jobs={"jobs": [waiting, running]})
    found = read_runs(source("batch", tmp_path))
    assert rows(found, "run", "run_id", "status", "started_at") == [("m-1", None, at("2026-07-01T12:00:00"))]


def test_the_metadata_of_a_ray_job_names_its_run_and_machines(tmp_path: Path) -> None:
    metadata = {"trainledger.run_id": "llama-7", "aws.resource_ids": "i-1, i-2", "aws.region": "us-west-2"}
    ray = {"type": "SUBMISSION", "job_id": "02000000", "submission_id": "raysubmit_1", "metadata": metadata}
    ray |= {"status": "RUNNING", "start_time": TEN, "end_time": None, "entrypoint": "python train.py"}
    write(tmp_path, b=[ray | {"status": "STOPPED", "end_time": TEN + HOUR}], c=[ray])
    found = read_runs(source("ray", tmp_path))
    assert rows(found, "run", "run_id", "status") == [("llama-7", "killed")] and found.declared == {"llama-7"}
    assert rows(found, "resource", "resource_id", "joined_at", "left_at") == [
        ("i-1", at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00")),
        ("i-2", at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00")),
    ]
    assert rows(found, "attempt", "end_reason") == [("user_stop",)]


def test_a_job_without_an_end_was_seen_when_its_answer_was_saved(tmp_path: Path) -> None:
    """At 11:30: a job that joins its machine at eleven does not show that it is over."""
    running = {"status": "RUNNING", "startedAt": TEN, "stoppedAt": None, "attempts": []}
    ray = {"submission_id": "r", "status": "RUNNING", "start_time": TEN, "end_time": None}
    for kind, answer in (("batch", {"jobs": [job(**running)]}), ("ray", [ray])):
        folder = tmp_path / kind
        folder.mkdir()
        write(folder, answer=answer)
        os.utime(folder / "answer.json", (TEN / 1000 + 5400, TEN / 1000 + 5400))
        found = read_runs(source(kind, folder))
        assert rows(found, "attempt", "ended_at", "last_seen_at") == [(None, at("2026-07-01T11:30:00"))]


@pytest.mark.parametrize(("kind", "answer"), [("batch", {"jobs": [{"jobName": "x"}]}), ("ray", [{"type": "x"}])])
def test_what_is_no_answer_is_left_out_by_name(tmp_path: Path, kind: str, answer: Any) -> None:
    write(tmp_path, answer=answer)
    found = read_runs(source(kind, tmp_path))
    (warning,) = found.warnings
    assert re.search(r"answer\.json, job 1 lacks '\w+'; save the answer .* Until then it is skipped", warning)
    assert found.tables[UNREAD]["run_id"].to_list() == [None]
