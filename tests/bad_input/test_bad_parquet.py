"""Parquet bills with values no bill can hold, and damaged ones: reported by file, row and column, not by an engine."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.bills import ORDINARY_LINE
from support.cur_exports import parquet
from support.spoiled import COST_OF_THE_RUN, HOURS, MONTH, Ledger

BILL = r"export/data/BILLING_PERIOD=2026-07/\S+/export-00001\.csv\.gz"
LINES = [{**ORDINARY_LINE, "bill_billing_period_start_date": f"{MONTH}-01 00:00:00", **line} for line in HOURS]


def with_value(column: str, value: object, row: int = 3, **types: pa.DataType) -> bytes:
    """The six hours with a value in one row, the first being 1."""
    lines = [{**line, column: value if number == row else line.get(column)} for number, line in enumerate(LINES, 1)]
    return parquet(lines, types)


@pytest.mark.parametrize(
    "column", ["line_item_unblended_cost", "line_item_usage_amount", "savings_plan_used_commitment"]
)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e+300", "10000000000.0"])
def test_a_value_that_is_no_amount(ledger: Ledger, column: str, value: str) -> None:
    ledger.respoil(with_value(column, float(value), **{column: pa.float64()}))
    message = rf"{BILL}, row 3, column {column}: {re.escape(value)} is not a number below 10 billion; have the file"
    assert re.search(message, ledger.refused(3))


@pytest.mark.parametrize("kind", [pa.decimal128(38, 18), pa.int64(), pa.float32()])
def test_numbers_of_any_type_are_looked_at(ledger: Ledger, kind: pa.DataType) -> None:
    value = float(10**10) if pa.types.is_floating(kind) else 10**10
    column = "line_item_net_unblended_cost"
    lines = [{**line, column: Decimal(value) if pa.types.is_decimal(kind) else value} for line in LINES]
    ledger.respoil(parquet(lines, {column: kind}))
    assert re.search(rf"{BILL}, row 1, column {column}: 10000000000\S* is not a number", ledger.refused(3))


@pytest.mark.parametrize("value", ["nan", "1e300"])
def test_a_list_price_that_is_none_is_missing_and_reported(ledger: Ledger, value: str) -> None:
    """As in a csv: the hour has no list price, and costs what it cost."""
    ledger.respoil(with_value("pricing_public_on_demand_cost", float(value)))
    result = ledger.run("build")
    assert result.code == 0, result.err
    assert f"aws_cur_line_item {MONTH}" in result.err
    costs = ledger.run("query", "select cast(effective_cost_usd as varchar) from mart_run_cost", "--csv").out
    assert costs.splitlines()[1:] == [COST_OF_THE_RUN]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_a_time_no_calendar_has(ledger: Ledger, unit: str) -> None:
    """Year 10000 begins 253 402 300 800 seconds after 1970."""
    table = pq.read_table(pa.BufferReader(parquet(LINES)))
    name = "line_item_usage_start_date"
    steps = {"s": 1, "ms": 1000, "us": 1_000_000}[unit]
    column = pa.array([0, 253_402_300_800 * steps, *[0] * 4], pa.timestamp(unit, "UTC"))
    target = pa.BufferOutputStream()
    pq.write_table(table.set_column(table.schema.get_field_index(name), name, column), target)
    ledger.respoil(target.getvalue().to_pybytes())
    assert re.search(rf"{BILL}, row 2, column {name}: \S.* is not a time of the years 1 to 9999", ledger.refused(3))
