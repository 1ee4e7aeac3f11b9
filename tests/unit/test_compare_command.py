"""`trainledger compare`: the side-by-side of the golden portfolio, in the words of its mart and its report."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from support.ledgers import ask_published
from support.report_marts import words as words_of
from typer.testing import CliRunner

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.base.resources import known_reports
from pipelines.cli import app
from pipelines.compare.tables import rows_of, show
from pipelines.config.settings import load_settings
from pipelines.dashboard.pages import render
from pipelines.dashboard.reader import Reader
from pipelines.models.build import Builder
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.present.render import report_page


@pytest.fixture(scope="module")
def built(published_story: Callable[[str], Path]) -> tuple[Builder, Path]:
    config = published_story("wins_ties_and_losses") / "trainledger.toml"
    return Builder(Warehouse(load_settings(config))), config


def compared(config: Path, *words: str, width: int = 100) -> str:
    result = CliRunner().invoke(
        app, ["compare", *words, "--config", str(config)], env={"COLUMNS": str(width)}, catch_exceptions=False
    )
    assert result.exit_code == 0
    return result.output


def refused(config: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["compare", *words, "--config", str(config)])
    assert isinstance(result.exception, UsageError)
    return str(result.exception)


def test_side_by_side_shows_both_sides_the_saving_and_the_verdict(built: tuple[Builder, Path]) -> None:
    """Figures as the story's README derives them."""
    text = compared(built[1], "win")
    for words in ("p5.48xlarge", "trn1.32xlarge", "$11.03", "$2.76", "75.0% (31.4% to 90.9%)", "2.01", "2.02"):
        assert words in text
    assert "win-2026 of 20 June 2026, effective basis" in text


def test_command_mart_and_report_have_the_same_words(built: tuple[Builder, Path], tmp_path: Path) -> None:
    builder, config = built
    rows = ask_published(
        builder,
        "select verdict, verdict_reason, verdict_sensitivity from mart_silicon_comparison "
        "where cost_basis = 'effective'",
    )
    page = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["report", "--config", str(config), "--out", str(page)], catch_exceptions=False)
    assert result.exit_code == 0
    report = " ".join(unescape(page.read_text()).split())
    text = " ".join(compared(config).split())
    assert rows.height == 6
    for verdict, reason, flips in rows.rows():
        assert f"{verdict}: {reason}." in text
        assert reason in report
        assert flips is None or (flips in text and flips in report)


def test_a_number_below_zero_has_a_minus_in_words_and_a_hyphen_in_data(built: tuple[Builder, Path]) -> None:
    """Of `lose` the README derives -9.969242 to -0.458624: a sentence of the mart, and a figure next to it."""
    builder, config = built
    published = published_of(builder.warehouse)
    with open_marts(builder.warehouse, published) as marts:
        # The page of expectations shows bounds as contracts write them.
        kinds = [kind for kind in known_reports() if kind != "expectations"]
        pages = [words_of(report_page(marts.query, published, kind, is_drawn=False)) for kind in kinds]
    pages += [words_of(render(Reader(builder.warehouse), "sides", {"pair": str(pair)})) for pair in range(1, 7)]
    for page in pages:
        assert not re.search(r"(?<![\w-])-\$?\d", page)
    assert sum("the saving is \u2212996.9% to \u221245.9%" in page for page in pages) == 3
    for text in (compared(config, "lose"), compared(config, "lose", "--csv"), compared(config, "lose", "--json")):
        assert "the saving is \u2212996.9% to \u221245.9%" in " ".join(text.split())
    assert "-9.969242" in compared(config, "lose", "--json")


def test_instance_hours_are_of_the_unit_that_is_compared(built: tuple[Builder, Path]) -> None:
    """`win` reaches a target: its hours of all runs are divided by its successes."""
    assert "instance-hours per success" in compared(built[1], "win")


def test_every_headline_states_how_many_verdicts_chance_decides(built: tuple[Builder, Path]) -> None:
    """Two are registered, `win` and `worse`, and chance decides one in twenty falsely: 2 x 0.05."""
    builder, config = built
    published = published_of(builder.warehouse)
    with open_marts(builder.warehouse, published) as marts:
        kinds = ("training_cost", "savings")
        pages = [words_of(report_page(marts.query, published, kind, is_drawn=False)) for kind in kinds]
    pages += [words_of(render(Reader(builder.warehouse), name, {})) for name in ("overview", "sides")]
    for text in (compared(config), *pages):
        assert "2 registered comparisons at 95% confidence: 0.10 wrong verdicts expected" in " ".join(text.split())
    assert all("of accelerator spend" in page for page in pages)


def test_what_is_not_compared_is_written_as_unknown(built: tuple[Builder, Path]) -> None:
    """The cost of nothing on `free` leaves no mean to show."""
    text = compared(built[1], "free")
    assert "n/a" in text and "<span" not in text
    assert "none claimed" in text


def test_a_measure_of_one_side_alone_is_written_as_unknown(
    built: tuple[Builder, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The terminal has the words of the page and not its marks."""
    warehouse = built[0].warehouse
    with open_marts(warehouse, published_of(warehouse)) as marts:
        rows = rows_of(marts, "win", "effective").with_columns(candidate_hours_per_unit=None)
    show(rows, "effective", {(rows["workload_id"][0], "USD"): None}, Console())
    text = capsys.readouterr().out
    assert "n/a" in text and "<span" not in text


def test_another_basis_is_chosen(built: tuple[Builder, Path]) -> None:
    text = compared(built[1], "win", "--basis", "list")
    assert "proven: the 95% interval of the saving is 31.4% to 90.9%" in " ".join(text.split())


def test_rows_come_as_json_and_csv(built: tuple[Builder, Path]) -> None:
    rows = json.loads(compared(built[1], "win", "--json"))
    assert [row["cost_basis"] for row in rows] == ["effective", "list", "billed"]
    assert [row["verdict"] for row in rows] == ["proven"] * 3
    assert [row["verdict"] for row in csv.DictReader(io.StringIO(compared(built[1], "lose", "--csv")))] == [
        "contradicted"
    ] * 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(["alone / corp-v3 / seq 8192"], "it has 1 completed run on GPU and 0 on", id="one-sided"),
        pytest.param(["unknown"], "Workload 'unknown' not found", id="unknown"),
        pytest.param(["corp-v3"], "part of several workloads: once / corp-v3", id="ambiguous"),
        pytest.param(
            ["win", "--basis", "net"], "--basis net is not a basis; choose one of effective, list, billed", id="basis"
        ),
        pytest.param(["win", "--json", "--csv"], "not both", id="two forms"),
    ],
)
def test_what_cannot_be_compared_is_reported(built: tuple[Builder, Path], words: list[str], sentence: str) -> None:
    assert sentence in refused(built[1], *words)


def test_it_shows_the_recommendation_and_the_cost_of_a_pilot(built: tuple[Builder, Path]) -> None:
    """Figures as the story's README derives them."""
    lose, worse = " ".join(compared(built[1], "lose").split()), " ".join(compared(built[1], "worse").split())
    assert "Recommendation (effective basis): GPU; arithmetic: contradicted" in lose
    assert "At stake: $49.65 a month on GPU, measured" in lose
    assert "Pilot:" not in lose
    assert "Recommendation (effective basis): run a pilot; arithmetic: not comparable: final eval_loss" in worse
    assert "At stake: at most all of $49.65 a month" in worse
    assert "Pilot: 6 runs on p5.48xlarge and 9 on trn1.32xlarge for $115.85" in worse
    assert "above 29.3%, which pays the port back" in worse
