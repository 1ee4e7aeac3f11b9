"""Ray jobs: `location` is a folder of saved answers of the Jobs API, `GET /api/jobs/` (facts training-runs 1.8).

A job's metadata describes the run and names its machines as tags of MLflow do (`aws.resource_ids`, …). Ray names hosts,
not instances, and records neither epochs nor checkpoints.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.metrics import REASONS, History, described
from pipelines.ingest.runs.records import RunRecords, RunRows, Tables, at_ms, keep_latest, saved_files
from pipelines.ingest.schema import moment_of

_STATUS = {"SUCCEEDED": "completed", "FAILED": "failed", "STOPPED": "killed"}


def read(source: RunSource) -> RunRecords:
    """Every job of the folder that started."""
    jobs: dict[str, Mapping[str, Any]] = {}
    rows = RunRows(source)
    for where, content, seen_at in saved_files(rows, ".json"):
        with rows.skipping(where, "save the answer of /api/jobs/ again"):
            for number, job in enumerate(parse_json(content), start=1):
                with rows.skipping(f"{where}, job {number}", "save the answer of /api/jobs/ again"):
                    # A job is in many answers; the last one has its end.
                    seen = {**job, "seen_at": seen_at}
                    keep_latest(jobs, job.get("submission_id") or job["job_id"], seen, _progress)
    for job_id, job in sorted(jobs.items()):
        where = f"[[runs]] {source.name}: Ray job {job_id}"
        with rows.skipping(where):
            run_id = rows.id_of(job.get("metadata") or {}, job_id)
            if job.get("start_time"):
                rows.add(run_id, where, _run, run_id, job, rows.warnings)
    return rows.records(f"{source.location} contains no job that started")


def _progress(job: Mapping[str, Any]) -> tuple[float, datetime]:
    return job.get("end_time") or 0, job["seen_at"]


def _run(run_id: str, job: Mapping[str, Any], warnings: list[str]) -> Tables:
    facts, resources = described(job.get("metadata") or {}, run_id, warnings)
    started_at, ended_at = moment_of(job["start_time"] / 1000), at_ms(job.get("end_time"))
    status = _STATUS.get(str(job.get("status")))
    tables = History([]).tables(started_at, ended_at, resources, REASONS[status])
    # A job without an end ran when its answer was saved.
    last_at = ended_at or max(started_at, job["seen_at"])
    tables["attempt"][-1]["last_seen_at"] = last_at
    run = {
        "source_system": "ray",
        "status": status,
        "started_at": started_at,
        "ended_at": ended_at,
        "last_seen_at": last_at,
    }
    return {"run": [facts | run], **tables}
