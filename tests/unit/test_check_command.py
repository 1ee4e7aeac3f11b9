"""`trainledger check`: what a person reads of a publication whose checks pass, warn or fail."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.bills import instance_hour, write_config, write_export
from support.ledgers import build_with

from pipelines.base.console import Console
from pipelines.config.policy import Policy
from pipelines.config.settings import Settings, load_settings
from pipelines.models.command import check_marts

OPEN_HOUR = instance_hour("2026-07-14T10", "i-0a", "p5.48xlarge", "55.04", bill_invoice_id="")
Captured = pytest.CaptureFixture[str]


def published(root: Path, policy: Policy) -> Settings:
    """An open month of one hour, built and published."""
    config = write_config(root, billing=write_export(root, {"2026-07": [OPEN_HOUR]}))
    settings = load_settings(config).model_copy(update={"policy": policy})
    build_with(settings)
    return settings


def summary(page: str) -> tuple[int, int]:
    """Checks that passed, and all of them, as the line of the summary says; those that did not pass warned."""
    (line,) = [line for line in page.splitlines() if "checks passed on publication 1, " in line]
    words = line.split()
    assert int(words[2]) - int(words[0]) == int(words[8])
    return int(words[0]), int(words[2])


@pytest.mark.slow
def test_a_check_that_warned_is_one_row_and_the_summary_counts_it(tmp_path: Path, capsys: Captured) -> None:
    """Use ends at 11:00; a cut asked for at 10:30 cuts nothing, which is one warning more than without it."""
    check_marts(published(tmp_path / "plain", Policy()), Console())
    plain = capsys.readouterr().out
    early = Policy(as_of=datetime(2026, 7, 14, 10, 30, tzinfo=UTC))
    check_marts(published(tmp_path / "early", early), Console())
    page = capsys.readouterr().out
    assert "cuts nothing" not in plain
    (row,) = [line for line in page.splitlines() if "cuts nothing" in line]
    # The columns of the table: table, severity, check, rows, example.
    cells = [cell.strip() for cell in row.strip("│ ").split("│")]
    assert cells[:4] == [
        "core/fct_invoice_monthly",
        "warn",
        "as of lies before the newest use and cuts nothing",
        "1",
    ]
    assert "as of at 2026-07-14T10:30:00" in cells[4]
    assert "newest use ended at 2026-07-14T11:00:00" in cells[4]
    # The same checks were run; one more of them did not pass.
    (passed, of), (passed_early, of_early) = summary(plain), summary(page)
    assert (passed_early, of_early) == (passed - 1, of)
