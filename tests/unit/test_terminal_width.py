"""On a terminal of 80 characters no line of an answer is wider; `--json` and `--csv` give the same to programs."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commands import run_command

from pipelines.base.console import Console
from pipelines.present.terminal import show_page

WIDTH = 80
COMMANDS = [
    ["compare"],
    ["compare", "win", "--basis", "list"],
    ["reprice", "win", "--at", "2026-08-01"],
    ["query"],
    ["query", "--detail"],
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


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_answer_fits_the_terminal(
    config: str, words: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    result = run_command(capsys, *words, "--config", config)
    assert result.code == 0, result.error
    lines = re.sub(r"\x1b\[[0-9;]*m", "", result.out).splitlines()
    assert lines
    assert words[0] != "reprice" or "…" not in result.out
    # A path or a seal, kept whole so that it can be copied, may stand over the edge where it alone is too long.
    assert [line for line in lines if len(line) > WIDTH and not re.fullmatch(r"\s*\S+\s+\S{50,}", line)] == []


@pytest.mark.parametrize("kind", ["training_cost", "savings", "serving", "commitments", "showback"])
def test_a_report_fits_the_terminal(config: str, kind: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    result = run_command(capsys, "report", "--kind", kind, "--terminal", "--config", config)
    assert result.code == 0, result.error
    lines = re.sub(r"\x1b\[[0-9;]*m", "", result.out).splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []


def test_texts_of_a_table_are_folded_and_its_figures_are_not(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a cell go on below, amounts stand whole in the line of their row.

    Of 40 characters, 2 are between the columns and 8 and 9 needed for the longest words. The other 21 are shared as
    wanted, 28 to 5: 17 and 3.
    """
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "40")
    row = "<tr><td>{}</td><td class='num'>{}</td></tr>"
    rows = [row.format("shared storage, network and services", "$1,234"), row.format("other", "NOK 5")]
    verdict = "<tr><td>Verdict</td><td colspan='2'>inconclusive, at 3 runs a side.<br/>List: proven.</td></tr>"
    head = "<tr><th>Part of the bill</th><th class='num'>Effective cost</th></tr>"
    show_page(f"<html><table>{head}{''.join(rows)}{verdict}</table></html>", Console())
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert [line.rstrip() for line in lines] == [
        f"{'':25}  {'Effective':>12}",
        f"{'Part of the bill':25}  {'cost':>12}",
        39 * "─",
        f"{'shared storage, network':25}  {'$1,234':>12}",
        "and services",
        f"{'other':25}  {'NOK 5':>12}",
        "Verdict: inconclusive, at 3 runs a side.",
        "  List: proven.",
    ]


def test_a_sentence_is_folded_on_a_terminal_alone(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 characters a line takes whole words, and a path that is longer; a pipe gets one line."""
    sentence = "Wrote the page to /a/path/of/27/characters.html now."
    Console().say(sentence)
    Console().error(sentence)
    assert [*capsys.readouterr()] == [f"{sentence}\n", f"Error: {sentence}\n"]
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "20")
    Console().say(sentence)
    Console().note(sentence)
    Console().error(sentence)
    below = ["  /a/path/of/27/characters.html", "  now."]
    out, err = (re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() for text in capsys.readouterr())
    assert out == ["Wrote the page to", *below]
    assert err == ["Wrote the page to", *below, "Error: Wrote the", "  page to", *below]


LISTS = (["query"], ["query", "--detail"])


@pytest.mark.parametrize("words", [words for words in COMMANDS if words not in LISTS], ids=" ".join)
def test_programs_get_json_and_csv(config: str, words: list[str], capsys: Captured) -> None:
    answer = json.loads(run_command(capsys, *words, "--json", "--config", config).out)
    rows = list(csv.reader(io.StringIO(run_command(capsys, *words, "--csv", "--config", config).out)))
    assert answer
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}
    assert "not both" in run_command(capsys, *words, "--csv", "--json", "--config", config).error


def test_progress_off_a_terminal_is_a_line_for_each_quarter(capsys: Captured) -> None:
    """Of six steps the second, third, fifth and sixth pass 1.5, 3, 4.5 and 6."""
    with Console().steps(6) as steps:
        for name in "abcdef":
            steps.step(name)
    assert capsys.readouterr().err.splitlines() == ["[2/6] b", "[3/6] c", "[5/6] e", "[6/6] f"]


@pytest.mark.parametrize(
    ("arguments", "page"),
    [
        ([], "report.html"),
        (["--kind", "savings"], "savings.html"),
        (["--pdf", "out/july.pdf"], "out/july.html"),
        (["--pdf", "out/july.pdf", "--out", "page.html"], "page.html"),
    ],
)
def test_the_page_of_a_pdf_lies_next_to_it(
    arguments: list[str], page: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    monkeypatch.setattr("pipelines.report.command.write_report", lambda settings, out, *rest: written.append(out))
    config = tmp_path / "trainledger.toml"
    config.write_text('[warehouse]\nlocation = "warehouse"\n', encoding="utf-8")
    assert run_command(capsys, "report", *arguments, "--config", str(config)).code == 0
    assert written == [Path(page)]


def test_code_keeps_its_lines_and_a_chart_leaves_no_heading(capsys: Captured) -> None:
    code = "<p><code>for run in runs:</code><br/><br/><code>&#160;&#160;&#160;&#160;stop(run)</code></p>"
    drawn = "<section><h2>Hour by hour</h2><figure><figcaption>Hours</figcaption><svg/></figure></section>"
    text = "<p>Run <code>build</code>,<br/>then <code>report</code>.</p>"
    show_page(f"<html>{drawn}<section><h2>Code</h2>{code}</section>{text}</html>", Console())
    assert capsys.readouterr().out.splitlines() == [
        "",
        "Code",
        "  for run in runs:",
        "      stop(run)",
        "Run build,; then report.",
    ]
