"""Texts of a csv bill into exact values. Expected numbers are rounded by hand, or by Python's decimal."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.billing import values


def number(text: str) -> Decimal | None:
    return values.numbers(pa.array([text]))[0].as_py()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("55.04", "55.04"),
        ("1.2E-7", "0.00000012"),
        ("1E+2", "100"),
        ("+1.5", "1.5"),
        ("-98.32", "-98.32"),
        # Half of the last place goes away from zero, on both sides.
        ("0.00000000005", "0.0000000001"),
        ("-0.00000000005", "-0.0000000001"),
        ("1.23456789015", "1.2345678902"),
        ("1.23456789025", "1.2345678903"),
        ("0.00000000004999999999999999", "0"),
        # A koku line: 17 places.
        ("0.00377554707705832", "0.0037755471"),
        ("9999999999.9999999999", "9999999999.9999999999"),
    ],
)
def test_numbers_are_exact_to_ten_places(text: str, expected: str) -> None:
    assert number(text) == Decimal(expected)


@pytest.mark.parametrize("text", ["abc", "1,5", "1_000", " 1.5", "nan", "inf", "0x1", "10000000000", "--1", "1e400"])
def test_what_is_no_number_is_null(text: str) -> None:
    assert values.numbers(pa.array(["1", None, text])).to_pylist() == [Decimal(1), None, None]


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=17))
def test_any_number_rounds_as_decimal_does(value: Decimal) -> None:
    with localcontext() as exact:
        exact.prec = 60
        expected = value.quantize(Decimal("1e-10"), ROUND_HALF_UP)
    assert number(str(value)) == expected
    assert number(f"{value:E}") == expected


def test_the_total_keeps_every_digit() -> None:
    texts = pa.array(["0.00377554707705832", "1E-17", None, "oops", "9999999999.99999999999999999"])
    expected = Decimal("0.00377554707705832") + Decimal("1E-17") + Decimal("9999999999.99999999999999999")
    assert values.total(texts) == expected
    assert values.total(pa.array([], pa.string())) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-01 00:00:00+00:00", datetime(2024, 2, 1)),
        ("2024-02-01T00:00:00Z", datetime(2024, 2, 1)),
        ("2026-07-01T00:00:00.000Z", datetime(2026, 7, 1)),
        ("2018-06-20 01:00:00", datetime(2018, 6, 20, 1)),
        ("2026-07-01T02:30:00+02:00", datetime(2026, 7, 1, 0, 30)),
        ("2026-07-01T00:00:00.123456Z", datetime(2026, 7, 1, 0, 0, 0, 123456)),
    ],
)
def test_times_are_naive_utc(text: str, expected: datetime) -> None:
    assert values.times(pa.array([text, None])).to_pylist() == [expected, None]


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "1719792000", "0001-01-01T00:00:00+14:00"])
def test_what_is_no_time_is_null(text: str) -> None:
    assert values.times(pa.array([None, text])).to_pylist() == [None, None]


def test_maps_are_json_objects() -> None:
    texts = pa.array(['{"user_run_id":"r-42","n":1,"empty":"","word":"None","gone":null}', "{}", None, "[1]", "{oops"])
    assert values.maps(texts).to_pylist() == [[("user_run_id", "r-42"), ("n", "1")], [], None, None, None]
