"""Kubernetes pods as runs: joined by their nodes, with what they claim."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from support.records import at, rows, source

from pipelines.ingest.runs.tracker import read_runs

Rows = list[dict[str, Any]]


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
    records = read_runs(source("kubernetes", tmp_path))
    assert rows(records, "run", "run_id", "status", "started_at", "ended_at") == [
        ("ft-1", "completed", at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"))
    ]
    assert rows(records, "resource", "attempt_no", "resource_id", "instance_type", "accelerators_used", "evidence") == [
        (1, "i-01", "p4d.24xlarge", 4, "api"),
        (2, "i-02", "trn1.32xlarge", 16, "api"),
    ]


def test_cores_are_those_that_the_node_counts(tmp_path: Path) -> None:
    """16 chips of 128 physical cores are 64 logical ones by default (facts training-runs 3): 64 cores are all chips."""
    counted = node("n1", "i-01", "trn2.48xlarge")
    counted["status"] = {"capacity": {"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "64"}}
    cores = {"aws.amazon.com/neuroncore": "64"}
    items = [pod("a", "n1", "2026-07-01T10:00:00Z", "2026-07-01T11:00:00Z", cores), counted]
    (tmp_path / "snapshot.json").write_text(json.dumps({"kind": "List", "items": items}))
    assert rows(read_runs(source("kubernetes", tmp_path)), "resource", "accelerators_used") == [(16,)]


def test_pods_side_by_side_on_a_node_hold_it_together(tmp_path: Path) -> None:
    """Two workers of 4 GPUs from 10:00; one ends at 11:00, the other at 12:00: 8 GPUs for an hour, then 4."""
    four = {"nvidia.com/gpu": "4"}
    items = [
        pod("a", "n1", "2026-07-01T10:00:00Z", "2026-07-01T11:00:00Z", four),
        pod("b", "n1", "2026-07-01T10:00:00Z", "2026-07-01T12:00:00Z", four),
        node("n1", "i-01", "p5.48xlarge"),
    ]
    (tmp_path / "snapshot.json").write_text(json.dumps({"kind": "List", "items": items}))
    records = read_runs(source("kubernetes", tmp_path))
    assert sorted(rows(records, "resource", "resource_id", "joined_at", "left_at", "accelerators_used")) == [
        ("i-01", at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00"), 8),
        ("i-01", at("2026-07-01T11:00:00"), at("2026-07-01T12:00:00"), 4),
    ]


def test_a_pod_without_accelerators_next_to_one_that_requests_some_has_none(tmp_path: Path) -> None:
    """The launcher of a job of 4 GPUs does not make it one of all 8; a part of a GPU stays unknown."""
    hour = ("2026-07-01T10:00:00Z", "2026-07-01T11:00:00Z")
    part = pod("c", "n1", *hour, {"nvidia.com/mig-3g.40gb": "1"})
    part["metadata"]["labels"] = {"job-name": "part"}
    items = [
        pod("a", "n1", *hour, {"nvidia.com/gpu": "4"}),
        pod("b", "n1", *hour, {"cpu": "2"}),
        part,
        node("n1", "i-01", "p5.48xlarge"),
    ]
    (tmp_path / "snapshot.json").write_text(json.dumps({"kind": "List", "items": items}))
    found = rows(read_runs(source("kubernetes", tmp_path)), "resource", "run_id", "accelerators_used")
    assert found == [("ft-1", 4), ("part", None)]


def test_a_claim_leads_to_what_is_billed_for_as_long_as_a_pod_has_it(tmp_path: Path) -> None:
    """Both pods mount the file system, 10:00 to 12:00 in all; the first alone a volume; one claim is in no snapshot."""

    def claim(name: str, volume: str) -> dict[str, Any]:
        meta = {"name": name, "namespace": "train", "uid": name}
        return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": volume}}

    def volume(name: str, handle: str) -> dict[str, Any]:
        spec = {"csi": {"driver": "x.csi.aws.com", "volumeHandle": handle}}
        return {"kind": "PersistentVolume", "metadata": {"name": name, "uid": name}, "spec": spec}

    def mounts(records: dict[str, Any], *claims: str) -> dict[str, Any]:
        records["spec"]["volumes"] = [{"persistentVolumeClaim": {"claimName": name}} for name in claims]
        return records

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
    records = read_runs(source("kubernetes", tmp_path))
    stays = rows(records, "resource", "resource_id", "joined_at", "left_at", "evidence")
    assert [stay for stay in stays if not stay[0].startswith("i-")] == [
        ("fs-0abc", at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"), "api"),
        ("vol-0abc", at("2026-07-01T10:00:00"), at("2026-07-01T11:00:00"), "api"),
    ]
    assert records.warnings == [
        "Run ft-1: claim lost and its volume are in no snapshot; its cost is not found. Take "
        "snapshots of claims and volumes too."
    ]


def test_a_running_pod_is_open_and_a_lost_node_is_reported(tmp_path: Path) -> None:
    items = [pod("a", "gone", "2026-07-01T10:00:00Z", None, {})]
    (tmp_path / "snapshot.json").write_text(json.dumps({"kind": "PodList", "items": items}))
    records = read_runs(source("kubernetes", tmp_path))
    assert rows(records, "resource", "resource_id", "left_at", "accelerators_used") == [("gone", None, None)]
    assert records.warnings == [
        "Run ft-1: node gone is in no snapshot with a providerID; its cost is not found unless another "
        "source names it. Take snapshots of nodes while they run."
    ]


def test_a_pod_that_was_deleted_while_it_ran_ends_when_it_was_last_seen(tmp_path: Path) -> None:
    """Preempted at 10:30 and deleted: the snapshot of 12:30 lacks it. The next try has another node, 13:00 to 14:00."""
    nodes = [node("n1", "i-01", "p5.48xlarge"), node("n2", "i-02", "p5.48xlarge")]
    system = pod("dns", "n1", "2026-07-01T00:00:00Z", None, {})
    system["metadata"] |= {"namespace": "kube-system", "labels": {}}
    job = {
        "kind": "Job",
        "metadata": {"name": "ft-1", "namespace": "train"},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    }
    tries = {
        "10:30": [pod("a", "n1", "2026-07-01T10:00:00Z", None, {})],
        "12:30": [],
        "14:30": [job, pod("b", "n2", "2026-07-01T13:00:00Z", "2026-07-01T14:00:00Z", {})],
    }
    for clock, found in tries.items():
        file = tmp_path / f"{clock}.json"
        file.write_text(json.dumps({"kind": "List", "items": [system, *nodes, *found]}))
        os.utime(file, (at(f"2026-07-01T{clock}:00+00:00").timestamp(),) * 2)
    records = read_runs(source("kubernetes", tmp_path))
    assert rows(records, "run", "status", "ended_at") == [("completed", at("2026-07-01T14:00:00"))]
    # While it ran, its last snapshot showed it alive.
    (tmp_path / "14:30.json").unlink()
    (tmp_path / "12:30.json").unlink()
    assert rows(read_runs(source("kubernetes", tmp_path)), "attempt", "ended_at", "last_seen_at") == [
        (None, at("2026-07-01T10:30:00"))
    ]
    assert rows(records, "resource", "attempt_no", "resource_id", "joined_at", "left_at") == [
        (1, "i-01", at("2026-07-01T10:00:00"), at("2026-07-01T10:30:00")),
        (2, "i-02", at("2026-07-01T13:00:00"), at("2026-07-01T14:00:00")),
    ]


def test_jobs_of_one_name_are_several_runs(tmp_path: Path) -> None:
    """In two namespaces, and created again in one of them. A pod that declares its run has the status of its Job."""

    def of(namespace: str, uid: str, hour: int, end: str, **labels: str) -> Rows:
        own = pod(uid, "n1", f"2026-07-01T{hour}:00:00Z", f"2026-07-01T{hour + 1}:00:00Z", {})
        meta = {"name": "ft-1", "namespace": namespace, "uid": uid}
        own["metadata"] |= {"namespace": namespace}
        own["metadata"]["labels"] |= {"batch.kubernetes.io/controller-uid": uid, **labels}
        job = {"kind": "Job", "metadata": meta, "status": {"conditions": [{"type": end, "status": "True"}]}}
        return [job, own]

    items = [
        *of("train", "first", 10, "Failed"),
        *of("train", "again", 12, "Complete"),
        *of("other", "alike", 11, "Failed"),
        *of("named", "named", 14, "Failed", **{"trainledger/run-id": "llama-42"}),
        node("n1", "i-01", "p5.48xlarge"),
    ]
    (tmp_path / "snapshot.json").write_text(json.dumps({"kind": "List", "items": items}))
    records = read_runs(source("kubernetes", tmp_path))
    assert rows(records, "run", "run_id", "started_at", "status") == [
        ("ft-1", at("2026-07-01T10:00:00"), "failed"),
        ("ft-1@2", at("2026-07-01T11:00:00"), "failed"),
        ("ft-1@3", at("2026-07-01T12:00:00"), "completed"),
        ("llama-42", at("2026-07-01T14:00:00"), "failed"),
    ]
