"""`trainledger query` on a terminal: the list of the marts, cents, narrow tables, suggestions, control characters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from decimal import Decimal

import polars as pl
import pytest
from support.commands import run_command
from support.small_company import Company

from pipelines.base.console import cell_text
from pipelines.models.catalog import load_catalog
from pipelines.query.marts import MARTS, in_cents

Captured = pytest.CaptureFixture[str]


def lines(capsys: Captured, company: Company, *words: str) -> list[str]:
    result = run_command(capsys, "query", *words, "--config", str(company.config))
    assert result.code == 0, result.error
    return re.sub(r"\x1b\[[0-9;]*m", "", result.out).splitlines()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


def test_every_mart_is_listed_under_a_subject() -> None:
    assert {model.name for model in load_catalog().layer("marts")} <= {
        name for marts in MARTS.values() for name in marts
    }


def test_without_a_query_the_marts_are_listed_by_subject(
    built_company: Company, capsys: Captured, terminal: None
) -> None:
    listed = lines(capsys, built_company)
    headings = [line.lower() for line in listed if not line.startswith(" ")]
    assert headings == [subject for subject in MARTS if subject in headings]
    # What a line has no room for goes on below.
    names = [name[1] for line in listed if (name := re.match(r"  (\w+)", line))]
    assert sorted(names) == sorted(model.name for model in load_catalog().layer("marts"))
    with_detail = lines(capsys, built_company, "--detail")
    more = [name[1] for line in with_detail if (name := re.match(r"  (\w+)", line))]
    assert more[: len(names)] == names
    assert "Detail" in with_detail


def test_a_table_shows_cents_and_with_exact_every_digit(built_company: Company, capsys: Captured) -> None:
    sql = "select cast(55.0449 as decimal(20, 10)) as a_usd, cast(0.000123 as decimal(20, 10)) as b_usd"
    assert "│ 55.04 │ 0.00012 │" in lines(capsys, built_company, sql)
    assert "│ 55.0449 │ 0.000123 │" in lines(capsys, built_company, sql, "--exact")


def test_an_amount_next_to_parts_of_a_cent_keeps_its_cents(built_company: Company, capsys: Captured) -> None:
    """2.30 is no 2.3 where 0.00012 keeps its two digits; hours, which are no amounts, stay as short as they are."""
    cells = "cast(b as decimal(20, 10)) as b_usd, cast(b as decimal(20, 10)) as b_hours"
    shown = lines(capsys, built_company, f"select {cells} from (values (2.3), (0.000123), (5)) as t(b)")
    assert {"│ 2.30 │ 2.3 │", "│ 0.00012 │ 0.000123 │", "│ 5.00 │ 5 │"} <= {" ".join(line.split()) for line in shown}


def test_a_column_selected_twice_is_shown_twice(built_company: Company, capsys: Captured) -> None:
    """`select run_id, *` has run_id twice. A name that a number would repeat gets the next one; cents stay cents."""
    sql = "select 1 as a, t.* from (select 2 as a, 3 as a_1, cast(55.0449 as decimal(20, 10)) as b_usd) t"
    assert lines(capsys, built_company, sql, "--csv") == ["a,a_2,a_1,b_usd", "1,2,3,55.0449000000"]
    twice = "select b_usd, * from (select cast(55.0449 as decimal(20, 10)) as b_usd)"
    assert "│ 55.04 │   55.04 │" in lines(capsys, built_company, twice)
    assert lines(capsys, built_company, "select 1 as a, 2 as a", "--json") == ['[{"a":1,"a_1":2}]']


def test_amounts_that_are_unknown_stay_unknown() -> None:
    money = pl.Series("a_usd", [Decimal("1.005"), None, Decimal("0.00")], pl.Decimal(20, 10))
    assert in_cents(money.to_frame())["a_usd"].to_list() == [Decimal("1.00"), None, Decimal("0.00")]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cost_per_million_tokens_usd", ["0.0134", "0.00298", "0.123", "1.23"]),
        ("price_per_hour_usd", ["0.0134", "0.00298", "0.123", "1.23"]),
        ("effective_cost_usd", ["0.01", "0.003", "0.12", "1.23"]),
        ("a_usd", ["0.01", "0.003", "0.12", "1.23"]),
    ],
)
def test_unit_prices_below_a_dollar_keep_three_digits(name: str, shown: list[str]) -> None:
    exact = ("0.0134", "0.002983", "0.12345", "1.2345")
    frame = pl.Series(name, map(Decimal, exact), pl.Decimal(38, 6)).to_frame()
    assert [cell_text(value) for value in in_cents(frame)[name]] == shown


def test_a_quotient_of_amounts_is_shown_as_an_amount() -> None:
    """A quotient is a double: 29.177 rounds to cents, and 0.48507, below a dollar an epoch, to three digits."""
    frame = pl.DataFrame({"cost_per_epoch_usd": [29.177009842916664, 0.48506587654444444, None], "a_usd": [1e300] * 3})
    shown = in_cents(frame)
    assert [cell_text(value) for value in shown["cost_per_epoch_usd"]] == ["29.18", "0.485", ""]
    assert shown["a_usd"].to_list() == [1e300] * 3


def test_unit_prices_that_cents_state_in_full_are_shown_in_cents() -> None:
    frame = pl.Series("cost_per_epoch_usd", map(Decimal, ("270", "0.5", "0")), pl.Decimal(38, 6)).to_frame()
    assert [cell_text(value) for value in in_cents(frame)["cost_per_epoch_usd"]] == ["270.00", "0.50", "0.00"]


def test_many_wide_rows_of_a_star_keep_their_costs(built_company: Company, capsys: Captured, terminal: None) -> None:
    listed = lines(capsys, built_company, "select cost.* from mart_run_cost cost, range(20)")
    assert max(map(len, listed)) <= 80
    assert "effective_cost_usd" in listed[1]
    assert "workload_id" not in listed[1]


def test_a_long_name_leaves_room_for_other_columns(built_company: Company, capsys: Captured, terminal: None) -> None:
    sql = f"from (values ('{'long ' * 15}', 'gpu', 7, '{'x' * 80}')), range(11)"
    shown = lines(capsys, built_company, sql)
    assert sum(bool(re.search(r"long ?… │ gpu +│ +7 │", line)) for line in shown) == 11
    assert max(map(len, shown)) <= 80


def test_columns_that_the_query_names_stay(built_company: Company, capsys: Captured, terminal: None) -> None:
    """20 rows stay a table where words and names of columns can go on below, and are blocks where they cannot."""
    sql = f"select 'x' as run_id, '{'y ' * 40}' as model, 1.5 as effective_cost_usd from range(20)"
    listed = lines(capsys, built_company, sql)
    assert max(map(len, listed)) <= 80
    assert [listed[0].split(), listed[1].split()] == [["run_", "effective_cost_"], ["id", "model", "usd"]]
    assert sum(line.startswith("x ") and line.endswith("1.50") for line in listed) == 20
    assert sum(line.split().count("y") for line in listed) == 20 * 40
    blocks = lines(capsys, built_company, sql.replace("y ", "y" * 3))
    assert blocks.count("effective_cost_usd  1.50") == 20
    assert "row 1 of 3" in "".join(lines(capsys, built_company, sql.replace("20", "3")))


@pytest.mark.parametrize(
    ("sql", "suggestion"),
    [
        ("select * from mart_run_cots", 'exist; did you mean "mart_run_cost"? `trainledger query` without'),
        ("select run_idd from mart_run_cost", 'Candidate bindings: "run_id"'),
    ],
)
def test_an_error_suggests_the_name(built_company: Company, capsys: Captured, sql: str, suggestion: str) -> None:
    result = run_command(capsys, "query", sql, "--config", str(built_company.config))
    assert result.code == 2
    assert suggestion in result.error


def test_what_an_encoding_lacks_is_written_as_an_escape(built_company: Company) -> None:
    words = [sys.executable, "-m", "pipelines", "query", "--csv", "select chr(247) as x", "--config"]
    printed = subprocess.check_output([*words, built_company.config], env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert printed == b"x\n\\xf7\n"


def test_csv_on_a_terminal_moves_no_cursor(
    built_company: Company, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "select 'a' || chr(27) || '[2Jb' as run_id"
    assert lines(capsys, built_company, sql, "--csv") == ["run_id", "a\x1b[2Jb"]
    capsys.readouterr()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert lines(capsys, built_company, sql, "--csv") == ["run_id", r"a\x1b[2Jb"]


def test_json_moves_no_cursor(built_company: Company, capsys: Captured) -> None:
    """A terminal obeys U+009B as it obeys ESC [, which alone JSON must escape."""
    (text,) = lines(capsys, built_company, "select 'é' || chr(155) || '2J' || chr(8238) as run_id", "--json")
    assert text == r'[{"run_id":"é\u009b2J\u202e"}]'
