"""Exports that cannot show what a run cost: the build ends well, and one sentence states the dollars and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bills import instance_hour, write_config, write_export
from support.commands import run_command
from support.ledgers import catalog_of

HOUR = instance_hour("2026-07-10T10", "i-1", "p5.48xlarge", "55.04")
# 24 hours of a p5 in one line: 24 x 55.04.
DAY = HOUR | {
    "line_item_usage_start_date": "2026-06-10T00:00:00.000Z",
    "line_item_usage_end_date": "2026-06-11T00:00:00.000Z",
    "line_item_usage_amount": "24",
    "line_item_unblended_cost": "1320.96",
    "pricing_public_on_demand_cost": "1320.96",
}
# The charges, and what a build reads for the figures that it prints last.
TABLES = ("fct_charge", "detail_billing_month", "detail_run_summary", "mart_cost_summary_monthly")
TABLES += ("mart_silicon_comparison",)


def test_an_unfit_export_is_one_sentence_of_each_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """June has a line of a whole day and an hour of no resource, July is of another payer, and nothing is tagged."""
    june = [DAY, instance_hour("2026-06-10T10", "", "p5.48xlarge", "55.04")]
    months = {"2026-06": june, "2026-07": [HOUR | {"bill_payer_account_id": "999911112222"}]}
    config = write_config(tmp_path, billing=write_export(tmp_path, months))
    monkeypatch.setattr("pipelines.models.build.load_catalog", lambda: catalog_of(TABLES))
    built = run_command(capsys, "build", "--config", str(config))
    assert built.code == 0, built.err
    for message in (
        ("$1,320.96", "Set the time granularity of the export to hourly."),
        ("$55.04", "Include resource ids in the export"),
        ("No accelerator on the bill has a run tag: name its key under [tags]",),
        ("$55.04", "payer account 999911112222", "earlier payer account 000011112222", "the export of the same payer"),
    ):
        (sentence,) = (line for line in (built.err + built.out).splitlines() if message[-1] in line)
        assert [part for part in message if part not in sentence] == []
