"""Rows of Bedrock by caller, as AWS printed them (shared/data/README.md, billing/bedrock)."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

from support.bills import write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse


def test_dollars_by_caller_and_team_are_those_that_aws_printed(tmp_path: Path, billing: Path) -> None:
    """Team BedrockDataScience 1.4718; Role-1 0.1980 and Role-2 0.1310 without a team; together 1.8008.

    Only four columns are printed: the rest is ours. Without a unit their tokens are unknown, not zero.
    """
    with (billing / "bedrock/aws_blog_iam_principal_rows.csv").open(encoding="utf-8", newline="") as file:
        lines = [
            {
                "line_item_usage_start_date": "2026-07-10T10:00:00.000Z",
                "line_item_usage_end_date": "2026-07-10T11:00:00.000Z",
                "line_item_usage_amount": "1",
                "line_item_product_code": "AmazonBedrock",
                **{name: text for name, text in row.items() if name != "scenario"},
            }
            for row in csv.DictReader(file)
        ]
    export = write_export(tmp_path, {"2026-07": lines})
    built = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    rows = ask(
        built,
        "select iam_principal, team, sum(effective_cost_usd), count(million_tokens) "
        "from detail_bedrock_usage_daily group by all order by 1",
    ).rows()
    role = "arn:aws:sts::123456789012:assumed-role/"
    # user-1: 0.0693 + 0.2145; user-2: 0.1980 + 0.9900. Sessions are people and are left out.
    assert rows == [
        ("arn:aws:iam::123456789012:user/user-1", "BedrockDataScience", Decimal("0.2838"), 0),
        ("arn:aws:iam::123456789012:user/user-2", "BedrockDataScience", Decimal("1.188"), 0),
        (f"{role}Role-1", None, Decimal("0.198"), 0),
        (f"{role}Role-2", None, Decimal("0.131"), 0),
    ]
    models = ask(built, "select distinct model from detail_bedrock_usage_daily order by 1")["model"].to_list()
    assert models == ["Claude Opus 4.6", "Claude Sonnet 4.6", "Nova Lite"]
