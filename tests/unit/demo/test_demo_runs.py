"""The demo's events speak the language of the product's own reader."""

from __future__ import annotations

from pipelines.config.sources import RunSource
from pipelines.demo.write import DemoData
from pipelines.ingest.runs.tracker import read_runs


def test_every_run_of_the_demo_is_read_without_a_warning(demo: DemoData, events: list[dict]) -> None:
    records = read_runs(RunSource(name="jobs", location=str(demo.events)))
    assert records.warnings == []
    run_ids = {line["run_id"] for line in events}
    assert set(records.tables["tracker_run"]["run_id"]) == run_ids
    attempts = {(line["run_id"], line["attempt"]) for line in events if "attempt" in line}
    assert set(records.tables["tracker_attempt"].select("run_id", "attempt_no").rows()) == attempts
