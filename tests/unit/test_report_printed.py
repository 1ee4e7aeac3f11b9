"""The printed page says what the page says, as text and on one sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from support.report_marts import FACTS, Marts, example, open_views, rendered, words

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.present.pdf import render_pdf
from pipelines.present.printed import page_of
from pipelines.present.render import answered


def printed(folder: Path, marts: Marts, form: Literal["pdf", "png"] = "pdf") -> tuple[dict[str, Any], bytes]:
    """What the printed page is told, and the page."""
    with DuckDBEngine() as engine:
        open_views(engine, folder, marts)
        told = page_of("training_cost", answered("training_cost", engine.query), FACTS)
        (page,) = render_pdf("training_cost", engine.query, FACTS, form)
        return told, page


def test_the_printed_page_has_the_figures_of_the_page(tmp_path: Path) -> None:
    told, pdf = printed(tmp_path, example())
    assert pdf.startswith(b"%PDF-")
    # Run bucket: 1600 + 560 + 1440 = 3600, as on the page.
    assert told["answers"][0]["answer"] == "$3,600"
    shown = words(rendered(tmp_path, example()))
    for table in ("pairs", "units", "invoices", "waste"):
        assert told[table], table
        for row in told[table]:
            # What a cell adds to its amount are the names of hardware and how many runs.
            figures = [cell.split(", ")[0].removesuffix(" less").removesuffix(" more") for cell in row[1:]]
            assert [figure for figure in figures if figure.lower() not in shown.lower()] == [], row
    for row in told["buckets"]:
        assert [cell for cell in row["cells"] if cell not in shown] == [], row["name"]


def test_the_printed_page_is_one_page_and_the_same_each_time(tmp_path: Path) -> None:
    picture = printed(tmp_path, example(), form="png")[1]
    assert picture.startswith(b"\x89PNG")
    assert printed(tmp_path, example())[1] == printed(tmp_path, example())[1]


def test_a_hostile_name_is_printed_as_text(tmp_path: Path) -> None:
    """Typst's markup, code and raw blocks: a page that ran it would not be laid out, or would say 2."""
    marts = example()
    name = '#panic("ran") $x$ *b* `r` \\ #(1+1) <script>'
    marts["mart_run_cost"] = [{**row, "model": name} for row in marts["mart_run_cost"]]
    told, pdf = printed(tmp_path, marts)
    assert pdf.startswith(b"%PDF-")
    # Longer than its column, so that it ends in dots.
    assert told["units"][0][0].startswith('#panic("ran") $x$ *b* `r` \\ #(1+1) …, ')


def test_a_page_without_anything_is_printed_too(tmp_path: Path) -> None:
    told, pdf = printed(tmp_path, {mart: [] for mart in example()})
    assert pdf.startswith(b"%PDF-")
    assert [answer["answer"] for answer in told["answers"]] == ["Not known", "Not enough evidence", "Not known"]
    assert printed(tmp_path, {})[0]["alarm"].startswith("This publication has no mart_cost_ledger_daily, ")
