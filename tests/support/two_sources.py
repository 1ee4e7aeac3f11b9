"""One run as its own processes record it, and the same as W&B shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipelines.config.sources import RunSource


def day(clock: str) -> str:
    return f"2026-07-01T{clock}Z"


def events(root: Path, name: str = "jobs", run_id: str = "r1", **started: Any) -> RunSource:
    """A run of two attempts on i-01, 10:00 to 11:00 and 12:00 to 13:00, as its own processes record it."""
    lines = [
        {"event": "run_started", "at": day("10:00:00"), "model": "llama", **started},
        {"event": "resource_joined", "at": day("10:00:00"), "resource": "i-01", "evidence": "imds"},
        {
            "event": "checkpoint_saved",
            "at": day("10:50:00"),
            "step": 100,
            "checkpoint_id": "a",
            "uri": "s3://b/r1/100/",
        },
        {"event": "resource_left", "at": day("11:00:00"), "resource": "i-01"},
        {"event": "attempt_ended", "at": day("11:00:00"), "reason": "spot_interruption"},
        {"event": "attempt_started", "at": day("12:00:00"), "attempt": 2},
        {"event": "resource_joined", "at": day("12:00:00"), "attempt": 2, "resource": "i-01", "evidence": "imds"},
        {"event": "resource_left", "at": day("13:00:00"), "attempt": 2, "resource": "i-01"},
        {"event": "run_ended", "at": day("13:00:00"), "status": "completed"},
    ]
    root.mkdir(parents=True, exist_ok=True)
    (root / "rank0.jsonl").write_text("\n".join(json.dumps({"run_id": run_id, "attempt": 1, **line}) for line in lines))
    return RunSource(name=name, location=str(root))


def wandb(root: Path, name: str = "wandb", **config: Any) -> RunSource:
    """The same run in W&B: no attempts, i-01 and i-02 from 09:59 to 13:01, a score at 12:30."""
    moment = 1782909000  # 2026-07-01T12:30:00Z
    document = {
        "id": "r1",
        "state": "finished",
        "created_at": day("09:59:00"),
        "heartbeatAt": day("13:01:00"),
        "config": {"model": "other", "dataset": "corp", "aws.resource_ids": "i-01,i-02", **config},
        "history": [{"_step": 200, "_timestamp": moment, "val_loss": 2.0}],
    }
    root.mkdir(parents=True, exist_ok=True)
    (root / "runs.jsonl").write_text(json.dumps(document))
    return RunSource(name=name, kind="wandb", location=str(root))
