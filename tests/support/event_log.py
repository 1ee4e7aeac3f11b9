"""Runs as their events record them, written to a folder and read from it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import RunRecords
from pipelines.ingest.runs.tracker import read_runs

# The ten lines of design.md section 2, word for word.
DESIGN = """\
{"event":"run_started","run_id":"llama8b-42","at":"2026-07-01T10:02:11Z","model":"llama-3.1-8b","dataset":"corp-v3",\
"dataset_tokens":9.1e9,"seq_len":8192,"global_batch_samples":256,"target_metric":"eval_loss","target_value":2.05,\
"target_direction":"min","purpose":"finetune","team":"nlp"}
{"event":"attempt_started","run_id":"llama8b-42","attempt":1,"at":"2026-07-01T10:02:11Z"}
{"event":"resource_joined","run_id":"llama8b-42","attempt":1,"at":"2026-07-01T10:02:30Z","resource":"i-0abc",\
"instance_type":"trn1.32xlarge","account_id":"111122223333","region":"us-west-2","accelerators_used":16}
{"event":"phase_started","run_id":"llama8b-42","attempt":1,"phase":"compile","at":"2026-07-01T10:03:00Z"}
{"event":"epoch_completed","run_id":"llama8b-42","attempt":1,"epoch":1,"at":"2026-07-01T12:40:03Z","step":1200,\
"tokens_seen":2.5e9}
{"event":"checkpoint_saved","run_id":"llama8b-42","attempt":1,"at":"2026-07-01T12:41:40Z","step":1200,"uri":"s3://...",\
"bytes":98304000000,"stall_seconds":41.0,"resumable":true}
{"event":"evaluation","run_id":"llama8b-42","attempt":1,"at":"2026-07-01T12:44:00Z","step":1200,"metric":"eval_loss",\
"value":2.11}
{"event":"resource_left","run_id":"llama8b-42","attempt":1,"at":"2026-07-01T15:10:00Z","resource":"i-0abc"}
{"event":"attempt_ended","run_id":"llama8b-42","attempt":1,"at":"2026-07-01T15:10:00Z","reason":"completed"}
{"event":"run_ended","run_id":"llama8b-42","at":"2026-07-01T15:10:05Z","status":"completed"}
"""


def source(folder: Path, name: str = "jobs", **options: Any) -> RunSource:
    return RunSource(name=name, location=str(folder), **options)


def event(kind: str, clock: str, /, **fields: Any) -> dict[str, Any]:
    return {"event": kind, "run_id": "r", "at": f"2026-07-01T{clock}Z", **fields}


def text(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in events)


def read(folder: Path, *files: str | bytes) -> RunRecords:
    for number, content in enumerate(files):
        path = folder / "runs" / f"deep-{number}" / "rank.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "runs").mkdir(exist_ok=True)
    return read_runs(source(folder / "runs"))


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-07-01T{clock}")
