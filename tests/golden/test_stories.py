"""Every story of this folder, run through the pipeline and compared with the figures derived by hand in its README."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.ledger_law import LAW_TABLES, bill_totals, ledger_totals, lines_that_do_not_sum, total_by_basis
from support.ledgers import build_warehouse, open_tables, publish_tables
from support.stories import PUBLISHED, build_story, differences, read_bills, read_expected

from pipelines.base.sql import tables_in
from pipelines.config.settings import load_settings
from pipelines.engine import Engine
from pipelines.models.build import Builder
from pipelines.models.warehouse import Warehouse

STORIES = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.csv"))


@dataclass(frozen=True)
class BuiltStory:
    """A story and what came of it; `tables` holds those that its figures and the ledger law are about."""

    folder: Path
    builder: Builder
    tables: Engine


@pytest.fixture(scope="module", params=STORIES, ids=lambda folder: folder.name)
def story(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    published_story: Callable[[str], Path],
) -> Iterator[BuiltStory]:
    """A story, built once for all its tests: as far as they ask, and whole where other tests read it."""
    folder: Path = request.param
    figures = read_expected(folder)
    is_restated = len(read_bills(folder)) > 1 or any(figure.publication for figure in figures)
    needed = {name for figure in figures for name in tables_in(figure.sql)} | LAW_TABLES
    if folder.name in PUBLISHED:
        builder = Builder(Warehouse(load_settings(published_story(folder.name) / "trainledger.toml")))
    else:
        build = publish_tables if is_restated else build_warehouse
        builder = build_story(folder, tmp_path_factory.mktemp(folder.name), needed, build)
    with open_tables(builder, needed) as tables:
        yield BuiltStory(folder, builder, tables)


def test_figures_are_as_derived_by_hand(story: BuiltStory) -> None:
    wrong = differences(story.builder, story.tables, read_expected(story.folder))
    assert not wrong, "\n".join(wrong)


def test_pieces_sum_to_their_line_on_every_basis(story: BuiltStory) -> None:
    assert lines_that_do_not_sum(story.tables) == []


def test_ledger_is_the_bill_invoice_by_invoice(story: BuiltStory) -> None:
    first, *restated = read_bills(story.folder)
    assert ledger_totals(story.tables) == bill_totals(first | {m: d[m] for d in restated for m in d})


def test_no_line_is_lost_on_the_way_to_the_ledger(story: BuiltStory) -> None:
    lines, ledger = total_by_basis(story.builder, story.tables, sorted(read_bills(story.folder)[0]))
    assert ledger.rows() == lines.rows()


def test_story_shows_where_each_figure_comes_from(story: BuiltStory) -> None:
    words = (story.folder / "README.md").read_text(encoding="utf-8")
    figures = read_expected(story.folder)
    assert [figure.sql for figure in figures if not figure.derivation] == []
    # Every figure of money or work stands in the story as it was derived.
    assert [f.expected for f in figures if f.expected.replace(".", "").isdigit() and f.expected not in words] == []
