"""Kubernetes objects as `kubectl get jobs,pods,nodes,pv,pvc -A -o json` writes them, snapshot on snapshot (facts 1.5).

A Job is a run, a pod's container a stay on the node it ran on, and the node's providerID the instance on the bill; a
claim of the pod leads over its volume to the EBS volume or the file system.
Objects vanish soon after a job ends, so snapshots are kept and read together; the latest version of an object counts.
"""

import re
from collections.abc import Iterable, Mapping, Set
from datetime import datetime
from itertools import pairwise
from typing import Any

from pipelines.base.parse import ParseError, parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.metrics import described
from pipelines.ingest.runs.records import Row, RunRecords, RunRows, Tables, open_run_store, utc
from pipelines.warehouse.storage import Store

_JOB_LABELS = (
    "trainledger/run-id", "jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name", "job-name",
)  # fmt: skip
_OF_JOB, _UID = _JOB_LABELS[3:], "batch.kubernetes.io/controller-uid"
# What a container requests, and NeuronCores of one accelerator by instance family (facts training-runs 3).
_ACCELERATORS = ("nvidia.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neurondevice")
_CORES = "aws.amazon.com/neuroncore"
_CORES_PER_CHIP = {"trn1": 2, "trn1n": 2, "inf2": 2, "trn2": 8, "trn2u": 8, "trn3": 8}
_REASONS = {"OOMKilled": "oom", "Completed": "completed", "Error": "sw_error", "Evicted": "preempted"}
_KINDS = ("Job", "Pod", "Node", "PersistentVolumeClaim", "PersistentVolume")
Object = Mapping[str, Any]
# When a pod's containers held its node, until when, why they ended, and when the pod was last seen.
Stay = tuple[datetime, datetime | None, str | None, datetime]
PodStay = tuple[Stay, Object]
# How a volume names what AWS bills: `vol-0abc`, `fs-0abc::fsap-0def`, `aws://us-west-2a/vol-0abc`.
_BILLED = re.compile(r"(?:^|/)((?:vol|fs)-[0-9a-z]+)")


def read(source: RunSource) -> RunRecords:
    """One run per Job (or job set) named by the pods' labels."""
    store = open_run_store(source)
    found: dict[str, dict[tuple[str, str], Object]] = {kind: {} for kind in _KINDS}
    rows = RunRows(source)
    items = sorted(store.list(), key=lambda item: (item.modified_at, item.key))
    # When each pod was last seen, and when the pods of its namespace last were; of all where a snapshot has several.
    seen: dict[tuple[str, str], datetime] = {}
    listed: dict[str | None, datetime] = {}
    for item in items:
        spaces: set[str | None] = set()
        for each in _objects(store, item.key, rows) if item.key.endswith(".json") else ():
            meta, kind = each["metadata"], str(each.get("kind"))
            space = meta.get("namespace", "")
            # The pods of a job that is tried again may have the same name.
            name = meta.get("uid") or meta["name"] if kind == "Pod" else meta["name"]
            found.get(kind, {})[space, name] = each
            if kind == "Job" and "uid" in meta:
                found[kind][space, meta["uid"]] = each
            if kind == "Pod":
                seen[space, name] = item.modified_at
                spaces.add(space)
        listed |= dict.fromkeys(spaces | {None} if len(spaces) > 1 else spaces, item.modified_at)
    stays: dict[tuple[str, str, str], list[PodStay]] = {}
    for key, pod in found["Pod"].items():
        with rows.skipping(f"[[runs]] {source.name}: pod {pod['metadata']['name']}", "snapshot it again"):
            labels = pod["metadata"].get("labels") or {}
            label = next((label for label in _JOB_LABELS if label in labels), "")
            name = labels.get(label)
            is_gone = max(listed[key[0]], listed.get(None, seen[key])) > seen[key]
            if name and (stay := _stay(pod, seen[key], is_gone)):
                is_declared = label == _JOB_LABELS[0]
                # Each namespace may have a job of this name, and a Job that is created again is another run.
                apart = "" if is_declared else key[0], labels.get(_UID, "") if label in _OF_JOB else ""
                stays.setdefault((str(name), *apart), []).append((stay, pod))
                rows.declared |= {name} if is_declared else set()
    specs = [spec for pod in found["Pod"].values() if isinstance(spec := pod.get("spec"), Mapping)]
    # On these nodes a pod has the accelerators that it requests, and no others.
    counted = {
        str(spec.get("nodeName"))
        for spec in specs
        if any(name in str(spec.get("containers")) for name in (*_ACCELERATORS, _CORES))
    }
    nodes, volumes = ({name: each for (_, name), each in found[kind].items()} for kind in ("Node", "PersistentVolume"))

    def run(name: str, pods: list[PodStay]) -> Tables:
        pods.sort(key=lambda found: found[0][0])
        tables = _run(name, pods, _job(pods[-1][1], found["Job"]), nodes, counted, rows.warnings)
        claims = found["PersistentVolumeClaim"]
        mounted = _storage(name, pods, [*tables["attempt"]], claims, volumes, rows.warnings)
        return {**tables, "resource": [*tables["resource"], *mounted]}

    # Of one name the first to start comes first.
    for (name, *_), pods in sorted(stays.items(), key=lambda of: (of[0][0], min(stay[0] for stay, _ in of[1]), of[0])):
        rows.add(name, f"[[runs]] {source.name}: job {name}", run, name, pods)
    return rows.records("" if items else f"{store.location} is empty")


def _objects(store: Store, key: str, rows: RunRows) -> Iterable[Object]:
    where, fix = store.uri(key), "write it with `kubectl get ... -o json`"
    with rows.skipping(where, fix):
        content = parse_json(store.read(key))
        listed = content["items"] if str(content.get("kind", "")).endswith("List") else [content]
        for number, each in enumerate(listed, start=1):
            with rows.skipping(f"{where}, object {number}", fix):
                meta = each["metadata"]
                names = (meta["name"], meta.get("namespace", ""), meta.get("uid", ""))
                if not all(isinstance(name, str) for name in names):
                    raise ParseError("has a name, namespace or uid that is not text")
                yield each


def _stay(pod: Object, seen_at: datetime, is_gone: bool) -> Stay | None:
    """The stay of a pod, which was last seen at `seen_at`: one that was deleted while it ran ended then."""
    status = pod.get("status") or {}
    begins, ends, why, is_running = [utc(status.get("startTime"))], [], None, False
    for container in status.get("containerStatuses") or ():
        for phase in (container.get("lastState") or {}, container.get("state") or {}):
            ended = phase.get("terminated")
            begins.append(utc((ended or phase.get("running") or {}).get("startedAt")))
            is_running |= "running" in phase
            if ended:
                ends.append(utc(ended.get("finishedAt")))
                why = ended.get("reason") or why
    started = [at for at in begins if at]
    finished = [at for at in ends if at]
    if not started:
        return None
    last_at = max(at for at in (utc(seen_at), *started) if at)
    if is_running or not finished:
        return min(started), last_at if is_gone else None, None if is_gone else why, last_at
    return min(started), max(finished), why, max(finished)


def _job(pod: Object, jobs: Mapping[tuple[str, str], Object]) -> Object | None:
    """The Job of a pod by its uid, else by its name."""
    labels = pod["metadata"].get("labels") or {}
    label = next((label for label in _JOB_LABELS[1:] if label in labels), "")
    own = (labels.get(_UID) if label in _OF_JOB else None) or labels.get(label, "")
    return jobs.get((pod["metadata"].get("namespace", ""), own))


def _run(
    run_id: str,
    stays: list[PodStay],
    job: Object | None,
    nodes: Mapping[str, Object],
    counted: Set[str],
    warnings: list[str],
) -> Tables:
    labels = stays[0][1]["metadata"].get("labels") or {}
    annotations = ((job or {}).get("metadata") or {}).get("annotations") or {}
    facts, _ = described(annotations | labels, run_id, warnings)
    conditions = ((job or {}).get("status") or {}).get("conditions") or ()
    reached = {condition["type"] for condition in conditions if condition.get("status") == "True"}
    status = "completed" if "Complete" in reached else "failed" if "Failed" in reached else None
    started_at = stays[0][0][0]
    ends = [stay[1] for stay, _ in stays]
    ended_at = max(end for end in ends if end) if all(ends) else None
    last_at = max(seen_at for (*_, seen_at), _ in stays)
    # A pod that starts after all others have ended is the next try.
    number, open_until, attempts, resources = 0, None, [], []
    for (begin, end, why, _), pod in stays:
        if number == 0 or (open_until is not None and begin >= open_until):
            number += 1
            attempts.append({"attempt_no": number, "started_at": begin, "last_seen_at": begin})
            open_until = end
        else:
            open_until = max(open_until, end) if open_until and end else None
        attempts[-1] |= {"ended_at": open_until, "last_seen_at": open_until or last_at}
        attempts[-1]["end_reason"] = _REASONS.get(str(why), "unknown") if open_until else None
        stay = {"attempt_no": number, "joined_at": begin, "left_at": end}
        resources.append(stay | _node(run_id, pod, nodes, counted, warnings))
    span = {"started_at": started_at, "ended_at": ended_at if status else None, "last_seen_at": last_at}
    run = facts | span | {"source_system": "kubernetes", "status": status}
    return {"run": [run], "attempt": attempts, "resource": _side_by_side(resources)}


def _node(run_id: str, pod: Object, nodes: Mapping[str, Object], counted: Set[str], warnings: list[str]) -> Row:
    name = (pod.get("spec") or {}).get("nodeName")
    node = nodes.get(name or "")
    labels = ((node or {}).get("metadata") or {}).get("labels") or {}
    instance_type = labels.get("node.kubernetes.io/instance-type")
    provider = ((node or {}).get("spec") or {}).get("providerID") or ""
    is_known = provider.startswith("aws:///")
    used = _requested(pod, instance_type, ((node or {}).get("status") or {}).get("capacity") or {})
    if used is None and name in counted and not any("/" in resource for limit in _limits(pod) for resource in limit):
        used = 0
    if not is_known:
        warnings.append(
            f"Run {run_id}: node {name} is in no snapshot with a providerID; its cost is not found unless another "
            "source names it. Take snapshots of nodes while they run."
        )
    return {
        "resource_id": provider.rpartition("/")[2] if is_known else name,
        "instance_type": instance_type,
        "region_id": labels.get("topology.kubernetes.io/region"),
        "market": "spot" if labels.get("karpenter.sh/capacity-type", "").lower() == "spot" else None,
        "accelerators_used": used,
        "evidence": "api" if is_known else "nodemap",
    }


def _limits(pod: Object) -> list[Object]:
    containers = (pod.get("spec") or {}).get("containers") or ()
    return [(container.get("resources") or {}).get("limits") or {} for container in containers]


def _requested(pod: Object, instance_type: str | None, capacity: Object) -> int | None:
    """Accelerators a pod requests; None where it requests none and so has the whole node, unless other pods do."""
    limits = _limits(pod)
    chips = sum(int(limit.get(name, 0)) for limit in limits for name in _ACCELERATORS)
    cores = sum(int(limit.get(_CORES, 0)) for limit in limits)
    per_chip = _CORES_PER_CHIP.get((instance_type or "").partition(".")[0], 2)
    node_chips = next((int(capacity[name]) for name in _ACCELERATORS if name in capacity), 0)
    if node_chips and (node_cores := int(capacity.get(_CORES, 0))) >= node_chips:
        # Physical cores may be joined into logical ones, which the node then counts.
        per_chip = node_cores // node_chips
    return chips + -(-cores // per_chip) or None


def _side_by_side(stays: Iterable[Row]) -> list[Row]:
    """Pods of one attempt on one node as stays that do not overlap, with the accelerators of all of them."""
    held: dict[tuple[int, str], list[Row]] = {}
    found: list[Row] = []
    for stay in stays:
        if stay["left_at"] is not None and stay["left_at"] <= stay["joined_at"]:
            found.append(stay)
        else:
            held.setdefault((stay["attempt_no"], stay["resource_id"]), []).append(stay)
    for group in held.values():
        bounds = sorted({at for stay in group for at in (stay["joined_at"], stay["left_at"] or datetime.max)})
        for begin, end in pairwise(bounds):
            here = [s for s in group if s["joined_at"] <= begin and (s["left_at"] or datetime.max) >= end]
            if not here:
                continue
            requested = [stay["accelerators_used"] for stay in here]
            # A pod that requests none has the whole node.
            total = None if None in requested else sum(requested)
            until = None if end == datetime.max else end
            stay = here[0] | {"joined_at": begin, "left_at": until, "accelerators_used": total}
            last = found[-1] if found else {}
            if last.get("left_at") == begin and last | {"left_at": until} == stay | {"joined_at": last["joined_at"]}:
                last["left_at"] = until
            else:
                found.append(stay)
    return found


def _storage(
    run_id: str, stays: list[PodStay], attempts: list[Object], claims: Mapping, volumes: Mapping, warnings: list[str]
) -> list[Row]:
    """What the pods' claims are bound to, for as long as any pod of the attempt had it."""
    held: dict[tuple[int, str], Row] = {}
    for (begin, end, *_), pod in stays:
        number = max(attempt["attempt_no"] for attempt in attempts if attempt["started_at"] <= begin)
        for mount in (pod.get("spec") or {}).get("volumes") or ():
            if not (name := (mount.get("persistentVolumeClaim") or {}).get("claimName")):
                continue
            claim = claims.get((pod["metadata"].get("namespace", ""), name)) or {}
            volume = volumes.get((claim.get("spec") or {}).get("volumeName") or "")
            if volume is None:
                warnings.append(
                    f"Run {run_id}: claim {name} and its volume are in no snapshot; its cost is not found. Take "
                    "snapshots of claims and volumes too."
                )
            elif billed := _billed(volume):
                fresh = {"attempt_no": number, "resource_id": billed, "evidence": "api"}
                stay = held.setdefault((number, billed), fresh | {"joined_at": begin, "left_at": end})
                stay["joined_at"] = min(stay["joined_at"], begin)
                stay["left_at"] = max(stay["left_at"], end) if stay["left_at"] and end else None
    return list(held.values())


def _billed(volume: Object) -> str | None:
    spec = volume.get("spec") or {}
    handle = (spec.get("csi") or {}).get("volumeHandle") or (spec.get("awsElasticBlockStore") or {}).get("volumeID")
    named = _BILLED.search(str(handle or ""))
    return named[1] if named else None
