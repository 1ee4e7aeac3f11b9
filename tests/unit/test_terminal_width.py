"""On a terminal of 80 characters no line of an answer is wider; `--json` and `--csv` say the same to programs."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commands import run_command

WIDTH = 80
ASKED = [
    ["compare"],
    ["compare", "win", "--basis", "list"],
    ["query"],
    ["query", "select * from mart_silicon_comparison"],
    ["query", "select run_id, workload_id, effective_cost_usd from mart_run_cost"],
    ["explain", "run", "win-gpu-1"],
    ["explain", "day", "2026-07-01"],
    ["explain", "invoice", "--month", "2026-07"],
    ["explain", "cost_per_epoch_usd"],
    ["explain", "mart_run_cost"],
]
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def config(published_story: Callable[[str], Path]) -> str:
    return str(published_story("wins_ties_and_losses") / "trainledger.toml")


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_an_answer_fits_the_terminal(
    config: str, words: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    told = run_command(capsys, *words, "--config", config)
    assert told.code == 0, told.error
    lines = re.sub(r"\x1b\[[0-9;]*m", "", told.out).splitlines()
    assert lines
    # A path or a seal, kept whole so that it can be copied, may stand over the edge where it alone is too long.
    assert [line for line in lines if len(line) > WIDTH and not re.fullmatch(r"\s*\S+\s+\S{50,}", line)] == []


@pytest.mark.parametrize("words", [words for words in ASKED if words != ["query"]], ids=" ".join)
def test_programs_get_json_and_csv(config: str, words: list[str], capsys: Captured) -> None:
    told = json.loads(run_command(capsys, *words, "--json", "--config", config).out)
    rows = list(csv.reader(io.StringIO(run_command(capsys, *words, "--csv", "--config", config).out)))
    assert told
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}
    assert "not both" in run_command(capsys, *words, "--csv", "--json", "--config", config).error
