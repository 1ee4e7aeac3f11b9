"""A warehouse of small tables, in a folder or on S3: what a test commits to it and reads of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl

from pipelines.warehouse.lake import Lake
from support.lake_builds import MONTHLY, WHOLE, open_lake, seal, staged

TESTS = Path(__file__).resolve().parents[1]
RECORD = {"code_revision": "1", "inputs": {"deliveries": [], "tags": {}}, "tables": {}, "checks": []}


class Place:
    """A warehouse location, in a folder or on S3, and how other programs reach it."""

    def __init__(self, location: str, cache: Path, endpoint: str | None = None):
        self.location, self.cache, self.endpoint = location, cache, endpoint

    def lake(self, cache: str = "") -> Lake:
        return open_lake(self.location, self.cache / cache, self.endpoint)

    def table(self, table: str) -> tuple[str, dict[str, str] | None]:
        """Where an open-format reader finds a table; the options are the ones any client would give."""
        options = {"aws_endpoint_url": self.endpoint, "aws_allow_http": "true", "aws_region": "us-east-1"}
        return f"{self.location}/tables/{table}", options if self.endpoint else None

    def run(self, *arguments: object, moment: str = "") -> subprocess.Popen:
        words = [self.location, self.cache / "other", *arguments, moment, self.endpoint or ""]
        return subprocess.Popen(
            [sys.executable, "-m", "support.lake_builds", *map(str, words)],
            cwd=TESTS,
            env=os.environ | {"PYTHONPATH": str(TESTS.parent)},
            stdout=subprocess.PIPE,
            text=True,
        )


def commit(lake: Lake, tmp_path: Path, number: int, month: str | None, rows: int = 3) -> int:
    table = MONTHLY if month else WHOLE
    return lake.commit(table, [staged(tmp_path / "in", number, month, rows)], seal(table, month, number), month)


def builds(paths: list[Path]) -> list[int]:
    """The builds whose rows the files hold, in order, each once."""
    return pl.read_parquet(paths)["build"].unique().sort().to_list()


def actions(place: Place, table: str) -> list[list[dict]]:
    """What each version of a table's log does, by version."""
    logs = sorted((Path(place.location) / "tables" / table / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]
