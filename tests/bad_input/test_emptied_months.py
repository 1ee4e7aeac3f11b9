"""Deliveries without a line: a month that had some is not erased by one, a month that never had any is reported."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil

import pyarrow.parquet as pq
import pytest
from support.bills import write_export
from support.cur_exports import CUR2_LINE, packed, parquet
from support.spoiled import COST_OF_THE_RUN, HOURS, MONTH, Ledger

# Each builds a ledger, often more than once.
pytestmark = pytest.mark.slow

MANIFEST = r"export/metadata/BILLING_PERIOD=2026-07/export-Manifest\.json"


def name_no_files(ledger: Ledger) -> None:
    ledger.manifest.write_text(json.dumps(json.loads(ledger.manifest.read_text()) | {"dataFiles": []}))


def refusal_for(fault: str) -> str:
    """Six hours at 55.04 an hour were published: 330.24."""
    fix = r'have the month delivered again, or add empty_months = \["2026-07"\] to its \[\[billing\]\] entry'
    return rf"{MANIFEST} {fault}, yet {MONTH} was published with 6 lines of 330\.24 USD in all; {fix}"


def test_a_manifest_without_files_does_not_erase_a_month(ledger: Ledger) -> None:
    """Its six hours were delivered before; they stay published."""
    name_no_files(ledger)
    assert re.search(refusal_for("names no file"), ledger.refused(3))
    # Nor does it where the stored lines were lost meanwhile, as on another machine.
    shutil.rmtree(ledger.root / "warehouse/raw")
    assert re.search(refusal_for("names no file"), ledger.refused(3))


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_file_with_a_header_alone_does_not_erase_a_month(ledger: Ledger, end: str) -> None:
    header = gzip.decompress(ledger.bill.read_bytes()).decode().splitlines()[0]
    ledger.respoil(packed((header + end).encode()))
    assert re.search(refusal_for("contains no line"), ledger.refused(3))


def test_parquet_without_a_row_does_not_erase_a_month(ledger: Ledger) -> None:
    table = pq.read_table(io.BytesIO(parquet([HOURS[0] | CUR2_LINE])))
    out = io.BytesIO()
    pq.write_table(table.schema.empty_table(), out)
    ledger.respoil(out.getvalue())
    assert re.search(refusal_for("contains no line"), ledger.refused(3))


def test_a_month_that_really_is_empty_takes_everything_back(ledger: Ledger) -> None:
    """`empty_months` lets the delivery in: it is reported, and in mart_restatement 6 lines and 6 x 55.04 less."""
    name_no_files(ledger)
    manifest = json.loads(ledger.manifest.read_text())
    ledger.manifest.write_text(json.dumps(manifest | {"executionId": "nothing"}))
    ledger.configure('name = "payer"\n', f'name = "payer"\nempty_months = ["{MONTH}"]\n')
    result = ledger.run("build")
    assert result.code == 0 and f"aws_cur_line_item {MONTH}" in result.err, result.err
    expected = [
        "1,first,6,,330.2400000000,",
        "2,nothing,0,-6,0.0000000000,-330.2400000000",
    ]
    assert restatements(ledger) == expected
    # Building once more, here for other runs, reports it no second time.
    ledger.record({"event": "run_started", "run_id": "other", "at": f"{MONTH}-02T00:00:00Z"})
    assert ledger.run("build").code == 0
    assert restatements(ledger) == expected
    # The lines come back: the third delivery brings what the second took.
    ledger.restate(*HOURS)
    assert ledger.run("build").code == 0
    assert restatements(ledger) == [*expected, "3,second,6,6,330.2400000000,330.2400000000"]


def test_an_account_that_a_delivery_leaves_out_has_its_row(ledger: Ledger) -> None:
    """Two payers in one export; the next delivery knows one of them alone: the other's 55.04 are reported as gone."""
    other = {**HOURS[0], "bill_payer_account_id": "999900001111", "line_item_resource_id": "i-2"}
    ledger.restate(*HOURS, other)
    assert ledger.run("build").code == 0
    write_export(ledger.root, {MONTH: HOURS}, execution="20260803T000000Z-third")
    assert ledger.run("build").code == 0
    assert restatements(ledger, "999900001111") == [
        "1,second,1,,55.0400000000,",
        "2,third,0,-1,0.0000000000,-55.0400000000",
    ]


def restatements(ledger: Ledger, payer: str = "000011112222") -> list[str]:
    columns = "delivery_no, delivery_id, line_count, line_count_change, billed_cost_usd, billed_change_usd"
    sql = f"select {columns} from mart_restatement where payer_account_id = '{payer}' order by delivery_no"
    return ledger.run("query", sql, "--csv").out.splitlines()[1:]


def test_a_month_that_never_had_a_line_is_reported_by_name(ledger: Ledger) -> None:
    """The month to come has a manifest already; July costs what it did."""
    write_export(ledger.root, {"2026-08": []})
    result = ledger.run("build")
    assert result.code == 0, result.err
    assert "aws_cur_line_item 2026-08" in result.err
    costs = ledger.run("query", "select cast(effective_cost_usd as varchar) from mart_run_cost", "--csv").out
    assert costs.splitlines()[1:] == [COST_OF_THE_RUN]
