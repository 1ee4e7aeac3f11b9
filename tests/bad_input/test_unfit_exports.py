"""Exports that cannot show what a run cost: the build ends well, and one sentence states the dollars and the fix."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.bills import instance_hour, write_config, write_export
from support.commands import run_command

HOUR = instance_hour("2026-07-10T10", "i-1", "p5.48xlarge", "55.04")
# 24 hours of a p5 in one line: 24 x 55.04.
DAY = HOUR | {
    "line_item_usage_start_date": "2026-07-10T00:00:00.000Z",
    "line_item_usage_end_date": "2026-07-11T00:00:00.000Z",
    "line_item_usage_amount": "24",
    "line_item_unblended_cost": "1320.96",
    "pricing_public_on_demand_cost": "1320.96",
}


@pytest.mark.parametrize(
    ("months", "message"),
    [
        ({"2026-07": [DAY]}, ("$1,320.96", "Set the time granularity of the export to hourly.")),
        ({"2026-07": [HOUR | {"line_item_resource_id": ""}]}, ("$55.04", "Include resource ids in the export")),
        ({"2026-07": [HOUR]}, ("No accelerator on the bill has a run tag: name its key under [tags]",)),
        (
            {"2026-06": [instance_hour("2026-06-10T10", "i-1", "p5.48xlarge", "55.04")], "2026-07": [HOUR]},
            (
                "$55.04",
                "payer account 999911112222",
                "earlier payer account 000011112222",
                "the export of the same payer",
            ),
        ),
    ],
    ids=["daily", "no resource ids", "no tags", "another payer"],
)
def test_an_unfit_export_is_one_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    months: dict[str, Sequence[dict[str, str]]],
    message: tuple[str, ...],
) -> None:
    if len(months) > 1:
        months["2026-07"] = [line | {"bill_payer_account_id": "999911112222"} for line in months["2026-07"]]
    config = write_config(tmp_path, billing=write_export(tmp_path, months))
    built = run_command(capsys, "build", "--config", str(config))
    assert built.code == 0, built.err
    (sentence,) = (line for line in (built.err + built.out).splitlines() if message[-1] in line)
    assert [part for part in message if part not in sentence] == []
