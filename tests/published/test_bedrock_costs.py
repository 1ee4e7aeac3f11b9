"""Published prices of Amazon Bedrock, as lines of a bill: facts serving 6, cases V3 to V6."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support.bills import bedrock_hour as line
from support.bills import write_config, write_events, write_export
from support.ledgers import LazyBuilder, ask, lazy_warehouse

# V3: USD a million in and out by tier.
PRICES = {
    "standard": ("0.15", "0.60"),
    "priority": ("0.2625", "1.05"),
    "flex": ("0.075", "0.30"),
    "batch": ("0.075", "0.30"),
}
# V4: sold on the Marketplace. The writes of the cache are of the next day.
SOLD = {
    "bill_billing_entity": "AWS Marketplace",
    "line_item_product_code": "5xk2haiku45",
    "product_product_name": "Claude Haiku 4.5 (Amazon Bedrock Edition)",
}
HOUR = (
    ("InputTokenCount", "Input Tokens", "12.4", "13.64"),
    ("OutputTokenCount", "Response Tokens", "0.85", "4.675"),
    ("CacheReadInputTokenCount", "Cache Read Input Tokens", "40", "4.40"),
)
WRITES = (
    ("CacheWriteInputTokenCount", "Cache Write Input Tokens", "10", "13.75"),
    ("CacheWrite1hInputTokenCount", "1h Cache Write Input Tokens", "10", "22.00"),
)
NEXT_DAY = {
    "line_item_usage_start_date": "2026-07-11T10:00:00.000Z",
    "line_item_usage_end_date": "2026-07-11T11:00:00.000Z",
}


def on_marketplace(component: str, words: str, millions: str, cost: str, **more: str) -> dict[str, str]:
    description = f"AWS Marketplace software usage|us-east-1|Million {words}"
    more |= {"line_item_line_item_description": description, **SOLD}
    return line(f"USE1-MP:USE1_{component}-Units", "Units", millions, cost, **more)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> LazyBuilder:
    """A bill with the usage of every case."""
    lines = []
    for tier, (price_in, price_out) in PRICES.items():
        legacy = "" if tier == "standard" else f"-{tier}"
        # Three million input tokens and a million output tokens: half of each in either scheme.
        for kind, millions, price in (("input", Decimal("1.5"), price_in), ("output", Decimal("0.5"), price_out)):
            thousands, cost = str(millions * 1000), str(millions * Decimal(price))
            lines.append(line(f"USE1-Qwen3-32B-{kind}-tokens{legacy}", "1K tokens", thousands, cost))
            lines.append(line(f"USE1-qwen.qwen3-32b-mantle-{kind}-tokens-{tier}", "1K tokens", thousands, cost))
    lines += [on_marketplace(*sold) for sold in HOUR] + [on_marketplace(*sold, **NEXT_DAY) for sold in WRITES]
    lines += [
        line("USE1-CustomModelUnit-Minutes", "minute", "10", "0.785"),
        line("USE1-CustomModelUnit-Storage", "month", "2", "3.90"),
        line("USE1-Llama2-70B-ProvisionedThroughput-6MonthsCommit-ModelUnits", "hour", "720", "9417.60"),
    ]
    root = tmp_path_factory.mktemp("bedrock")
    export = write_export(root, {"2026-07": lines})
    return lazy_warehouse(write_config(root, billing=export, runs=write_events(root / "runs", [])))


def test_v3_each_tier_has_its_own_price(built: LazyBuilder) -> None:
    """V3 [PL 2026-07-27]: Qwen3-32B a million in/out: standard 0.15/0.60, priority 0.2625/1.05, flex and batch
    0.075/0.30; every rate in two naming schemes. At a mix of 3:1 of 4 million tokens: (3 x 0.15 + 0.60) / 4 = 0.2625,
    (3 x 0.2625 + 1.05) / 4 = 0.459375, (3 x 0.075 + 0.30) / 4 = 0.13125.
    """
    rows = ask(
        built,
        "select tier, cost_per_million_total_usd, input_tokens, output_tokens, model, idle_cost_usd "
        "from mart_inference_cost_daily where model = 'Qwen3 32B' order by tier",
    ).rows()
    three, one = Decimal(3_000_000), Decimal(1_000_000)
    assert rows == [
        ("batch", Decimal("0.131250"), three, one, "Qwen3 32B", 0),
        ("flex", Decimal("0.131250"), three, one, "Qwen3 32B", 0),
        ("priority", Decimal("0.459375"), three, one, "Qwen3 32B", 0),
        ("standard", Decimal("0.262500"), three, one, "Qwen3 32B", 0),
    ]


def test_v4_an_hour_with_cache_reads_costs_what_all_its_kinds_cost(built: LazyBuilder) -> None:
    """V4: Claude Haiku 4.5 regional 1.10/5.50, read 0.11: 1,000 calls of 12,400 in, 850 out, 40,000 cache read.

    12.4 M x 1.10 = 13.64; 0.85 M x 5.50 = 4.675; 40 M x 0.11 = 4.40; together 22.715. 10 M cache writes: for 5 minutes
    13.75 (1.375 a million), for an hour 22.00 (2.20). A call's cost per million output: 22.715 / 0.85 = 26.7235294118;
    per million of all 53.25 M tokens: 0.42657277.
    """
    read = (
        "select effective_cost_usd, output_tokens, cache_read_tokens, cache_write_tokens, cost_per_million_output_usd, "
        "cost_per_million_total_usd, model from mart_inference_cost_daily "
        "where model = 'Claude Haiku 4.5' and usage_date = '2026-07-10'"
    )
    assert ask(built, read).rows() == [
        (Decimal("22.715"), 850_000, 40_000_000, 0, Decimal("26.7235294118"), Decimal("0.42657277"), "Claude Haiku 4.5")
    ]
    kinds = ask(
        built,
        "select token_kind, million_tokens, unit_price_usd from detail_bedrock_usage_daily "
        "where model = 'Claude Haiku 4.5' and usage_date = '2026-07-11' order by 1",
    ).rows()
    assert kinds == [("cache_write_1h", 10, Decimal("2.2")), ("cache_write_5m", 10, Decimal("1.375"))]


def test_v5_an_active_window_of_an_imported_model(built: LazyBuilder) -> None:
    """V5 [CMI]: a window of 5 minutes of a copy of 2 units at 0.1570 a minute for both: 5 x 0.1570 = 0.785.

    As 10 unit-minutes at 0.0785. Its storage, 2 x 1.95 = 3.90 a month, serves nothing by itself. The literal of the
    usage type is unverified (facts serving 1).
    """
    assert ask(
        built,
        "select billed_by, effective_cost_usd, idle_cost_usd, cost_per_million_total_usd, token_evidence "
        "from mart_inference_cost_daily "
        "where coalesce(model, '') not in ('Qwen3 32B', 'Claude Haiku 4.5', 'Llama2-70B') order by 1",
    ).rows() == [
        ("active_capacity", Decimal("0.785"), 0, None, "none"),
        ("storage", Decimal("3.9"), Decimal("3.9"), None, "none"),
    ]


def test_v6_provisioned_throughput_costs_with_traffic_or_none(built: LazyBuilder) -> None:
    """V6: Llama 2 70B, 6 months, 13.08 a unit-hour: 720 hours are 9,417.60, idle or not."""
    assert ask(
        built,
        "select model, tier, effective_cost_usd, idle_cost_usd, busy_cost_usd, cost_per_million_total_usd "
        "from mart_inference_cost_daily where model = 'Llama2-70B'",
    ).rows() == [("Llama2-70B", "provisioned", Decimal("9417.6"), None, None, None)]
    price = "select token_kind, unit_price_usd from detail_bedrock_usage_daily where model = 'Llama2-70B'"
    assert ask(built, price).rows() == [("model_unit", Decimal("13.08"))]
