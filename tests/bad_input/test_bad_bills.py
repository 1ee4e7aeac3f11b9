"""Bills that are not what they claim to be: one sentence with file, row and fix; the last publication stays."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from decimal import Decimal

import pytest
from support.bills import instance_hour
from support.cur_exports import CUR2_LINE, parquet
from support.spoiled import HOURS, MONTH, Ledger

# Each builds a ledger, often more than once.
pytestmark = pytest.mark.slow
BILL = r"export/data/BILLING_PERIOD=2026-07/\S+/export-00001\.csv\.gz"
MANIFEST = r"export/metadata/BILLING_PERIOD=2026-07/export-Manifest\.json"
LINE = HOURS[0]


def text_of(ledger: Ledger) -> str:
    return gzip.decompress(ledger.bill.read_bytes()).decode()


def packed(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


def with_row(ledger: Ledger, number: int, change: Callable[[str], str]) -> bytes:
    """The file with row `number` (the header is 1) changed."""
    rows = text_of(ledger).splitlines()
    rows[number - 1] = change(rows[number - 1])
    return packed("\n".join(rows) + "\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(lambda x: x.bill.read_bytes()[:-30], rf"{BILL} is cut short or damaged", id="truncated"),
        pytest.param(lambda x: b"", rf"{BILL} is empty; have it delivered again", id="empty"),
        pytest.param(lambda x: packed(""), rf"{BILL} is empty, without even a header", id="empty inside"),
        pytest.param(lambda x: b"hello", rf"{BILL} has no column bill_payer_account_id", id="something else"),
        pytest.param(lambda x: b"PAR1 and no more", rf"{BILL} is not a complete Parquet file", id="truncated Parquet"),
        *(
            pytest.param(
                lambda x, code=code: gzip.compress(text_of(x).encode(code)), rf"{BILL} is UTF-16 text", id=code
            )
            for code in ("utf-16", "utf-16-le", "utf-16-be")
        ),
        *(
            pytest.param(
                lambda x, sign=sign: packed(text_of(x).replace(",", sign)),
                rf"{BILL} separates its columns by {name} where a bill does by commas",
                id=name,
            )
            for sign, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"))
        ),
        pytest.param(
            lambda x: packed(text_of(x).replace("line_item_unblended_cost", "cost")),
            rf"{BILL} has no column line_item_unblended_cost",
            id="without the cost",
        ),
        pytest.param(
            lambda x: with_row(x, 3, lambda row: row + ",one more"),
            rf"{BILL}, row 3 \(the header is row 1\): \d+ values under \d+ columns",
            id="ragged",
        ),
    ],
)
def test_a_file_that_is_no_bill(ledger: Ledger, content: Callable[[Ledger], bytes], message: str) -> None:
    ledger.respoil(content(ledger))
    assert re.search(message, ledger.refused(3))


@pytest.mark.parametrize(
    ("column", "value", "wanted"),
    [
        ("line_item_unblended_cost", "55,04", "number below 10 billion"),
        ("line_item_unblended_cost", "NaN", "number below 10 billion"),
        ("line_item_unblended_cost", "1e30", "number below 10 billion"),
        ("line_item_usage_amount", "an hour", "number below 10 billion"),
        ("line_item_usage_start_date", "yesterday", "ISO timestamp"),
    ],
)
def test_a_value_of_the_wrong_type(ledger: Ledger, column: str, value: str, wanted: str) -> None:
    ledger.restate(LINE, {**HOURS[1], column: value})
    error = ledger.refused(3)
    assert re.search(
        BILL + rf", row 3 \(the header is row 1\), column {column}: '{value}' is not an? {wanted}; fix that value",
        error,
    )


def test_a_parquet_column_of_the_wrong_type(ledger: Ledger) -> None:
    import pyarrow as pa

    ledger.respoil(parquet([{**CUR2_LINE, "line_item_unblended_cost": True}], {"line_item_unblended_cost": pa.bool_()}))
    error = ledger.refused(3)
    assert re.search(BILL, error)
    assert "line_item_unblended_cost" in error and "bool" in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"dataFiles": [', "is not JSON"),
        ("", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"executionId": "x"}', "has no list dataFiles or reportKeys"),
        ('{"executionId": "x", "dataFiles": "all"}', "has no list dataFiles or reportKeys"),
        ('{"executionId": "x", "dataFiles": ["s3://b/export/../../../etc/passwd"]}', "is not a plain path"),
        ('{"executionId": "x", "dataFiles": ["file:///etc/passwd"]}', "is not an S3 address"),
        ('{"dataFiles": []}', "neither executionId nor assemblyId"),
    ],
)
def test_a_manifest_that_is_none(ledger: Ledger, text: str, message: str) -> None:
    ledger.manifest.write_text(text)
    assert re.search(rf"{MANIFEST}.* {message}", ledger.refused(3))


def test_a_manifest_names_a_file_that_is_not_there(ledger: Ledger) -> None:
    ledger.respoil(ledger.bill.read_bytes())
    ledger.bill.unlink()
    assert re.search(rf"{MANIFEST} names \S+/{BILL}, which is not there; wait", ledger.refused(3))


def test_an_export_without_manifests(ledger: Ledger) -> None:
    ledger.manifest.unlink()
    assert "export holds no billing manifest; point location at" in ledger.refused(3)


def test_two_exports_in_one_folder(ledger: Ledger) -> None:
    other = ledger.manifest.with_name("other-Manifest.json")
    other.write_text(json.dumps({"executionId": "x", "dataFiles": []}))
    assert re.search(r"export holds 2 exports \(export, other\); give each its own", ledger.refused(3))


def test_an_export_that_is_gone(ledger: Ledger) -> None:
    ledger.configure('"export"', '"exports"')
    reason = r"exports cannot be listed: No such file or directory; check `location` of \[\[billing\]\] payer\."
    assert re.search(reason, ledger.refused(3))


def test_a_run_billed_in_two_currencies(ledger: Ledger) -> None:
    """The run's two hours, one in dollars and one in krone: no number is their sum. The others are published."""
    ledger.restate(LINE, {**HOURS[1], "line_item_currency_code": "NOK"}, *HOURS[2:])
    built = ledger.run("build")
    assert built.code == 0
    assert "run billed in two currencies has no cost: 1 row of fct_run_cost" in built.err
    assert "run good, billed amounts NOK 55.04 and USD 55.04" in built.err


def test_a_month_in_two_currencies_is_kept_apart_and_reported(ledger: Ledger) -> None:
    """Six hours in dollars, one more in krone: two rows of the reconciliation, each tied, and a warning by name."""
    ledger.restate(*HOURS, {**LINE, "line_item_resource_id": "i-2", "line_item_currency_code": "NOK"})
    result = ledger.run("build")
    assert result.code == 0
    assert "Warning: month of a payer in several currencies kept apart: 2 rows of stg_aws__invoice_total" in result.err
    sql = (
        "select currency, cast(billed_cost_usd as varchar), cast(difference_usd as decimal(10, 2)), status "
        "from mart_invoice_reconciliation_monthly order by 1"
    )
    answer = ledger.run("query", sql, "--csv")
    # 55.04, and six times 55.04.
    assert answer.out.splitlines()[1:] == ["NOK,55.0400000000,0.00,reconciled", "USD,330.2400000000,0.00,reconciled"]


@pytest.mark.parametrize("resource", ["i-9", ""])
def test_an_accelerator_that_no_list_has(ledger: Ledger, resource: str) -> None:
    """Whether or not the bill names the resource, its dollars are published as family unknown with a warning."""
    ledger.restate(*HOURS, instance_hour(f"{MONTH}-01T00", resource, "p99.48xlarge", "99"))
    result = ledger.run("build")
    assert result.code == 0, result.err
    assert "accelerator type missing from ref instance type" in result.err
    assert "effective cost $99.00, instance type p99.48xlarge" in result.err
    sql = "select sum(effective_cost_usd) as usd from mart_cost_ledger_daily where accelerator_family = 'unknown'"
    assert json.loads(ledger.run("query", sql, "--json").out) == [{"usd": "99.0000000000"}]


def test_a_line_of_next_to_no_time_is_no_reason_to_stop(ledger: Ledger) -> None:
    """A charge without a millisecond of use cannot be shared out; it is kept whole, and no run explains it."""
    ledger.restate(*HOURS, {**LINE, "line_item_resource_id": "i-2", "line_item_usage_amount": "0.0000001"})
    assert ledger.run("build").code == 0
    answer = ledger.run("query", "select resource_id, effective_cost_usd from mart_unattributed_cost_daily", "--csv")
    rows = list(csv.reader(io.StringIO(answer.out)))[1:]
    assert [(resource, Decimal(cost)) for resource, cost in rows] == [("i-2", Decimal("55.04"))]


@pytest.mark.parametrize(
    ("column", "value", "hours", "is_second"),
    [
        # The hour is 2 or a billion hours long: its run would keep half of it, or nothing, and idle the rest.
        ("line_item_usage_amount", "2", "2", False),
        ("line_item_usage_amount", "1e9", "1,000,000,000", False),
        # A second line of the same machine and hour, of another type: two hours.
        ("product_instance_type", "trn1.32xlarge", "2", True),
    ],
)
def test_a_closed_bill_with_more_of_an_instance_than_the_hour(
    ledger: Ledger, column: str, value: str, hours: str, is_second: bool
) -> None:
    """A machine fills an hour once; the first line below the header is row 0 (expectations/columns)."""
    spoiled = {**LINE, column: value}
    ledger.restate(*((*HOURS, spoiled) if is_second else (spoiled, *HOURS[1:])))
    error = ledger.refused(1)
    assert "fct_resource_hourly 2026-07: an instance is billed for more than the hour fails for" in error
    assert re.search(r"source file data/\S+/export-00001\.csv\.gz, source row 0,", error)
    assert "resource i-1" in error and "hour started at 2026-07-01" in error
    assert re.search(rf"billed hours {hours}(\.0+)?[,;]", error)
    assert "effective cost $55.04" in error


def test_an_open_bill_with_more_of_an_instance_than_the_hour_is_reported(ledger: Ledger) -> None:
    ledger.restate({**LINE, "line_item_usage_amount": "2", "bill_invoice_id": ""}, *HOURS[1:])
    result = ledger.run("build")
    assert result.code == 0, result.err
    assert "an open bill has more than an hour of an instance: 1 row" in result.err


def test_an_instance_of_two_types_is_reported(ledger: Ledger) -> None:
    """Its first hour has trn1, 16 accelerators, the others p5 with 8; the six hours cost 6 x 55.04 = 330.24."""
    ledger.restate({**LINE, "product_instance_type": "trn1.32xlarge"}, *HOURS[1:])
    result = ledger.run("build")
    assert result.code == 0, result.err
    assert re.search(r"Warning: an instance has two types: 1 row .*\$330\.24.*p5\.48xlarge.*trn1\.32xlarge", result.err)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"line_item_usage_amount": ""},
        {"line_item_usage_amount": "0"},
        {"line_item_usage_amount": "-1"},
        {"line_item_usage_end_date": ""},
        {"line_item_usage_end_date": "2020-01-01T00:00:00Z"},
    ],
)
def test_accelerator_lines_without_a_time_are_reported(ledger: Ledger, spoiled: dict[str, str]) -> None:
    """When the machine was used is unknown: its 55.04 explain no run, and are reported as count and dollars."""
    ledger.restate({**LINE, **spoiled}, *HOURS[1:])
    result = ledger.run("build")
    assert result.code == 0, result.err
    assert re.search(
        r"without hours or an end stays unattributed: 1 row .*timeless cost \$55\.04, .*line count 1\.", result.err
    )
    answer = ledger.run("query", "select sum(effective_cost_usd) from mart_unattributed_cost_daily", "--csv")
    assert Decimal(answer.out.splitlines()[1]) == Decimal("55.04")


def charge(kind: str, cost: str, **more: str) -> dict[str, str]:
    """A line that runs nothing, in the hour of LINE."""
    return {**LINE, **{"line_item_line_item_type": kind, "line_item_unblended_cost": cost, **more}}
