"""The same refusals through the real job: its steps add nothing to what is said, nor to the exit code."""

from __future__ import annotations

from support.spoiled import Ledger, run_events


def test_a_truncated_bill(dagster_ledger: Ledger) -> None:
    dagster_ledger.respoil(dagster_ledger.bill.read_bytes()[:-30])
    assert "export-00001.csv.gz is cut short or damaged" in dagster_ledger.refused(3)


def test_a_line_that_is_no_event(dagster_ledger: Ledger) -> None:
    dagster_ledger.record("{")
    assert "more.jsonl line 1 is not JSON" in dagster_ledger.refused(3)


def test_a_failed_check(dagster_ledger: Ledger) -> None:
    dagster_ledger.record(*run_events("other"))
    assert "runs hold more accelerators than the resource has" in dagster_ledger.refused(1)
