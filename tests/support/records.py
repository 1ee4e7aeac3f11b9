"""Runs as a source records them, read from a folder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import RunRecords


def source(kind: str, location: Path | str, **more: Any) -> RunSource:
    return RunSource.model_validate({"name": "lab", "kind": kind, "location": str(location), **more})


def rows(records: RunRecords, table: str, *columns: str) -> list[tuple]:
    return records.tables[f"tracker_{table}"].select(columns).rows()


def at(clock: str) -> datetime:
    return datetime.fromisoformat(clock)
