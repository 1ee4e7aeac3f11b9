"""Tokens of Bedrock's invocation logs against the bill; counts of both are set in each case."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.bills import write_config, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.models.build import Builder

ACCOUNT = "000033334444"
HAIKU = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
# Millions of tokens by suffix of the usage type.
BILLED = (("input-tokens", "12.4"), ("output-tokens", "1.0"), ("cache-read-input-token-count", "40"))


def line(kind: str, millions: str, region: str = "us-east-1", prefix: str = "USE1") -> dict[str, str]:
    return {
        "line_item_product_code": "AmazonBedrock",
        "line_item_usage_type": f"{prefix}-Claude4.5Haiku-{kind}",
        "line_item_operation": "InvokeModelInference",
        "line_item_usage_amount": str(float(millions) * 1000),
        "line_item_unblended_cost": millions,
        "pricing_public_on_demand_cost": millions,
        "pricing_unit": "1K tokens",
        "product_region_code": region,
        "line_item_usage_start_date": "2026-07-14T10:00:00.000Z",
        "line_item_usage_end_date": "2026-07-14T11:00:00.000Z",
    }


def call(number: int, region: str = "us-east-1", account: str = ACCOUNT, **tokens: int) -> dict[str, Any]:
    return {
        "schemaType": "ModelInvocationLog",
        "timestamp": "2026-07-14T10:20:00Z",
        "accountId": account,
        "region": region,
        "requestId": str(number),
        "modelId": HAIKU,
        "input": {"inputTokenCount": tokens.get("input", 0), "cacheReadInputTokenCount": tokens.get("cached", 0)},
        "output": {"outputTokenCount": tokens.get("output", 0)},
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    root: Path = tmp_path_factory.mktemp("reconciled")
    lines = [line(kind, millions) for kind, millions in BILLED]
    lines += [line("output-tokens", "5", "us-west-2", "USW2")]
    # Input agrees, no cached token is logged, and more output than is billed.
    calls = [call(1, input=12_400_000, output=1_500_000), call(2, "eu-west-1", output=70)]
    calls += [call(3, "ap-south-1", "999900001111", output=5)]
    (root / "logs").mkdir()
    (root / "logs" / "a.json.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, calls)).encode()))
    config = write_config(root, billing=write_export(root, {"2026-07": lines}))
    config.write_text(
        f'{config.read_text()}\n[[serving]]\nname = "logs"\nkind = "bedrock_log"\nlocation = "{root / "logs"}"\n'
    )
    return lazy_warehouse(config)


@pytest.mark.parametrize(
    ("region", "kind", "difference", "reason"),
    [
        ("us-east-1", "input", 0, "agrees"),
        ("us-east-1", "output", -500_000, "more in the log"),
        ("us-east-1", "cache_read", 40_000_000, "cache kinds"),
        ("us-west-2", "output", 5_000_000, "logging off"),
        ("eu-west-1", "output", -70, "other region"),
        ("ap-south-1", "output", -5, "other account"),
    ],
)
def test_each_difference_has_its_reason(built: Builder, region: str, kind: str, difference: int, reason: str) -> None:
    name = "detail_bedrock_reconciliation_monthly"
    rows = ask(
        built,
        f"select model, difference_tokens, reason from {name} where region_id = '{region}' and token_kind = '{kind}'",
    ).rows()
    assert [(model, float(found)) for model, found, _ in rows] == [("Claude Haiku 4.5", difference)]
    assert rows[0][2].startswith(reason)
