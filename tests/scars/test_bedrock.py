"""Bedrock lines: every unit AWS bills tokens in is one number of tokens."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from support.bills import write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse


def line(usage_type: str, unit: str, quantity: str, cost: str, **more: str) -> dict[str, str]:
    return {
        "line_item_usage_start_date": "2026-07-10T10:00:00.000Z",
        "line_item_usage_end_date": "2026-07-10T11:00:00.000Z",
        "line_item_usage_type": usage_type,
        "line_item_usage_amount": quantity,
        "line_item_unblended_cost": cost,
        "line_item_product_code": "AmazonBedrock",
        "line_item_operation": "InvokeModelInference",
        "pricing_unit": unit,
        **more,
    }


def test_tokens_in_thousands_millions_and_marketplace_units_are_one_quantity(tmp_path: Path) -> None:
    """T15. Facts 4.6: `1K tokens` times 0.001 is millions, `1M tokens` is, `Units` is where the description says so.

    500 thousand input, 2.5 million output, 3 million cached read, 4 million of a Marketplace model; an hour of
    provisioned throughput has no tokens, and a Marketplace database is no model. Costs 1 + 2 + 0.5 + 6 + 20 = 29.5.
    """
    marketplace = {"bill_billing_entity": "AWS Marketplace", "line_item_product_code": "a1b2c3d4"}
    lines = [
        line("USE1-Claude4.6Sonnet-input-tokens", "1K tokens", "500", "1"),
        line("USE1-Claude4.6Sonnet-output-tokens-batch", "1M tokens", "2.5", "2"),
        line("USE1-Claude4.6Sonnet-cache-read-input-token-count", "1M tokens", "3", "0.5"),
        line(
            "USE1-MP:USE1_OutputTokenCount-Units",
            "Units",
            "4",
            "6",
            **marketplace
            | {
                "product_product_name": "A Model (Amazon Bedrock Edition)",
                "line_item_line_item_description": "AWS Marketplace software usage|us-east-1|Million Output Tokens",
            },
        ),
        line("USE1-ModelUnits-1-month", "Hrs", "1", "20"),
        line("USE1-MP:other-Units", "Units", "9", "7", **marketplace | {"product_product_name": "A Database"}),
    ]
    export = write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    rows = ask(
        builder,
        "select token_kind, million_tokens, effective_cost_usd from detail_bedrock_usage_daily order by 3",
    ).rows()
    assert rows == [
        ("cache_read", Decimal("3"), Decimal("0.5")),
        ("input", Decimal("0.5"), Decimal("1")),
        ("output", Decimal("2.5"), Decimal("2")),
        ("output", Decimal("4"), Decimal("6")),
        ("model_unit", None, Decimal("20")),
    ]
