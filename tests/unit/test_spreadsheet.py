"""What we write as CSV is opened in spreadsheets: a text that starts as a formula must not be run as one."""

from __future__ import annotations

import csv
import io
import re
import zipfile
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

from pipelines.base.console import Console
from pipelines.cli import app
from pipelines.config.settings import load_settings
from pipelines.evidence.pack import write_pack
from pipelines.present.csv_text import csv_text


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("＝1+1", "'＝1+1"),
        ("＋1", "'＋1"),
        ("－1", "'－1"),
        ("＠SUM(A1)", "'＠SUM(A1)"),
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
    assert not any(cell.startswith(tuple("=+-@＝＋－＠\t\r\n")) for cell in cells)
    assert [cell == text or cell == f"'{text}" for cell, text in zip(cells, texts, strict=True)] == [True] * len(texts)


HOSTILE = "=HYPERLINK(1)"
MODEL = "@SUM(A1)"
MACHINE = "-2+3"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, its workload and a machine called formulas, and a run on Trainium to compare with."""
    root, start = tmp_path_factory.mktemp("hostile"), datetime(2026, 7, 3, 10)
    hours = [
        instance_hour("2026-07-03T10", "i-0a", "p5.48xlarge", "55.04"),
        instance_hour("2026-07-03T10", "i-0b", "trn1.32xlarge", "21.50"),
        instance_hour("2026-07-03T10", MACHINE, "p5.48xlarge", "55.04"),
    ]
    events: list[dict[str, object]] = []
    for run_id, machine, kind in ((HOSTILE, "i-0a", "p5.48xlarge"), ("plain", "i-0b", "trn1.32xlarge")):
        inside = [{"event": "epoch_completed", "epoch": 1, "at": "2026-07-03T10:59:00Z", "tokens_seen": 1e9}]
        events += one_attempt(run_id, [machine], kind, start, timedelta(hours=1), inside, model=MODEL, dataset="c4")
    path = write_config(root, billing=write_export(root, {"2026-07": hours}), runs=write_events(root / "runs", events))
    build_warehouse(path)
    return path


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["query", "select run_id, -effective_cost_usd as cost from mart_run_cost", "--csv"], HOSTILE),
        (["explain", "run", HOSTILE, "--csv"], HOSTILE),
        (["compare", "--csv"], MODEL),
        (["reprice", MODEL, "--at", "2026-08-01", "--csv"], MODEL),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_csv_printed_has_formulas_as_text(config: Path, words: list[str], name: str) -> None:
    result = CliRunner().invoke(app, [*words, "--config", str(config)])
    assert result.exit_code == 0, result.output
    assert f"'{name}" in result.output
    assert_no_formula(result.output)


def test_every_csv_of_a_pack_has_formulas_as_text(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reports, which are pages and paper, are left out."""
    monkeypatch.setattr("pipelines.evidence.pack.report_members", lambda *about: {})
    write_pack(load_settings(config), tmp_path / "pack.zip", Console(), as_of=None, bundle=False)
    with zipfile.ZipFile(tmp_path / "pack.zip") as pack:
        # models/reference are our own lists, as they were typed.
        written = {
            name: pack.read(name).decode()
            for name in pack.namelist()
            if name.endswith(".csv") and not name.startswith("models/")
        }
    assert {"checks.csv", "marts/mart_run_cost.csv", "marts/mart_unattributed_cost_daily.csv"} < set(written)
    for text in written.values():
        assert_no_formula(text)
    assert f"'{HOSTILE}" in written["marts/mart_run_cost.csv"]


def test_the_csv_of_focus_has_formulas_as_text_and_its_parquet_the_text_itself(config: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["export", "focus", "--out", str(tmp_path), "--config", str(config)])
    assert result.exit_code == 0, result.output
    folder = tmp_path / "focus-1.2" / "billing_period=2026-07"
    text = (folder / "cost_and_usage.csv").read_text()
    assert f",'{MACHINE}," in text
    assert_no_formula(text)
    assert MACHINE in pl.read_parquet(folder / "cost_and_usage.parquet")["ResourceId"].to_list()


def assert_no_formula(text: str) -> None:
    """No cell that a spreadsheet would run; a negative number is none."""
    for row in csv.reader(io.StringIO(text, newline="")):
        for cell in row:
            assert not re.match(r"[=+@＝＋－＠\t\r\n]|-(?![0-9.]+(E[+-]?[0-9]+)?$)", cell), cell
