"""The PDF of the training report shows what the page shows, as text, and is the same each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.report_marts import FACTS, Marts, example, rendered

from pipelines.present.blocks import blocks_of
from pipelines.present.pdf import pdf_of_page


def tables(page: str) -> list[list[list[str]]]:
    """The cells of every table of a page as its PDF has them."""

    def found(blocks: list[dict[str, Any]]) -> list[list[list[str]]]:
        cells = []
        for block in blocks:
            cells += [table for child in block.get("children", []) for table in found(child)]
            if block["kind"] == "table":
                cells.append(
                    [["".join(run[0] for run in cell["runs"]) for cell in row["cells"]] for row in block["rows"]]
                )
        return cells

    return found(blocks_of(page))


def test_the_pdf_has_the_figures_of_the_page(tmp_path: Path) -> None:
    buckets = next(table for table in tables(rendered(tmp_path, example())) if table[0][0] == "Bucket")
    # Run bucket: 1600 + 560 + 1440 = 3600; the bar next to its share is not text.
    assert buckets[1][1:3] == ["$3,600", "82.2%"]
    assert [row[0].split("\v")[0] for row in buckets[1:4]] == ["Training runs", "Idle", "Unattributed"]


def test_a_cell_over_several_columns_keeps_its_width(tmp_path: Path) -> None:
    (verdicts,) = [row for table in tables(rendered(tmp_path, example())) for row in table if row[0] == "Verdict"][:1]
    assert len(verdicts) == 2


def test_the_pdf_is_the_same_each_time(tmp_path: Path) -> None:
    page = rendered(tmp_path, example())
    assert pdf_of_page(page, None, FACTS)[0].startswith(b"%PDF-")
    assert pdf_of_page(page, None, FACTS) == pdf_of_page(page, None, FACTS)


@pytest.mark.parametrize("marts", [{mart: [] for mart in example()}, {}], ids=["empty", "missing"])
def test_a_page_without_anything_is_printed_too(tmp_path: Path, marts: Marts) -> None:
    assert pdf_of_page(rendered(tmp_path, marts), None, FACTS)[0].startswith(b"%PDF-")


def test_a_hostile_name_is_printed_as_text(tmp_path: Path) -> None:
    """Typst's markup, code and raw blocks: a page that ran it would not be laid out, or would show 2."""
    marts = example()
    name = '#panic("ran") $x$ *b* `r` \\ #(1+1) <script>'
    marts["mart_run_cost"] = [{**row, "model": name} for row in marts["mart_run_cost"]]
    page = rendered(tmp_path, marts)
    assert pdf_of_page(page, None, FACTS)[0].startswith(b"%PDF-")
    assert any(name in cell for table in tables(page) for row in table for cell in row)
