"""What every engine promises, one body for all of them; expected values are DuckDB's documented ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine import Engine, open_engine
from pipelines.errors import EngineError
from pipelines.settings import Warehouse

Opener = Callable[[], Engine]


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def opened(request: pytest.FixtureRequest) -> Opener:
    return lambda: open_engine(Warehouse(engine=request.param))


@pytest.fixture
def engine(opened: Opener) -> Iterator[Engine]:
    with opened() as engine:
        yield engine


@pytest.fixture
def two_files(tmp_path: Path) -> list[Path]:
    """Three rows in two files, below a folder that looks like a partition and a pattern to some readers."""
    folder = tmp_path / "a b{c}=é%41+d" / "billing_period=2026-07"
    folder.mkdir(parents=True)
    files = [folder / "1.parquet", folder / "2.parquet"]
    # A time of milliseconds, as Polars frames of run events have it.
    schema = {"id": pl.Int64, "at": pl.Datetime("ms"), "cost": pl.Decimal(20, 10), "name": pl.String}
    first = [(1, datetime(2026, 7, 1, 12, 0, 0, 250_000), Decimal("0.0000000001"), "x"), (2, None, None, None)]
    pl.DataFrame(first, schema, orient="row").write_parquet(files[0])
    second = [(3, datetime(2026, 7, 2), Decimal("9999999999.9999999999"), "y")]
    pl.DataFrame(second, schema, orient="row").write_parquet(files[1])
    return files


def test_a_view_is_the_rows_of_its_files_and_of_no_folder(engine: Engine, two_files: list[Path]) -> None:
    engine.view("charge", two_files)
    rows = engine.query("select * from charge order by id")
    assert rows.columns == ["id", "at", "cost", "name"]
    assert rows["id"].to_list() == [1, 2, 3]
    assert rows["cost"].to_list() == [Decimal("0.0000000001"), None, Decimal("9999999999.9999999999")]
    assert rows["at"][0] == datetime(2026, 7, 1, 12, 0, 0, 250_000)


def test_a_scan_tells_the_file_and_place_of_each_row(engine: Engine, two_files: list[Path]) -> None:
    engine.scan_files("charge", two_files)
    rows = engine.query("select id, filename, file_row_number from charge order by id")
    assert rows.rows() == [(1, str(two_files[0]), 0), (2, str(two_files[0]), 1), (3, str(two_files[1]), 0)]
    assert rows.schema["file_row_number"] == pl.Int64


def test_instants_are_read_as_naive_utc(engine: Engine, tmp_path: Path) -> None:
    noon = datetime(2026, 7, 1, 12)
    pq.write_table(pa.table({"started_at": pa.array([noon], pa.timestamp("ms", "UTC"))}), tmp_path / "1.parquet")
    engine.view("moment", [tmp_path / "1.parquet"])
    rows = engine.query("select started_at, started_at = timestamp '2026-07-01 12:00:00' as is_noon from moment")
    assert rows.schema["started_at"] == pl.Datetime("us")
    assert rows.rows() == [(noon, True)]


def test_no_files_are_no_view(engine: Engine) -> None:
    with pytest.raises(ValueError, match="at least one file"):
        engine.view("nothing", [])


def test_a_view_may_read_views_and_have_a_schema(engine: Engine, two_files: list[Path]) -> None:
    engine.view("charge", two_files)
    engine.view_sql("mart.charge_count", "select count(*) as charge_count from charge")
    assert engine.query("select charge_count.charge_count from mart.charge_count").rows() == [(3,)]
    assert engine.query("select c.charge_count from mart.charge_count as c").rows() == [(3,)]


def test_a_view_can_be_named_anew(engine: Engine) -> None:
    engine.view_sql("answer", "select 1 as value")
    engine.view_sql("answer", "select 2 as value")
    assert engine.query("select value from answer").rows() == [(2,)]


def test_columns_are_told_without_running(engine: Engine) -> None:
    # The cast fails on the first row that is read.
    select = "select cast(t.word as bigint) as number, t.word from (values ('no number')) as t(word)"
    assert engine.columns(select) == ["number", "word"]


def test_a_written_file_has_the_rows_in_order_and_nothing_lies_beside_it(engine: Engine, tmp_path: Path) -> None:
    # More rows than one partition or vector holds, and enough groups that hashing would mix them.
    numbers = tmp_path / "numbers.parquet"
    n = pl.int_range(20_000, eager=True)
    pl.DataFrame({"n": n, "key": (n * 7919) % 20_000}).write_parquet(numbers)
    engine.view("numbers", [numbers])
    out = tmp_path / "out" / "table.parquet"
    engine.write("select key, max(n) as n from numbers group by key order by key desc", out)
    assert pl.read_parquet(out)["key"].to_list() == list(range(19_999, -1, -1))
    assert [path.name for path in out.parent.iterdir()] == ["table.parquet"]


def test_a_union_is_written_in_order_with_nulls_last(engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "table.parquet"
    union = "select 2 as n union all select null union all select 1 order by n"
    engine.write(union, out)
    assert pl.read_parquet(out)["n"].to_list() == [1, 2, None]
    engine.write(f"{union} limit 2", out)
    assert pl.read_parquet(out)["n"].to_list() == [1, 2]


def test_an_empty_table_is_a_file_with_its_columns(engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "table.parquet"
    engine.write("select cast(1 as bigint) as n, 'x' as s where 1 = 0 order by n", out)
    assert pl.read_parquet(out).schema == {"n": pl.Int64, "s": pl.String}


def test_the_same_rows_are_the_same_bytes(engine: Engine, two_files: list[Path], tmp_path: Path) -> None:
    engine.view("charge", two_files)
    written = []
    for name in ("one", "two"):
        engine.write("select * from charge order by id", tmp_path / name)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]


def test_writing_replaces_a_file(engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "table.parquet"
    for n in (1, 2):
        engine.write(f"select {n} as n", out)
    assert pl.read_parquet(out)["n"].to_list() == [2]


def test_written_types_are_those_asked_for(engine: Engine, tmp_path: Path) -> None:
    """The types of expectations/columns.yml, as any reader of Parquet finds them."""
    asked = {
        "VARCHAR": pa.string(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us"),
        "DECIMAL(20,10)": pa.decimal128(20, 10),
        "DECIMAL(38,10)": pa.decimal128(38, 10),
        "DECIMAL(10,6)": pa.decimal128(10, 6),
    }
    out = tmp_path / "table.parquet"
    engine.write("select " + ", ".join(f"cast(null as {name}) as c{n}" for n, name in enumerate(asked)), out)
    assert pq.read_schema(out).types == list(asked.values())


def test_a_wrong_select_is_one_sentence(engine: Engine) -> None:
    for select in ("select nope from nowhere", "select", "select cast(word as bigint) from (values ('x')) as t(word)"):
        with pytest.raises(EngineError) as caught:
            engine.query(select)
        assert "\n" not in str(caught.value)


def test_only_a_select_is_run(engine: Engine) -> None:
    with pytest.raises(EngineError, match="write one SELECT"):
        engine.query("create table kept as select 1 as n")


def test_a_file_that_is_no_parquet_is_one_sentence(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_text("no Parquet")
    with pytest.raises(EngineError) as caught:
        engine.view("bad", [tmp_path / "bad.parquet"])
    assert "bad.parquet" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_engines_share_no_views_and_a_closed_one_is_shut(opened: Opener) -> None:
    with opened() as first, opened() as second:
        first.view_sql("mine", "select 1 as n")
        with pytest.raises(EngineError):
            second.query("select n from mine")
        assert first.query("select n from mine").rows() == [(1,)]
    with pytest.raises(EngineError):
        first.query("select 1 as n")
    with opened() as third:
        assert third.query("select 3 as n").rows() == [(3,)]


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
        ("cast(value as bigint)", "double", {0.5: 0, 1.5: 2, 2.5: 2, -0.5: 0, 1e15: 10**15}),
        ("cast(value as bigint)", "decimal(20, 10)", {0.5: 1, 1.5: 2, 2.5: 3, -2.5: -3}),
        ("value / 3", "decimal(20, 10)", {1: 1 / 3, 2: 2 / 3}),
        ("value / 2", "bigint", {3: 1.5}),
        ("value // 2", "bigint", {7: 3, 9_007_199_254_740_993: 4_503_599_627_370_496}),
        # Money keeps every digit in a product.
        ("cast(value as decimal(38, 10)) * 7", "decimal(20, 10)", {9.87: Decimal("69.09"), 0.1: Decimal("0.7")}),
    ],
    ids=["double as text", "double as decimal", "double as integer", "decimal as integer", "decimal quotient",
         "integer quotient", "whole quotient", "decimal product"],
)  # fmt: skip
def test_numbers_convert_alike(engine: Engine, column: str, kind: str, expected: dict) -> None:
    values = ", ".join(f"(cast('{value!r}' as {kind}), {place})" for place, value in enumerate(expected))
    rows = engine.query(f"select {column} as value from (values {values}) as given(value, place) order by place")
    assert rows["value"].to_list() == list(expected.values())


def test_expressions_mean_the_same(engine: Engine) -> None:
    expected = {
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
