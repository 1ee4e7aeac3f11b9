"""What every kind of source of runs has in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.records import source

from pipelines.ingest.runs.tracker import read_runs, runs_fingerprint

Rows = list[dict[str, Any]]


@pytest.mark.parametrize("kind", ["kubernetes", "lightning", "mllog", "sagemaker", "slurm", "trainer_state", "wandb"])
def test_an_empty_folder_records_no_run_and_keeps_its_state(kind: str, tmp_path: Path) -> None:
    records = read_runs(source(kind, tmp_path))
    assert all(isinstance(table, pl.DataFrame) and table.is_empty() for table in records.tables.values())
    assert runs_fingerprint(source(kind, tmp_path)) == runs_fingerprint(source(kind, tmp_path))
