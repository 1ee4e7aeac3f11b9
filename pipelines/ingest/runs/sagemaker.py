"""SageMaker training jobs: `location` is `sagemaker://<region>`, or a folder of recorded responses (facts 1.3).

The bill names the job by its ARN. An `Interrupted` transition ends an attempt. SageMaker records neither epochs nor
checkpoints, only their location; its instances are not on the bill.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from pipelines.base.aws import connect, requesting
from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.metrics import REASONS, attempts_of, described
from pipelines.ingest.runs.records import (
    DECLARED,
    Row,
    RunRecords,
    RunRows,
    keep_latest,
    listed_state,
    saved_files,
    utc,
)

_SCHEME = "sagemaker://"
_STATUS = {"Completed": "completed", "Failed": "failed", "Stopped": "killed"}
_PHASES = {
    **dict.fromkeys(("Starting", "LaunchingMLInstances", "Pending", "Restarting"), "provision"),
    **dict.fromkeys(("PreparingTrainingStack", "Downloading", "DownloadingTrainingImage"), "init"),
    **{"Training": "train", "Uploading": "teardown"},
}
# The name of a status, when it began and when it ended.
Step = tuple[str, datetime, datetime | None]
# A job and its tags.
Described = tuple[Mapping[str, Any], dict[str, str]]


def state(source: RunSource) -> str:
    """When each job last changed; of a folder, its listing."""
    if not source.location.startswith(_SCHEME):
        return listed_state(source)
    changes = [f"{job['TrainingJobName']} {job.get('LastModifiedTime')}" for job in _listed(_client(source), source)]
    return hashlib.sha256("\n".join(changes).encode()).hexdigest()


def read(source: RunSource) -> RunRecords:
    """Every training job of the region, or of the folder, with its tags."""
    rows = RunRows(source)
    jobs: dict[str, Described] = {}
    for job, tags in _live(source) if source.location.startswith(_SCHEME) else _recorded(source, rows):
        with rows.skipping(_where(source, job)):
            keep_latest(jobs, job.get("TrainingJobArn") or job["TrainingJobName"], (job, tags), _progress)
    for job, tags in jobs.values():
        if job.get("TrainingJobStatus") in ("Failed", "Stopped") and not job.get("TrainingStartTime"):
            # AWS bills a job from that time on: it never had a machine.
            continue
        run_id = rows.id_of({DECLARED: tags.get(DECLARED) or tags.get("run_id")}, job["TrainingJobName"])
        rows.add(run_id, _where(source, job), _run, run_id, job, tags, rows.warnings)
    return rows.records(f"{source.location} contains no training job")


def _where(source: RunSource, job: Mapping[str, Any]) -> str:
    return f"[[runs]] {source.name}: training job {job.get('TrainingJobName')}"


def _progress(described: Described) -> tuple[bool, datetime, int]:
    job, _ = described
    ended_at, changed_at = utc(job.get("TrainingEndTime")), utc(job.get("LastModifiedTime"))
    steps = len(job.get("SecondaryStatusTransitions") or ())
    return ended_at is not None, changed_at or ended_at or datetime.min, steps


def _client(source: RunSource) -> Any:
    region = source.location.removeprefix(_SCHEME).strip("/") or source.region
    where, endpoint = f"[[runs]] {source.name}", source.endpoint_url
    return connect("sagemaker", where, endpoint_url=endpoint, region=region, profile=source.profile)[1]


def _listed(client: Any, source: RunSource) -> list[Mapping[str, Any]]:
    pages = client.get_paginator("list_training_jobs").paginate(SortBy="CreationTime", SortOrder="Ascending")
    with requesting(f"[[runs]] {source.name}", "sagemaker:ListTrainingJobs"):
        return [job for page in pages for job in page["TrainingJobSummaries"]]


def _live(source: RunSource) -> Iterator[Described]:
    client, where = _client(source), f"[[runs]] {source.name}"
    for job in _listed(client, source):
        with requesting(where, "sagemaker:DescribeTrainingJob"):
            description = client.describe_training_job(TrainingJobName=job["TrainingJobName"])
        with requesting(where, "sagemaker:ListTags"):
            pages = list(client.get_paginator("list_tags").paginate(ResourceArn=job["TrainingJobArn"]))
            tags = {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
        yield description, tags


def _recorded(source: RunSource, rows: RunRows) -> Iterator[Described]:
    """DescribeTrainingJob responses, each in a .json file; tags may have been added under `Tags`."""
    for where, text, _ in saved_files(rows, ".json"):
        with rows.skipping(where, "record the response of DescribeTrainingJob again"):
            content = parse_json(text, _time_of_parts)
            job = content.get("data", content)
            tags = {tag["Key"]: tag["Value"] for tag in job.get("Tags") or ()}
            if "TrainingJobName" in job:
                yield job, tags


def _time_of_parts(content: dict[str, Any]) -> Any:
    """A time as some recorders write it, in parts."""
    if content.pop("__class__", None) == "datetime":
        return datetime(**{part: content[part] for part in ("year", "month", "day", "hour", "minute", "second")})
    return content


def _run(run_id: str, job: Mapping[str, Any], tags: Mapping[str, str], warnings: list[str]) -> dict[str, Any]:
    parameters = {key: str(value).strip('"') for key, value in (job.get("HyperParameters") or {}).items()} | dict(tags)
    status = _STATUS.get(str(job.get("TrainingJobStatus")))
    created_at, ended_at = utc(job.get("CreationTime")), utc(job.get("TrainingEndTime"))
    started_at = utc(job.get("TrainingStartTime")) or created_at
    last_at = max(at for at in (created_at, started_at, ended_at, utc(job.get("LastModifiedTime"))) if at)
    facts, _ = described(parameters, run_id, warnings)
    steps = _steps(job)
    span = {"started_at": started_at, "ended_at": ended_at, "last_seen_at": last_at}
    attempts = _attempts(steps, started_at, ended_at, last_at, status)
    run = {
        "source_system": "sagemaker",
        "parent_run_id": (job.get("TuningJobArn") or "").rpartition("/")[2] or tags.get("parent_run_id"),
        "purpose": "sweep_trial" if job.get("TuningJobArn") else facts["purpose"],
        "status": status,
    }
    return {
        "run": [facts | span | run],
        "attempt": attempts,
        "resource": [_resource(job, attempt, warnings) for attempt in attempts],
        "phase": [phase for attempt in attempts for phase in _phases(attempt, steps)],
        "evaluation": [
            {"attempt_no": len(attempts), "metric": metric["MetricName"], "value": metric["Value"], "evaluated_at": at}
            for metric in job.get("FinalMetricDataList") or ()
            if (at := utc(metric.get("Timestamp")) or ended_at)
        ],
    }


def _steps(job: Mapping[str, Any]) -> list[Step]:
    """The statuses of a job in order, each until its end or, where that is later or unknown, until the next begins."""
    begun = [
        (at, utc(step.get("EndTime")) or datetime.max, step["Status"])
        for step in job.get("SecondaryStatusTransitions") or ()
        if (at := utc(step.get("StartTime")))
    ]
    begun.sort()
    found = []
    for (at, until, name), (after, _, _) in pairwise([*begun, (datetime.max, datetime.max, "")]):
        end = min(until, after)
        found.append((name, at, None if end == datetime.max else end))
    return found


def _attempts(
    steps: Sequence[Step], started_at: datetime | None, ended_at: datetime | None, last_at: datetime, status: str | None
) -> list[Row]:
    if started_at is None:
        return []
    # An interruption recorded twice in a row is one.
    turns = pairwise([("", started_at, None), *steps])
    firsts = [at for (before, _, _), (name, at, _) in turns if name == "Interrupted" != before]
    cuts = [at for at in firsts if started_at < at < (ended_at or last_at)]
    back = [at for name, at, _ in steps if name != "Interrupted"]
    begins = [started_at, *(min((at for at in back if at >= cut), default=cut) for cut in cuts)]
    reasons = [*["spot_interruption"] * len(cuts), REASONS[status]]
    return attempts_of(zip(begins, [*cuts, ended_at], reasons, strict=True), last_at)


def _resource(job: Mapping[str, Any], attempt: Mapping[str, Any], warnings: list[str]) -> Row:
    config = job.get("ResourceConfig") or {}
    groups = config.get("InstanceGroups") or [config]
    named = [config.get("SelectedInstanceType") or group.get("InstanceType") for group in groups]
    types = {str(name) for name in named if name}
    if len(types) > 1:
        warnings.append(
            f"Job {job['TrainingJobName']} has several instance types ({', '.join(sorted(types))}). Train on one type "
            "to compare its cost."
        )
    region, account = job["TrainingJobArn"].split(":")[3:5]
    return {
        "attempt_no": attempt["attempt_no"],
        "resource_id": job["TrainingJobArn"],
        "instance_type": min(types) if types else None,
        "account_id": account,
        "region_id": region,
        "market": "spot" if job.get("EnableManagedSpotTraining") else None,
        "reservation_id": config.get("TrainingPlanArn"),
        "joined_at": attempt["started_at"],
        "left_at": attempt["ended_at"],
        "evidence": "api",
    }


def _phases(attempt: Mapping[str, Any], steps: Sequence[Step]) -> Iterator[Row]:
    """The statuses that begin in an attempt; the first also has what lasts from before it."""
    end = attempt["ended_at"] or attempt["last_seen_at"]
    for name, at, until in steps:
        begin = max(at, attempt["started_at"])
        is_own = at == begin or attempt["attempt_no"] == 1
        if name in _PHASES and is_own and begin < end and (until is None or until > begin):
            yield {
                "attempt_no": attempt["attempt_no"],
                "phase": _PHASES[name],
                "started_at": begin,
                "ended_at": min(until, end) if until else None,
            }
