"""AWS Batch jobs: `location` is a folder of saved answers of DescribeJobs (facts training-runs 1.6).

A job names the container instances of its attempts; saved answers of ECS DescribeContainerInstances name their EC2
instances, and have to be saved while these live. Nodes of a multi-node job (`<job id>#<n>`) are one run, children of an
array (`<job id>:<n>`) are trials of it. Batch records neither epochs nor checkpoints.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.metrics import attempts_of, described
from pipelines.ingest.runs.records import Row, RunRecords, RunRows, Tables, at_ms, keep_latest, saved_files

_STATUS = {"SUCCEEDED": "completed", "FAILED": "failed"}
_TYPE = "ecs.instance-type"
Job = Mapping[str, Any]
# The EC2 instance and the instance type of each container instance, by its ARN.
Machines = Mapping[str, tuple[str, str | None]]


def read(source: RunSource) -> RunRecords:
    """Every job of the folder that started."""
    jobs: dict[str, Job] = {}
    machines: dict[str, tuple[str, str | None]] = {}
    rows = RunRows(source)
    fix = "save the answer of `aws batch describe-jobs` or `aws ecs describe-container-instances` again"
    for where, content, seen_at in saved_files(rows, ".json"):
        with rows.skipping(where, fix):
            answer = parse_json(content)
            # A job is described in many answers; the last one has most of it.
            for number, job in enumerate(answer.get("jobs") or (), start=1):
                with rows.skipping(f"{where}, job {number}", fix):
                    keep_latest(jobs, job["jobId"], {**job, "seen_at": seen_at}, _progress)
            instances: list[Any] = answer.get("containerInstances") or []
            for number, instance in enumerate(instances, start=1):
                with rows.skipping(f"{where}, container instance {number}", fix):
                    attributes = {one.get("name"): one.get("value") for one in instance.get("attributes") or ()}
                    machines[instance["containerInstanceArn"]] = instance["ec2InstanceId"], attributes.get(_TYPE)
    runs: dict[str, list[Job]] = {}
    for job_id, job in sorted(jobs.items()):
        runs.setdefault(job_id.partition("#")[0], []).append(job)
    for job_id, nodes in runs.items():
        where = f"[[runs]] {source.name}: Batch job {job_id}"
        with rows.skipping(where, fix):
            is_array = ":" not in job_id and any((job.get("arrayProperties") or {}).get("size") for job in nodes)
            if is_array or not any(job.get("startedAt") for job in nodes):
                continue
            tags = {key: value for job in nodes for key, value in (job.get("tags") or {}).items()}
            run_id = rows.id_of(tags, job_id)
            rows.add(run_id, where, _run, run_id, nodes, tags, machines, rows.warnings)
    return rows.records(f"{source.location} contains no job that started")


def _progress(job: Job) -> tuple[int, int, int, datetime]:
    return len(job.get("attempts") or ()), job.get("stoppedAt") or 0, job.get("startedAt") or 0, job["seen_at"]


def _run(run_id: str, nodes: Sequence[Job], tags: Mapping[str, str], machines: Machines, warnings: list[str]) -> Tables:
    """The tables of a run from its nodes; the main node, or the first where that has not started, has its times."""
    started = [job for job in nodes if _tried(job)]
    main = next((job for job in started if (job.get("nodeDetails") or {}).get("isMainNode")), started[0])
    facts, _ = described({**(main.get("parameters") or {}), **tags}, run_id, warnings)
    attempts = _attempts(main)
    parent, _, index = str(main["jobId"]).partition(":")
    stays = [stay for job in nodes for stay in _stays(job, machines)]
    if unknown := {arn for _, arn in (_held(attempt) for job in nodes for attempt in _tried(job)) if arn} - {*machines}:
        warnings.append(
            f"Batch job {run_id} ran on {len(unknown)} container instances without an EC2 instance, for example "
            f"{min(unknown)}. Save `aws ecs describe-container-instances` while they live."
        )
    run = {
        "source_system": "batch",
        "parent_run_id": tags.get("parent_run_id") or (parent if index else None),
        "purpose": facts["purpose"] or ("sweep_trial" if index else None),
        "experiment": facts["experiment"] or main.get("jobName"),
        "status": _STATUS.get(str(main.get("status"))),
        "started_at": attempts[0]["started_at"],
        "ended_at": at_ms(main.get("stoppedAt")),
        "last_seen_at": max(attempt["last_seen_at"] for attempt in attempts),
    }
    return {"run": [facts | run], "attempt": attempts, "resource": stays}


def _tried(job: Job) -> list[Mapping[str, Any]]:
    """The attempts of a job that started, oldest first; the list of a job lacks the one that runs."""
    ended = [*(job.get("attempts") or ()), *(job.get("eksAttempts") or ())]
    tried = [attempt for attempt in ended if attempt.get("startedAt")]
    if job.get("startedAt") and (job.get("status") == "RUNNING" or not tried):
        tried.append({name: job[name] for name in ("startedAt", "stoppedAt", "container") if name in job})
    return sorted(tried, key=lambda attempt: attempt["startedAt"])


def _attempts(job: Job) -> list[Row]:
    tried = _tried(job)
    reasons = ["sw_error" if _held(attempt)[0].get("exitCode") else "unknown" for attempt in tried]
    if job.get("status") == "SUCCEEDED":
        reasons[-1:] = ["completed"]
    ends = [at_ms(attempt.get("stoppedAt")) for attempt in tried]
    begins = [at_ms(attempt["startedAt"]) for attempt in tried]
    tries = ((begun, end, end and reason) for begun, end, reason in zip(begins, ends, reasons, strict=True))
    # An attempt without an end ran when its answer was saved.
    return attempts_of(tries, max(job["seen_at"], *begins))


def _stays(job: Job, machines: Machines) -> Iterator[Row]:
    region, account = job["jobArn"].split(":")[3:5]
    # A container that reserves no GPU has the whole machine.
    reserved = (job.get("container") or {}).get("resourceRequirements") or ()
    gpus = sum(int(one["value"]) for one in reserved if one["type"] == "GPU") or None
    for number, attempt in enumerate(_tried(job), start=1):
        _, arn = _held(attempt)
        if arn in machines:
            instance, kind = machines[arn]
            yield {
                "attempt_no": number,
                "resource_id": instance,
                "instance_type": kind,
                "account_id": account,
                "region_id": region,
                "accelerators_used": gpus,
                "node_rank": (job.get("nodeDetails") or {}).get("nodeIndex", 0),
                "joined_at": at_ms(attempt["startedAt"]),
                "left_at": at_ms(attempt.get("stoppedAt")),
                "evidence": "api",
            }


def _held(attempt: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The container of an attempt and the ARN of its container instance, empty where it has none."""
    container = attempt.get("container") or next(iter(attempt.get("taskProperties") or ()), {})
    return container, container.get("containerInstanceArn") or ""
