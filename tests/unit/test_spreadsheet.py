"""What we write as CSV is opened in spreadsheets: a text that starts as a formula must not be run as one."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.ledgers import build_warehouse
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.spreadsheet import csv_text


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1+1", "'\t=1+1"),
        ("\r=1+1", "'\r=1+1"),
        ("\n=1+1", "'\n=1+1"),
        ("llama=1", "llama=1"),
        ("'quoted", "'quoted"),
        (" =1", " =1"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_text_that_starts_a_formula_gets_an_apostrophe(name: str | None, written: str) -> None:
    # A second column, for a line of nothing is no row to a reader.
    frame = pl.DataFrame({"run_id": [name], "n": [1]}, schema_overrides={"run_id": pl.String})
    assert list(csv.reader(io.StringIO(csv_text(frame), newline=""))) == [["run_id", "n"], [written, "1"]]


def test_numbers_stay_numbers() -> None:
    frame = pl.DataFrame({"cost_usd": [Decimal("-1.50")], "ratio": [-0.25], "count": [-3], "run_id": ["-3"]})
    assert csv_text(frame) == "cost_usd,ratio,count,run_id\n-1.50,-0.25,-3,'-3\n"


def test_a_pivot_makes_no_formula_of_a_name() -> None:
    assert csv_text(pl.DataFrame({"=1+1": [2]})) == "'=1+1\n2\n"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_any_text_comes_back_with_at_most_an_apostrophe_more(texts: list[str]) -> None:
    frame = pl.DataFrame({"n": range(len(texts)), "text": texts})
    cells = [row[1] for row in csv.reader(io.StringIO(csv_text(frame), newline=""))][1:]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for cell in cells)
    assert [cell == text or cell == f"'{text}" for cell, text in zip(cells, texts, strict=True)] == [True] * len(texts)


def test_query_and_explain_write_a_hostile_run_as_text(tmp_path: Path) -> None:
    """A run that is called a formula, in every CSV we print."""
    name = "=HYPERLINK(1)"
    hour = instance_hour("2026-07-03T10", "i-0a", "p5.48xlarge", "55.04")
    events = one_attempt(name, ["i-0a"], "p5.48xlarge", datetime(2026, 7, 3, 10), timedelta(hours=1))
    config = write_config(
        tmp_path,
        billing=write_export(tmp_path, {"2026-07": [hour]}),
        runs=write_events(tmp_path / "runs", events),
    )
    build_warehouse(config)
    asked = (
        ["query", "select run_id, -effective_cost_usd as cost from mart_run_cost", "--csv"],
        ["explain", "run", name, "--csv"],
    )
    for words in asked:
        told = CliRunner().invoke(app, [*words, "--config", str(config)])
        assert told.exit_code == 0, told.output
        assert f"'{name}" in told.output
        assert name not in told.output.replace(f"'{name}", "")
