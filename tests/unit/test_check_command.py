"""`trainledger check`: what a person reads of a publication whose checks pass, warn or fail."""

from __future__ import annotations

import re
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


def summary(page: str) -> tuple[int, int, int]:
    """Checks that passed, all of them, and warnings, in the line of the summary."""
    found = re.search(r"^([\d,]+) of ([\d,]+) checks passed on publication 1; (\d+) warnings?\.$", page, re.MULTILINE)
    assert found
    passed, of, warned = (int(number.replace(",", "")) for number in found.groups())
    return passed, of, warned


@pytest.mark.slow
def test_a_check_that_warned_is_one_sentence_and_the_summary_counts_it(tmp_path: Path, capsys: Captured) -> None:
    """Use ends at 11:00; a cut requested for 10:30 cuts nothing, which is one warning more than without it."""
    check_marts(published(tmp_path / "plain", Policy()), Console())
    plain = capsys.readouterr().out
    early = Policy(as_of=datetime(2026, 7, 14, 10, 30, tzinfo=UTC))
    check_marts(published(tmp_path / "early", early), Console())
    page = capsys.readouterr().out
    assert "cuts nothing" not in plain
    (row,) = [line for line in page.splitlines() if "cuts nothing" in line]
    start = "Warning: as of lies before the newest use and cuts nothing: 1 row of fct_invoice_monthly, for example "
    assert row.startswith(start)
    assert "as of at 2026-07-14 10:30 UTC" in row
    assert "newest use ended at 2026-07-14 11:00 UTC" in row
    assert row.endswith("Owner: ml-finops.")
    # The same checks were run; one more of them did not pass.
    (passed, of, warned), early = summary(plain), summary(page)
    assert early == (passed - 1, of, warned + 1)
