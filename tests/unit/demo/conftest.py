"""The demo, generated once for all tests of this folder."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from support.demo_bill import Line, is_instance, read_events, read_month

from pipelines.demo.write import DemoData, write_demo


def write(folder: Path) -> None:
    (folder / "written.pickle").write_bytes(pickle.dumps(write_demo(folder / "demo")))


@pytest.fixture(scope="session")
def demo(once: Callable[[str, Callable[[Path], object]], Path]) -> DemoData:
    return pickle.loads((once("demo", write) / "written.pickle").read_bytes())


@pytest.fixture(scope="session")
def root(demo: DemoData) -> Path:
    return demo.config.parent


@pytest.fixture(scope="session")
def bill(root: Path, demo: DemoData) -> dict[str, list[Line]]:
    return {month: read_month(root, month) for month in demo.months}


@pytest.fixture(scope="session")
def events(demo: DemoData) -> list[dict]:
    return read_events(demo.events)


@pytest.fixture(scope="session")
def billed_seconds(bill: dict[str, list[Line]]) -> dict[str, dict[datetime, float]]:
    """Billed seconds of each instance by hour, all its lines together."""
    seconds: dict[str, dict[datetime, float]] = defaultdict(lambda: defaultdict(float))
    for line in (line for lines in bill.values() for line in lines if is_instance(line)):
        hour = line["line_item_usage_start_date"]
        seconds[line["line_item_resource_id"]][hour] += line["line_item_usage_amount"] * 3600
    return seconds
