"""Names that are SQL, HTML, formulas, terminal codes or very long, in a folder with quotes and spaces in its name.

Each name is that of a run which used one node for an hour by its own word and another by the tag on the bill: at
7 and 5 dollars an hour it cost 12.
"""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import instance_hour, write_config, write_events, write_export
from support.spoiled import MONTH, Ledger

HOSTILE = [
    "it's",
    'say "hello"',
    "x'; drop table mart_run_cost; --",
    "$$ || current_user || {batch} {{ 7 * 7 }} %s",
    "two\nlines\r\nand a\ttab",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
    "[bold red]not markup[/]",
    "\x1b[31mnot red\x1b[0m",
    "日本語 🚀 е́ \u202eright to left",
    " ",
    "r" * 10_000,
]
START, END = f"{MONTH}-01T00:00:00Z", f"{MONTH}-01T01:00:00Z"


def lines() -> list[dict[str, str]]:
    found = []
    for number, name in enumerate(HOSTILE):
        tags = json.dumps({"user_run_id": name, "user_owner": name, "user_team": name})
        for resource, rate, more in (
            (f"i-said-{number}", "7", {}),
            (f"i-tagged-{number}", "5", {"resource_tags": tags}),
        ):
            found.append(instance_hour(f"{MONTH}-01T00", resource, "p5.48xlarge", rate, **more))
        unknown = json.dumps({"user_run_id": f"{name} nobody recorded", "user_owner": name})
        found.append(instance_hour(f"{MONTH}-01T00", f"i-lost-{number}", "p5.48xlarge", "3", resource_tags=unknown))
    return found


def events() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for number, name in enumerate(HOSTILE):
        texts = dict.fromkeys(("model", "dataset", "precision", "team", "owner", "experiment"), name)
        common = {"run_id": name, "attempt": 1}
        node = {**common, "resource": f"i-said-{number}"}
        found += [
            {"event": "run_started", "run_id": name, "at": START, **texts},
            {"event": "attempt_started", **common, "at": START},
            {"event": "resource_joined", **node, "at": START, "instance_type": "p5.48xlarge"},
            {"event": "phase_started", **common, "at": START, "phase": name},
            {"event": "checkpoint_saved", **common, "at": END, "checkpoint_id": name, "uri": name, "step": 1},
            {"event": "evaluation", **common, "at": END, "metric": name, "split": name, "value": 1.0},
            {"event": "resource_left", **node, "at": END},
            {"event": "attempt_ended", **common, "at": END, "reason": name},
            {"event": "run_ended", "run_id": name, "at": END, "status": "completed"},
        ]
    return found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with its bill and events, not built yet."""
    root = tmp_path_factory.mktemp("hostile") / 'it\'s a "test" {of} 50% ünï;'
    root.mkdir()
    write_export(root, {MONTH: lines()})
    write_events(root / "runs", events())
    write_config(root, billing="export", runs="runs")
    return root


@pytest.fixture(scope="module")
def built(hostile: Path) -> Path:
    """The folder, built."""
    from support.ledgers import build_warehouse

    build_warehouse(hostile / "trainledger.toml")
    return hostile


@pytest.fixture
def ledger(built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ledger:
    return Ledger(built, built / "trainledger.toml", capsys, monkeypatch)


COSTS = "select run_id, effective_cost_usd from mart_run_cost"


def test_every_run_has_its_name_and_its_cost(ledger: Ledger) -> None:
    for form, read in (
        ("--csv", lambda text: list(csv.DictReader(io.StringIO(text, newline="")))),
        ("--json", json.loads),
    ):
        rows = read(ledger.say("query", COSTS, form).out)
        # A spreadsheet would take a name that begins so for a formula.
        told = [f"'{name}" if form == "--csv" and name[0] in "=+-@\t\r\n" else name for name in HOSTILE]
        assert {row["run_id"]: Decimal(row["effective_cost_usd"]) for row in rows} == dict.fromkeys(told, Decimal(12))


def test_tags_are_what_they_are(ledger: Ledger) -> None:
    sql = "select run_id, owner, effective_cost_usd from detail_provisional_run"
    rows = json.loads(ledger.say("query", sql, "--json").out)
    assert {row["run_id"]: row["owner"] for row in rows} == {f"{name} nobody recorded": name for name in HOSTILE}
    assert {Decimal(row["effective_cost_usd"]) for row in rows} == {Decimal(3)}


def test_a_terminal_sees_no_control_characters(ledger: Ledger) -> None:
    shown = ledger.say("query", COSTS).out
    assert [c for c in shown if not c.isprintable() and c != "\n"] == []
    assert "\\x1b[31mnot red" in shown and "[bold red]not markup[/]" in shown
    # One line a run, and the four of the frame.
    assert len(shown.splitlines()) == len(HOSTILE) + 4


def test_the_report_escapes_what_it_shows(ledger: Ledger) -> None:
    out = ledger.root / "the report's <page>.html"
    assert ledger.say("report", "--out", str(out)).code == 0
    page = out.read_text(encoding="utf-8")
    assert "<script>alert(1)</script>" not in page
    assert "alert(1)" in page


def test_building_again_is_no_work(ledger: Ledger) -> None:
    assert "Nothing changed since publication 1; nothing was done." in ledger.say("build").out
