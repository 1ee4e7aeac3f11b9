"""One dialect, one meaning: what a SELECT means, every engine gives; expected values are DuckDB's documented ones."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from pipelines.base.errors import EngineError
from pipelines.engine import Engine


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        # Text of a double: the shortest digits, an exponent below 1e-4 and from 1e16 on.
        ("cast(value as varchar)", "double", {
            2.05: "2.05", 1.0: "1.0", -3.0: "-3.0", 0.0005: "0.0005", 0.00015: "0.00015", 1e-05: "1e-05",
            -1.5e-07: "-1.5e-07", 12345678.5: "12345678.5", 1e15: "1000000000000000.0",
            1e16: "1e+16", 2e16: "2e+16", 1e100: "1e+100",
        }),
        # Halves away from zero, by the double's value times the power of ten.
        ("cast(value as decimal(20, 10))", "double", {
            1.25e-9: Decimal("1.3E-9"), -1.25e-9: Decimal("-1.3E-9"), 0.12345678905: Decimal("0.1234567891"),
            0.00000000005: Decimal("1E-10"), 912345.67890123456: Decimal("912345.6789012346"),
        }),
        ("try_cast(value as decimal(20, 10))", "double", {
            912345.67890123456: Decimal("912345.6789012346"), 0.12345678905: Decimal("0.1234567891"), 1e30: None,
        }),
        ("cast(value as bigint)", "double", {0.5: 0, 1.5: 2, 2.5: 2, -0.5: 0, 1e15: 10**15}),
        ("cast(value as bigint)", "decimal(20, 10)", {0.5: 1, 1.5: 2, 2.5: 3, -2.5: -3}),
        ("value / 3", "decimal(20, 10)", {1: 1 / 3, 2: 2 / 3}),
        ("value / 2", "bigint", {3: 1.5}),
        ("value // 2", "bigint", {7: 3, 9_007_199_254_740_993: 4_503_599_627_370_496}),
        # Money keeps every digit in a product.
        ("cast(value as decimal(38, 10)) * 7", "decimal(20, 10)", {9.87: Decimal("69.09"), 0.1: Decimal("0.7")}),
    ],
    ids=["double as text", "double as decimal", "double tried as decimal", "double as integer", "decimal as integer",
         "decimal quotient", "integer quotient", "whole quotient", "decimal product"],
)  # fmt: skip
def test_numbers_convert_alike(engine: Engine, column: str, kind: str, expected: dict) -> None:
    values = ", ".join(f"(cast('{value!r}' as {kind}), {place})" for place, value in enumerate(expected))
    rows = engine.query(f"select {column} as value from (values {values}) as given(value, place) order by place")
    assert rows["value"].to_list() == list(expected.values())


def test_expressions_mean_the_same(engine: Engine) -> None:
    expected = {
        "try_cast('none' as decimal(20, 10))": None,
        "try_cast('1.5' as decimal(20, 10))": Decimal("1.5"),
        # Borders crossed, not whole units passed.
        "date_diff('second', timestamp '2026-07-01 00:00:10.9', timestamp '2026-07-01 00:00:12')": 2,
        "date_diff('millisecond', timestamp '1970-01-01 00:00:00', timestamp '2026-07-01 00:00:00.123')": 1782864000123,
        "date_diff('day', timestamp '2026-07-01 23:59:59', timestamp '2026-07-02 00:00:00')": 1,
        "cast(timestamp '2026-07-01 23:59:59' as date)": date(2026, 7, 1),
        "cast('2026-07' || '-01' as timestamp)": datetime(2026, 7, 1),
        "regexp_extract('USW2-BoxUsage:p5.48xlarge', '(^|-)([A-Za-z]+):', 2)": "BoxUsage",
        "regexp_extract('no match', ':([a-z]+)$', 1)": "",
        r"regexp_matches('ml.p5', '^(ml\.)?p[0-9]')": True,
        r"regexp_matches('mlxp5', '^(ml\.)?p[0-9]')": False,
        "regexp_matches('AWS-Out-Bytes', 'AWS-(In|Out)-Bytes')": True,
        "replace('ml.p5', 'ml.', '')": "p5",
        "right('part-1.parquet', 9)": "1.parquet",
        "'50% off' like '50%off'": True,
        "greatest(null, 1, 2)": 2,
        "least(3, null, 2)": 2,
        "null is distinct from 1": True,
        "1 is not distinct from null": False,
        "nullif('', '')": None,
        "floor(-1.5)": -2,
        "round(2.5)": 3,
        "'it''s'": "it's",
        "map(['a'], [1])['a']": 1,
        "map(['a'], [1])['b']": None,
        "coalesce(null > 1, false)": False,
    }
    select = ", ".join(f"{text} as c{n}" for n, text in enumerate(expected))
    found = engine.query(f"select {select}").row(0)
    assert dict(zip(expected, found, strict=True)) == expected


def test_rows_group_and_join_the_same(engine: Engine) -> None:
    engine.view_sql("entry", """
        select * from (values
            ('a', 1, cast(0.1 as decimal(20, 10)), 'x'), ('a', 2, 0.2, null),
            ('b', 3, null, 'y'), (null, 4, 9999999999.9, 'z')
        ) as given(name, place, cost, reason)
    """)  # fmt: skip
    grouped = """
        select name, count(*) as row_count, sum(cost) as cost, sum(cost) filter (where place > 1) as later_cost,
            avg(cost) as mean, max_by(reason, place) as last_reason
        from entry group by all order by name
    """
    assert engine.query(grouped).rows() == [
        # A row without a reason cannot be the last one with a reason.
        ("a", 2, Decimal("0.3"), Decimal("0.2"), pytest.approx(0.15), "x"),
        ("b", 1, None, None, None, "y"),
        (None, 1, Decimal("9999999999.9"), Decimal("9999999999.9"), 9999999999.9, "z"),
    ]
    descending = "select place from entry order by cost desc"
    assert engine.query(descending)["place"].to_list() == [4, 2, 1, 3]
    anti = "select place from entry anti join (select 'a' as name) as known on known.name = entry.name order by place"
    assert engine.query(anti)["place"].to_list() == [3, 4]
    full = """
        select entry.place, other.n from entry full join (values (4), (5)) as other(n) on other.n = entry.place
        where entry.place > 3 or entry.place is null order by other.n
    """
    assert engine.query(full).rows() == [(4, 4), (None, 5)]
    running = """
        select place, sum(place) over (order by place rows between unbounded preceding and current row) as upto,
            lag(place) over (order by name, place) as before
        from entry order by place
    """
    assert engine.query(running).rows() == [(1, 1, None), (2, 3, 1), (3, 6, 2), (4, 10, 3)]


def test_dividing_by_zero_is_never_silent_money(engine: Engine) -> None:
    """DuckDB gives infinity and Spark an error; what neither may give is a number."""
    try:
        found = engine.query("select 1 / 0 as value")["value"][0]
    except EngineError:
        return
    assert found == float("inf")
