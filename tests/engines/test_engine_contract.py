"""What every engine promises, one body for all of them; expected values are DuckDB's documented ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.base.errors import EngineError, SourceError
from pipelines.config.settings import Warehouse
from pipelines.engine import Engine, open_engine
from pipelines.models.written import counted


def files_of(out: Path) -> list[Path]:
    """The file that an engine wrote, or the files of its folder."""
    return sorted(out.iterdir()) if out.is_dir() else [out]


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


def test_a_scan_names_the_file_and_place_of_each_row(engine: Engine, two_files: list[Path]) -> None:
    engine.scan_files("charge", two_files)
    rows = engine.query("select id, filename, file_row_number from charge order by id")
    assert rows.rows() == [(1, str(two_files[0]), 0), (2, str(two_files[0]), 1), (3, str(two_files[1]), 0)]
    assert rows.schema["file_row_number"] == pl.Int64


def test_instants_are_read_as_naive_utc(engine: Engine, tmp_path: Path) -> None:
    noon = datetime(2026, 7, 1, 12)
    pq.write_table(pa.table({"started_at": pa.array([noon], pa.timestamp("ms", "UTC"))}), tmp_path / "1.parquet")
    engine.scan_files("moment", [tmp_path / "1.parquet"])
    rows = engine.query("select started_at, started_at = timestamp '2026-07-01 12:00:00' as is_noon from moment")
    assert rows.schema["started_at"] == pl.Datetime("us")
    assert rows.rows() == [(noon, True)]


def test_the_name_of_a_column_is_never_read_as_sql(engine: Engine, tmp_path: Path) -> None:
    """Whoever writes a file chooses it."""
    name = """a")) as "a") from (select 1 as "a`); copy (select 1) to 'evil'; select (("b"""
    times = pa.array([datetime(2026, 7, 1, 12)], pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({name: times}), tmp_path / "1.parquet")
    engine.view("moment", [tmp_path / "1.parquet"])
    assert engine.query("select * from moment").columns == [name]


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


def test_a_written_file_has_the_rows_in_order_and_nothing_else_lies_there(engine: Engine, tmp_path: Path) -> None:
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
        written.append([file.read_bytes() for file in files_of(tmp_path / name)])
    assert written[0] == written[1]


def test_rows_of_a_table_have_one_digest_in_any_files(engine: Engine, two_files: list[Path]) -> None:
    columns = [("id", "BIGINT"), ("at", "TIMESTAMP"), ("cost", "DECIMAL(20,10)"), ("name", "VARCHAR")]
    engine.view("charge", two_files)
    engine.view("reverse", two_files[::-1])
    engine.view_sql("twice", "select * from charge union all select * from charge where id = 3")
    engine.view_sql("none", "select * from charge where id > 3")
    # The only text of a row moves from one column to another.
    engine.view_sql("here", "select 1 as id, 'x' as at, cast(null as varchar) as cost, 'y' as name")
    engine.view_sql("there", "select 1 as id, cast(null as varchar) as at, 'x' as cost, 'y' as name")
    found = {name: counted(engine, name, columns) for name in ("charge", "reverse", "twice", "none", "here", "there")}
    assert [scan.row_count for scan in found.values()] == [3, 3, 4, 0, 1, 1]
    digests = {name: scan.rows_digest for name, scan in found.items()}
    if engine.is_reproducible:
        assert set(digests.values()) == {""}
    else:
        assert digests.pop("reverse") == digests["charge"]
        assert len({*digests.values()}) == len(digests)


def test_writing_replaces_a_file(engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "table.parquet"
    for n in (1, 2):
        engine.write(f"select {n} as n", out)
    assert pl.read_parquet(out)["n"].to_list() == [2]


def test_written_types_are_those_requested(engine: Engine, tmp_path: Path) -> None:
    """The types of expectations/columns, as any reader of Parquet finds them."""
    types = {
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
    engine.write("select " + ", ".join(f"cast(null as {name}) as c{n}" for n, name in enumerate(types)), out)
    (file,) = files_of(out)
    assert pq.read_schema(file).types == list(types.values())


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
    with pytest.raises((EngineError, SourceError)) as caught:
        engine.view("bad", [tmp_path / "bad.parquet"])
    assert "bad.parquet" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_engines_share_no_views_and_a_closed_one_is_shut(opened: Callable[[], Engine]) -> None:
    with opened() as first, opened() as second:
        first.view_sql("mine", "select 1 as n")
        with pytest.raises(EngineError):
            second.query("select n from mine")
        assert first.query("select n from mine").rows() == [(1,)]
    with pytest.raises(EngineError):
        first.query("select 1 as n")
    with opened() as third:
        assert third.query("select 3 as n").rows() == [(3,)]


@pytest.mark.spark
def test_spark_without_the_jars_for_s3_names_the_setting() -> None:
    with open_engine(Warehouse(engine="spark")) as engine, pytest.raises(EngineError, match=r"spark\.jars\.packages"):
        engine.view("charge", ["s3://bucket/1.parquet"])


def test_a_function_runs_for_each_item_in_their_order(engine: Engine) -> None:
    def half(number: int) -> float:
        if number > 4:
            raise SourceError(f"{number} is too much.")
        return number / 2

    assert engine.map(half, [3, 1, 2]) == [1.5, 0.5, 1.0]
    with pytest.raises(SourceError, match=r"^7 is too much\.$"):
        engine.map(half, [1, 7])


def test_rows_in_files_are_sorted_in_each_and_all_there(opened: Callable[[], Engine], tmp_path: Path) -> None:
    """200,000 rows of text that hardly packs: Spark writes them by several tasks."""
    engine = opened()
    number = pl.int_range(200_000, eager=True)
    text = number.map_elements(lambda n: hashlib.sha256(str(n).encode()).hexdigest(), return_dtype=pl.String)
    pl.DataFrame({"id": number, "name": text}).write_parquet(tmp_path / "in.parquet")
    with engine:
        engine.view("charge", [tmp_path / "in.parquet"])
        engine.write("select id, name from charge order by name", tmp_path / "out")
    files = files_of(tmp_path / "out")
    assert (len(files) > 1) == (tmp_path / "out").is_dir()
    frames = [pl.read_parquet(file) for file in files]
    assert all(frame["name"].is_sorted() for frame in frames)
    assert sorted(pl.concat(frames)["id"]) == number.to_list()
