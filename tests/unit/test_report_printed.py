"""The PDF of the training report shows what the page shows, as text, and is the same each time."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from support.report_marts import PUBLISHED, Marts, example, invoice, open_marts, printed, printed_rows, rendered

from pipelines.base.console import Console
from pipelines.base.resources import known_reports
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.present.pdf import SCALES, pdf_of_page
from pipelines.present.terminal import show_page
from pipelines.present.text import show_key_figures


def test_the_pdf_has_the_figures_of_the_page(tmp_path: Path) -> None:
    rows = printed_rows(rendered(tmp_path, example()))
    at = next(at for at, row in enumerate(rows) if row[0].startswith("Training runs"))
    # Run bucket: 1600 + 560 + 1440 = 3600; the bar next to its share is not text.
    assert rows[at][1:3] == ["$3,600", "82.2%"]
    names = ["Training runs", "Serving", "Idle", "Unattributed"]
    assert all(row[0].startswith(name) for row, name in zip(rows[at:], names, strict=False))


def test_every_chart_of_the_page_is_printed(tmp_path: Path) -> None:
    page = rendered(tmp_path, example())
    # One comparison and the days of the ledger.
    assert len(printed(page, "image")) == page.count('class="chart wide"') == 2


def test_a_cell_over_several_columns_keeps_its_width(tmp_path: Path) -> None:
    """The name of a machine stands over all five columns of its unit costs."""
    (group,) = [row for row in printed_rows(rendered(tmp_path, example())) if row[0].startswith("p5.48xlarge, GPU")][:1]
    assert len(group) == 1


def test_a_long_name_leaves_the_figures_next_to_it_legible(tmp_path: Path) -> None:
    """40 letters without a separator may break after each 16."""
    marts = example()
    marts["mart_run_cost"] = [{**row, "model": "x" * 40} for row in marts["mart_run_cost"]]
    name = "\u200b".join(("x" * 16, "x" * 16, "x" * 8))
    assert any(name in cell for row in printed_rows(rendered(tmp_path, marts)) for cell in row)


def test_the_pdf_is_the_same_each_time(tmp_path: Path) -> None:
    page = rendered(tmp_path, example())
    assert pdf_of_page(page, None, PUBLISHED)[0].startswith(b"%PDF-")
    assert pdf_of_page(page, None, PUBLISHED) == pdf_of_page(page, None, PUBLISHED)


@pytest.mark.parametrize("kind", known_reports())
@pytest.mark.parametrize("marts", [{mart: [] for mart in example()}, {}], ids=["empty", "missing"])
def test_a_page_without_anything_is_printed_too(tmp_path: Path, marts: Marts, kind: str) -> None:
    assert pdf_of_page(rendered(tmp_path, marts, PUBLISHED, kind), None, PUBLISHED)[0].startswith(b"%PDF-")


def test_the_terminal_has_the_figures_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_page(rendered(tmp_path, example()), Console())
    lines = [" ".join(line.replace("│", " ").split()) for line in capsys.readouterr().out.splitlines()]
    # As in the PDF, 1600 + 560 + 1440; a heading, and a sentence with its punctuation.
    assert any(line.startswith("Training runs; cost joined") and " $3,600 82.2% " in line for line in lines)
    assert {"Cost by bucket", "Indicative: not enough evidence"} <= set(lines)


def test_the_stamp_of_several_months_stands_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    months = [invoice(date(2026, at, 1), f"{at}", "1", "1", "reconciled") for at in (3, 4, 5, 6)]
    marts = {**example(), "mart_invoice_reconciliation_monthly": months}
    show_page(rendered(tmp_path, marts), Console())
    assert "4 months Reconciled 1 data warning" in capsys.readouterr().out


@pytest.mark.parametrize("kind", known_reports())
@pytest.mark.parametrize("marts", [{mart: [] for mart in example()}, {}], ids=["empty", "missing"])
def test_a_page_without_anything_is_shown_too(
    tmp_path: Path, marts: Marts, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_page(rendered(tmp_path, marts, PUBLISHED, kind), Console())
    assert capsys.readouterr().out


def test_type_is_set_smaller_only_where_that_helps(tmp_path: Path) -> None:
    """A page whose last lines stand on a fourth sheet: in smaller type it fits on three, and never on one."""
    page = rendered(tmp_path, example()).replace("</header>", f"</header>{'<p>A line.</p>' * 15}", 1)
    sizes = {sheets: pdf_of_page(page, sheets, PUBLISHED, "png") for sheets in (None, 4, 3, 1)}
    assert [len(made) for made in sizes.values()] == [4, 4, 3, 4]
    assert sizes[None] == sizes[4] == sizes[1]
    # The text has 9 points.
    assert 9 * min(SCALES) >= 8


def test_the_last_lines_of_a_build_count_every_run_that_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two GPU runs and two Trainium runs succeeded, and a third GPU run failed."""
    with DuckDBEngine(threads=1) as marts:
        open_marts(marts, tmp_path, example())
        show_key_figures(marts, Console())
    assert "3 GPU and 2 Trainium runs (1 and 0 failed)" in capsys.readouterr().out


def test_the_last_lines_of_a_build_name_hours_to_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """July is open: the bill has the fees of its whole length, so what is unused of them is no figure to date. Of a
    payer in another currency an open month is not one of this.
    """
    june, july = example()["mart_invoice_reconciliation_monthly"]
    other = [july | {"invoice_id": "1", "status": "reconciled"}, july | {"currency": "EUR"}]
    for invoices, is_named in (([june, july], True), ([june], False), ([june, *other], False)):
        changed = example() | {"mart_invoice_reconciliation_monthly": invoices}
        with DuckDBEngine(threads=1) as marts:
            folder = tmp_path / str(len(invoices))
            folder.mkdir()
            open_marts(marts, folder, changed)
            show_key_figures(marts, Console())
        assert ("hours to come included" in capsys.readouterr().out) is is_named
        (further,) = re.findall(r"<p>A further .*</p>", rendered(folder, changed))
        assert ("include hours to come" in further) is is_named


@pytest.mark.parametrize(
    ("ends", "shown"),
    [((None, None), "no interval"), (("-4.124", "0.942"), "95% interval of the saving −412.4% to 94.2%")],
)
def test_the_last_lines_of_a_build_show_the_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ends: tuple[str | None, str | None], shown: str
) -> None:
    low, high = (None if end is None else Decimal(end) for end in ends)
    marts = example()
    interval = {"saving_low_ratio": low, "saving_high_ratio": high}
    marts["mart_silicon_comparison"] = [row | interval for row in marts["mart_silicon_comparison"]]
    with DuckDBEngine(threads=1) as engine:
        open_marts(engine, tmp_path, marts)
        show_key_figures(engine, Console())
    assert shown in capsys.readouterr().out


def test_the_last_lines_of_a_build_show_a_proven_pair_before_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An indicative pair of 99 runs and a proven one of two: the proven one."""
    marts = example()
    first = marts["mart_silicon_comparison"][0] | {"cost_basis": "effective", "cheaper_baseline_instance_type": None}
    names = {"indicative": 99, "proven": 2}
    marts["mart_silicon_comparison"] = [
        first | {"workload_id": f"{verdict}-one", "verdict": verdict, "baseline_run_count": count}
        for verdict, count in names.items()
    ]
    with DuckDBEngine(threads=1) as engine:
        open_marts(engine, tmp_path, marts)
        show_key_figures(engine, Console())
    shown = capsys.readouterr().out
    assert "proven-one" in shown
    assert "indicative" not in shown


def test_a_hostile_name_is_printed_as_text(tmp_path: Path) -> None:
    """Typst's markup, code and raw blocks: a page that ran it would not be laid out, or would show 2."""
    marts = example()
    name = '#panic("ran") $x$ *b* `r` \\ #(1+1) <script>'
    marts["mart_run_cost"] = [{**row, "model": name} for row in marts["mart_run_cost"]]
    page = rendered(tmp_path, marts)
    assert pdf_of_page(page, None, PUBLISHED)[0].startswith(b"%PDF-")
    assert any(name in cell for row in printed_rows(page) for cell in row)
