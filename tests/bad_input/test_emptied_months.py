"""Deliveries without a line: a month that had some is not erased by one, a month that never had any is told."""

from __future__ import annotations

import gzip
import json
import re
import shutil

import pytest
from support.bills import write_export
from support.cur_exports import packed
from support.spoiled import COST_OF_THE_RUN, MONTH, Ledger

MANIFEST = r"export/metadata/BILLING_PERIOD=2026-07/export-Manifest\.json"


def name_no_files(ledger: Ledger) -> None:
    ledger.manifest.write_text(json.dumps(json.loads(ledger.manifest.read_text()) | {"dataFiles": []}))


def test_a_manifest_without_files_does_not_erase_a_month(ledger: Ledger) -> None:
    """Its six hours were delivered before; they stay published."""
    name_no_files(ledger)
    assert re.search(
        rf"{MANIFEST} names no file, yet delivery \S+ of {MONTH} had 6 lines; have the month delivered again",
        ledger.refused(3),
    )


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_file_with_a_header_alone_does_not_erase_a_month(ledger: Ledger, end: str) -> None:
    header = gzip.decompress(ledger.bill.read_bytes()).decode().splitlines()[0]
    ledger.respoil(packed((header + end).encode()))
    assert re.search(rf"{MANIFEST} holds no line, yet delivery \S+ of {MONTH} had 6 lines", ledger.refused(3))


def test_the_mend_of_a_month_that_really_is_empty(ledger: Ledger) -> None:
    """Deleting the folder the sentence names lets the empty delivery in, which is told."""
    name_no_files(ledger)
    folder = re.search(r"or delete (\S+) if it", ledger.refused(3))
    assert folder
    shutil.rmtree(folder[1])
    said = ledger.say("build")
    assert said.code == 0 and f"raw/aws_cur_line_item {MONTH}" in said.err


def test_a_month_that_never_had_a_line_is_told_by_name(ledger: Ledger) -> None:
    """The month to come has a manifest already; July costs what it did."""
    write_export(ledger.root, {"2026-08": []})
    said = ledger.say("build")
    assert said.code == 0, said.err
    assert "raw/aws_cur_line_item 2026-08" in said.err
    costs = ledger.say("query", "select cast(effective_cost_usd as varchar) from mart_run_cost", "--csv").out
    assert costs.splitlines()[1:] == [COST_OF_THE_RUN]
