"""SageMaker training jobs: `location` is `sagemaker://<region>`, or a folder of recorded responses (facts 1.3).

The job's ARN is what the bill names. An `Interrupted` transition ends an attempt. SageMaker knows neither epochs nor
checkpoints, only where checkpoints go; the instances themselves are the service's and are on nobody's bill.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pipelines.base.aws import aws_session
from pipelines.base.errors import SourceError, UnreachableError
from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.clean import MALFORMED, moment_of, telling
from pipelines.ingest.runs.metrics import described
from pipelines.ingest.runs.records import DECLARED, RunRecords, listed_state, open_run_store, records

_SCHEME = "sagemaker://"
_STATUS = {"Completed": "completed", "Failed": "failed", "Stopped": "killed"}
_REASON = {"Completed": "completed", "Failed": "sw_error", "Stopped": "user_stop"}
_PHASES = {
    "Starting": "provision",
    "LaunchingMLInstances": "provision",
    "PreparingTrainingStack": "init",
    "Pending": "provision",
    "Downloading": "init",
    "DownloadingTrainingImage": "init",
    "Training": "train",
    "Uploading": "teardown",
    "Restarting": "provision",
}


def state(source: RunSource) -> str:
    """When each job was last changed; of a folder, its listing."""
    if not source.location.startswith(_SCHEME):
        return listed_state(source)
    client = _client(source)
    told = [f"{job['TrainingJobName']} {job.get('LastModifiedTime')}" for job in _listed(client, source)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def read(source: RunSource) -> RunRecords:
    """Every training job of the region, or of the folder, with its tags."""
    rows: dict[str, list[dict[str, Any]]] = {}
    warnings: list[str] = []
    jobs = _live(source) if source.location.startswith(_SCHEME) else _recorded(source)
    declared = []
    for job, tags in jobs:
        declared += [tags[key] for key in (DECLARED, "run_id") if tags.get(key)][:1]
        with telling(f"[[runs]] {source.name}: training job {job.get('TrainingJobName')}"):
            for table, found in _run(job, tags, warnings).items():
                rows.setdefault(table, []).extend(found)
    if not rows:
        warnings.append(f"{source.location} tells of no training job: no run is recorded there yet.")
    return records(source, rows, warnings, declared)


def _client(source: RunSource) -> Any:
    from botocore.config import Config

    region = source.location.removeprefix(_SCHEME).strip("/") or source.region
    session = aws_session(source.profile, region)
    patience = Config(retries={"mode": "adaptive", "max_attempts": 6}, connect_timeout=5, read_timeout=30)
    return session.client("sagemaker", endpoint_url=source.endpoint_url, config=patience)


def _listed(client: Any, source: RunSource) -> list[Mapping[str, Any]]:
    pages = client.get_paginator("list_training_jobs").paginate(SortBy="CreationTime", SortOrder="Ascending")
    return [
        job
        for page in _asked(source, "sagemaker:ListTrainingJobs", lambda: list(pages))
        for job in page["TrainingJobSummaries"]
    ]


def _live(source: RunSource) -> Iterator[tuple[Mapping[str, Any], dict[str, str]]]:
    client = _client(source)
    for job in _listed(client, source):
        describe = partial(client.describe_training_job, TrainingJobName=job["TrainingJobName"])
        pages = client.get_paginator("list_tags").paginate(ResourceArn=job["TrainingJobArn"])
        told = _asked(source, "sagemaker:DescribeTrainingJob", describe)
        tags = _asked(source, "sagemaker:ListTags", partial(list, pages))
        yield told, {tag["Key"]: tag["Value"] for page in tags for tag in page["Tags"]}


def _asked(source: RunSource, action: str, call: Callable[[], Any]) -> Any:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return call()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if "AccessDenied" in code or code == "UnauthorizedOperation":
            raise SourceError(
                f"[[runs]] {source.name}: {action} is denied; allow it to whom the pipeline runs as."
            ) from None
        raise SourceError(f"[[runs]] {source.name}: {action} fails with {code}; check region and endpoint.") from None
    except BotoCoreError as error:
        raise UnreachableError(f"[[runs]] {source.name}: SageMaker does not answer ({error}); try later.") from None


def _recorded(source: RunSource) -> Iterator[tuple[Mapping[str, Any], dict[str, str]]]:
    """DescribeTrainingJob responses, each in a .json file; tags may have been added under `Tags`."""
    store = open_run_store(source)
    for item in store.list():
        if not item.key.endswith(".json"):
            continue
        try:
            content = parse_json(store.read(item.key), _moment_object)
            told = content.get("data", content)
            if "TrainingJobName" in told:
                yield told, {tag["Key"]: tag["Value"] for tag in told.get("Tags") or ()}
        except MALFORMED:
            raise SourceError(f"{store.uri(item.key)} is no DescribeTrainingJob response; record it again.") from None


def _moment_object(given: dict[str, Any]) -> Any:
    """A time as some recorders write it, in parts."""
    if given.pop("__class__", None) == "datetime":
        return datetime(**{part: given[part] for part in ("year", "month", "day", "hour", "minute", "second")})
    return given


def _moment(at: Any) -> datetime | None:
    if isinstance(at, str):
        at = datetime.fromisoformat(at.replace("Z", "+00:00"))
    elif isinstance(at, int | float):
        at = moment_of(at)
    if at is None:
        return None
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at


def _run(job: Mapping[str, Any], tags: Mapping[str, str], warnings: list[str]) -> dict[str, list[dict[str, Any]]]:
    said = {key: str(value).strip('"') for key, value in (job.get("HyperParameters") or {}).items()} | dict(tags)
    run_id = tags.get(DECLARED) or tags.get("run_id") or job["TrainingJobName"]
    status = job.get("TrainingJobStatus")
    created_at = _moment(job.get("CreationTime"))
    started_at = _moment(job.get("TrainingStartTime")) or created_at
    ended_at = _moment(job.get("TrainingEndTime"))
    last_at = max(at for at in (created_at, started_at, ended_at, _moment(job.get("LastModifiedTime"))) if at)
    facts, _ = described(said, run_id, warnings)
    steps = _transitions(job)
    attempts = _attempts(run_id, steps, started_at, ended_at, last_at, str(status))
    return {
        "run": [
            facts
            | {
                "run_id": run_id,
                "source_system": "sagemaker",
                "parent_run_id": (job.get("TuningJobArn") or "").rpartition("/")[2] or tags.get("parent_run_id"),
                "purpose": "sweep_trial" if job.get("TuningJobArn") else facts["purpose"],
                "status": _STATUS.get(str(status)),
                "started_at": started_at,
                "ended_at": ended_at,
                "last_seen_at": last_at,
            }
        ],
        "attempt": attempts,
        "resource": [resource for attempt in attempts for resource in _resources(job, attempt, warnings)],
        "phase": [phase for attempt in attempts for phase in _phases(run_id, attempt, steps)],
        "evaluation": [
            {"run_id": run_id, "attempt_no": len(attempts), "metric": metric["MetricName"], "value": metric["Value"]}
            | {"evaluated_at": _moment(metric.get("Timestamp")) or ended_at}
            for metric in job.get("FinalMetricDataList") or ()
            if _moment(metric.get("Timestamp")) or ended_at
        ],
    }


def _transitions(job: Mapping[str, Any]) -> list[tuple[str, datetime, datetime | None]]:
    told = job.get("SecondaryStatusTransitions") or ()
    found = [(step["Status"], _moment(step.get("StartTime")), _moment(step.get("EndTime"))) for step in told]
    return sorted(((name, at, end) for name, at, end in found if at), key=lambda step: step[1])


def _attempts(
    run_id: str,
    steps: Sequence[tuple[str, datetime, datetime | None]],
    started_at: datetime | None,
    ended_at: datetime | None,
    last_at: datetime,
    status: str,
) -> list[dict[str, Any]]:
    if started_at is None:
        return []
    cuts = [at for name, at, _ in steps if name == "Interrupted" and started_at < at < (ended_at or last_at)]
    begins = [started_at]
    for cut in cuts:
        back = [at for name, at, _ in steps if at >= cut and name != "Interrupted"]
        begins.append(min(back) if back else cut)
    ends = [*cuts, ended_at]
    return [
        {
            "run_id": run_id,
            "attempt_no": number,
            "started_at": begin,
            "ended_at": end,
            "end_reason": "spot_interruption" if number < len(ends) else _REASON.get(status),
            "last_seen_at": end or last_at,
        }
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True), start=1)
    ]


def _resources(job: Mapping[str, Any], attempt: Mapping[str, Any], warnings: list[str]) -> Iterator[dict[str, Any]]:
    config = job.get("ResourceConfig") or {}
    groups = config.get("InstanceGroups") or [config]
    named = [config.get("SelectedInstanceType") or group.get("InstanceType") for group in groups]
    types = {str(name) for name in named if name}
    if len(types) > 1:
        warnings.append(f"Job {job['TrainingJobName']} has several instance types ({', '.join(sorted(types))}).")
    region, account = job["TrainingJobArn"].split(":")[3:5]
    yield {
        "run_id": attempt["run_id"],
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


def _phases(run_id: str, attempt: Mapping[str, Any], steps: Sequence[tuple]) -> Iterator[dict[str, Any]]:
    end = attempt["ended_at"] or attempt["last_seen_at"]
    for name, at, until in steps:
        begin = max(at, attempt["started_at"])
        if name in _PHASES and begin < end and at < end:
            yield {
                "run_id": run_id,
                "attempt_no": attempt["attempt_no"],
                "phase": _PHASES[name],
                "started_at": begin,
                "ended_at": min(until, end) if until else None,
            }
