"""A csv whose quotes are not closed: rows are refused by name, never taken into a value without a word."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from support.cur_exports import CUR2_LINE, bill, csv_text, cur2_export, packed, stored
from support.spoiled import Ledger

from pipelines.base.errors import SourceError

BILL = r"export-00001\.csv\.gz"


def rows(ledger: Ledger) -> list[str]:
    return gzip.decompress(ledger.bill.read_bytes()).decode().splitlines()


def quoted(row: str, field: int) -> str:
    """The row with a stray quote before one field."""
    fields = row.split(",")
    fields[field] = '"' + fields[field]
    return ",".join(fields)


def test_an_unclosed_quote_in_the_last_field_takes_in_no_rows(ledger: Ledger) -> None:
    lines = rows(ledger)
    lines[3] = quoted(lines[3], -1)
    ledger.respoil(packed("\n".join([*lines, ""]).encode()))
    column = lines[0].split(",")[-1]
    message = (
        rf"{BILL}, row 4 \(the header is row 1\), column {column}: a quote is not closed and swallows the rows after"
    )
    assert re.search(message, ledger.refused(3))


@pytest.mark.parametrize("apart", [1, 2])
def test_stray_quotes_in_two_rows_make_no_single_value(ledger: Ledger, apart: int) -> None:
    """In a column that is not read: the rest of one row, rows between and the start of another would be its value."""
    lines = rows(ledger)
    field = lines[0].split(",").index("bill_payer_account_name")
    for at in (2, 2 + apart):
        lines[at] = quoted(lines[at], field)
    ledger.respoil(packed("\n".join([*lines, ""]).encode()))
    assert re.search(rf"{BILL}, row 3 \S.*, column bill_payer_account_name: a quote is not closed", ledger.refused(3))


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_quote_that_the_end_of_the_file_leaves_open(ledger: Ledger, end: str) -> None:
    lines = rows(ledger)
    lines[-1] = quoted(lines[-1], -1)
    ledger.respoil(packed(("\n".join(lines) + end).encode()))
    assert re.search(rf"{BILL}, row 7 \S.*: a quote is not closed", ledger.refused(3))


LINES = [
    {**CUR2_LINE, "line_item_line_item_description": text, "note": text} for text in ("a\nb, c\r\n", 'x "y"\n', "z")
]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_text_may_break_its_lines(tmp_path: Path, end: str) -> None:
    """A description of several lines, line ends of Windows and blank lines are no fault: three lines of 55.04."""
    text = csv_text(LINES).replace(b"z\n", b"z" + end.encode())
    raws = stored(cur2_export(tmp_path, {"ml-cur2-00001.csv.gz": packed(text)}), tmp_path / "raw")
    assert bill(raws, "select count(*), cast(sum(line_item_unblended_cost) as varchar) from aws_cur_line_item") == [
        (3, "165.1200000000")
    ]


def test_rows_beyond_the_first_block_are_named_too(tmp_path: Path) -> None:
    """40 thousand lines are several blocks; the fault is in row 30 001."""
    header, line = csv_text([CUR2_LINE]).decode().splitlines()
    lines = [line] * 40_000
    lines[29_999] = quoted(line, -1)
    root = cur2_export(tmp_path, {"ml-cur2-00001.csv.gz": packed("\n".join([header, *lines, ""]).encode())})
    with pytest.raises(SourceError, match=r", row 30001 \(the header is row 1\), column "):
        stored(root, tmp_path / "raw")
