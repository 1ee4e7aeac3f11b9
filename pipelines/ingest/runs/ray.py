"""Ray jobs: `location` is a folder of saved answers of the Jobs API, `GET /api/jobs/` (facts training-runs 1.8).

A job's metadata describes the run and names its machines as tags of MLflow do (`aws.resource_ids`, …). Ray names hosts,
not instances, and records neither epochs nor checkpoints.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.metrics import History, described
from pipelines.ingest.runs.records import DECLARED, RunRecords, RunRows, Tables, moment_of, open_run_store, reading

_STATUS = {"SUCCEEDED": "completed", "FAILED": "failed", "STOPPED": "killed"}
_REASON = {"SUCCEEDED": "completed", "FAILED": "sw_error", "STOPPED": "user_stop"}


def read(source: RunSource) -> RunRecords:
    """Every job of the folder that started."""
    jobs: dict[str, Mapping[str, Any]] = {}
    store = open_run_store(source)
    for item in store.list():
        if item.key.endswith(".json"):
            with reading(store.uri(item.key), "save the answer of /api/jobs/ again"):
                for job in parse_json(store.read(item.key)):
                    job_id = job.get("submission_id") or job["job_id"]
                    # A job is in many answers; the last one has its end.
                    jobs[job_id] = max(jobs.get(job_id, job), job, key=lambda job: job.get("end_time") or 0)
    rows = RunRows(source)
    for job_id, job in sorted(jobs.items()):
        metadata = job.get("metadata") or {}
        declared = metadata.get(DECLARED)
        rows.declared |= {declared} if declared and isinstance(declared, str) else set()
        if job.get("start_time"):
            run_id = declared or job_id
            where = f"[[runs]] {source.name}: Ray job {job_id}"
            rows.add(run_id, where, lambda run=run_id, job=job, facts=metadata: _run(run, job, facts, rows.warnings))
    return rows.records(f"{source.location} contains no job that started")


def _run(run_id: str, job: Mapping[str, Any], metadata: Mapping[str, str], warnings: list[str]) -> Tables:
    facts, resources = described(metadata, run_id, warnings)
    started_at, ended_at = moment_of(job["start_time"] / 1000), _at(job.get("end_time"))
    tables = History([]).tables(started_at, ended_at, resources)
    status = str(job.get("status"))
    tables["attempt"][0]["end_reason"] = _REASON.get(status)
    run = {
        "source_system": "ray",
        "status": _STATUS.get(status),
        "started_at": started_at,
        "ended_at": ended_at,
        "last_seen_at": ended_at or started_at,
    }
    return {"run": [facts | run], **tables}


def _at(ms: Any) -> datetime | None:
    return moment_of(ms / 1000) if ms else None
