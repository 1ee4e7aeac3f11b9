"""The same refusals through the real job: its steps add nothing to what is said, nor to the exit code."""

from __future__ import annotations

from support.bills import write_export
from support.spoiled import HOURS, MONTH, Ledger, run_events


def test_a_truncated_bill(dagster_ledger: Ledger) -> None:
    dagster_ledger.respoil(dagster_ledger.bill.read_bytes()[:-30])
    assert "export-00001.csv.gz is cut short or damaged" in dagster_ledger.refused(3)


def test_a_month_that_two_sources_deliver_leaves_no_table(dagster_ledger: Ledger) -> None:
    """Nor do the steps that need no bill make any: reviewed lists, and tables of runs."""
    again = write_export(dagster_ledger.root, {MONTH: HOURS[:1]}, name="again", execution="20260802T000000Z-again")
    dagster_ledger.configure('location = "warehouse"', 'location = "fresh"')
    entry = f'\n[[billing]]\nname = "again"\nlocation = "{again}"\n'
    dagster_ledger.config.write_text(dagster_ledger.config.read_text() + entry)
    both = f"[[billing]] again and payer both deliver {MONTH} of account 000033334444 of payer 000011112222, so"
    assert dagster_ledger.refused(3).startswith(both)
    assert not (dagster_ledger.root / "fresh/tables").exists()


def test_a_line_that_is_no_event(dagster_ledger: Ledger) -> None:
    dagster_ledger.record("{")
    assert "more.jsonl line 1 is not JSON" in dagster_ledger.refused(3)


def test_a_failed_check(dagster_ledger: Ledger) -> None:
    dagster_ledger.record(*run_events("other"))
    assert "runs hold more accelerators than the resource has" in dagster_ledger.refused(1)
