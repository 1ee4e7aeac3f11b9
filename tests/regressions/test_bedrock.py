"""Bedrock lines: every unit AWS bills tokens in is one number of tokens."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from support.bills import bedrock_hour as line
from support.bills import write_config, write_events, write_export
from support.focus_exports import focus_lines, normalized
from support.lab import Lab
from support.ledgers import ask, lazy_warehouse

from pipelines.ingest.billing.columns import FOCUS
from pipelines.models.contract import load_contract


def test_tokens_in_thousands_millions_and_marketplace_units_are_one_quantity(tmp_path: Path) -> None:
    """T15. Facts 4.6: `1K tokens` times 0.001 is millions, `1M tokens` is, `Units` is where the description states it.

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


def test_lines_that_differ_in_their_product_or_unit_alone(tmp_path: Path) -> None:
    """A line of each of two models and of a database that one seller bills under one usage type, and one usage type in
    two units: each line counts once. Millions of tokens 4, 5, 1 and 1; with the database 6 + 7 + 8 + 1 + 2 = 24.
    """
    sold = {
        "bill_billing_entity": "AWS Marketplace",
        "line_item_product_code": "a1b2c3d4",
        "line_item_line_item_description": "AWS Marketplace software usage|us-east-1|Million Output Tokens",
    }
    lines = [
        line("USE1-MP:USE1_OutputTokenCount-Units", "Units", amount, cost, **sold | {"product_product_name": name})
        for name, amount, cost in (
            ("A Model (Amazon Bedrock Edition)", "4", "6"),
            ("B Model (Amazon Bedrock Edition)", "5", "7"),
            ("A Database", "9", "8"),
        )
    ]
    lines += [
        line("USE1-NovaLite-input-tokens", "1K tokens", "1000", "1"),
        line("USE1-NovaLite-input-tokens", "1M tokens", "1", "2"),
    ]
    export = write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    tokens = "select million_tokens, effective_cost_usd from detail_bedrock_usage_daily order by 2"
    assert ask(builder, tokens).rows() == [(1, 1), (1, 2), (4, 6), (5, 7)]
    assert ask(builder, "select sum(effective_cost_usd) from fct_ledger").rows() == [(24,)]


def test_each_dollar_of_bedrock_is_in_one_bucket(tmp_path: Path) -> None:
    """Tokens 3, an unknown usage type 4 and an hour of capacity 20 serve; customization 5 trains and a credit of
    -2 gives back, an agent's runtime 6 calls: none of these serves. Together 36.
    """
    tokens = line("USE1-NovaLite-input-tokens", "1K tokens", "1000", "3")
    lines = [
        tokens,
        line("USE1-NovaLite-cache-write-2h-input-tokens", "1K tokens", "1000", "4"),
        line("USE1-NovaLite-ProvisionedThroughput-NoCommit-ModelUnits", "hour", "1", "20"),
        line("USE1-NovaLite-Customization-Training", "1K tokens", "1000", "5"),
        {**tokens, "line_item_line_item_type": "Credit", "line_item_unblended_cost": "-2"},
        line("USE1-AgentRuntime-vCPU", "vCPU-Hours", "1", "6", line_item_product_code="AmazonBedrockAgentCore"),
    ]
    export = write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    buckets = ask(builder, "select bucket, sum(billed_cost_usd) from fct_ledger group by 1 order by 1").rows()
    assert buckets == [("other", Decimal("9")), ("serving", Decimal("27"))]
    # The unknown one is a row of its own and of its model, its tokens in no rate.
    assert ask(
        builder,
        "select billed_by, input_tokens, idle_cost_usd, effective_cost_usd, missing_evidence is not null "
        "from mart_inference_cost_daily where model = 'Nova Lite' order by 1",
    ).rows() == [
        ("capacity", None, None, Decimal("20"), True),
        ("tokens", Decimal("1000000"), 0, Decimal("3"), False),
        ("unknown", None, None, Decimal("4"), True),
    ]


def test_capacity_bought_for_a_term_is_a_commitment(tmp_path: Path) -> None:
    """Two hours at 13.08 of a model provisioned for six months are 26.16, tokens reserved for a month 7; the hour
    without a term, 20, is no commitment. Nothing on the bill shows their use or end; all 53.16 stay in one bucket.
    """
    arn = "arn:aws:bedrock:us-east-1:111122223333:provisioned-model/p1"
    sold = {"line_item_product_code": "a1b2c3d4", "product_product_name": "A Model (Amazon Bedrock Edition)"}
    lines = [
        line(
            "USE1-Llama2-70B-ProvisionedThroughput-6MonthsCommit-ModelUnits",
            "hour",
            "2",
            "26.16",
            line_item_resource_id=arn,
        ),
        line("USE1-Llama2-70B-ProvisionedThroughput-NoCommit-ModelUnits", "hour", "1", "20"),
        line(
            "USE1-MP:USE1_Reserved_1Month_InputTPM_Geo-Units",
            "Units",
            "1",
            "7",
            bill_billing_entity="AWS Marketplace",
            **sold,
        ),
    ]
    export = write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    assert ask(
        builder,
        "select commitment_kind, commitment_id, purchase_term, commitment_cost_usd, used_cost_usd, unused_cost_usd, "
        "utilization_ratio, ended_at, unallocated_fee_usd from mart_commitment_utilization_monthly order by 1",
    ).rows() == [
        ("bedrock_provisioned", arn, "6Months", Decimal("26.16"), None, None, None, None, 0),
        ("bedrock_reserved", "", "1Month", Decimal("7"), None, None, None, None, 0),
    ]
    buckets = ask(builder, "select bucket, sum(effective_cost_usd) from fct_ledger group by 1").rows()
    assert buckets == [("serving", Decimal("53.16"))]
    # The stranded part of what GPUs no longer use is not made unknown by them, nor is the utilization of the others.
    assert ask(builder, "select still_committed_cost_usd from detail_savings_commitment_monthly").rows() == [(0,)]
    assert ask(builder, "select sum(commitment_count) from detail_commitment_summary_monthly").rows() == [(None,)]


def test_tokens_at_a_price_of_zero_are_not_taken_for_free() -> None:
    """AWS lists rows at $0.0000 (facts serving 2.3): two million tokens have a warning and no price, others 0.06.

    What a million output tokens at 3.20 cost is no cost of the three million.
    """
    lines = [
        line("USE1-NovaLite-input-tokens", "1K tokens", "1000", "0.06"),
        line("USE1-NovaPro-input-tokens", "1K tokens", "2000", "0"),
        line("USE1-NovaPro-output-tokens", "1K tokens", "1000", "3.20"),
    ]
    times = {"line_item_usage_start_date": "2026-07-10 10:00:00", "line_item_usage_end_date": "2026-07-10 11:00:00"}
    name = "detail_bedrock_usage_daily"
    (check,) = (made for made in load_contract(f"detail/{name}").checks if made.name == "tokens_at_a_price_of_zero")
    with Lab({"2026-07": [{**one, **times} for one in lines]}, {}) as made:
        prices = made.ask(f"select model, unit_price_usd from {name} order by 1, 2 nulls first", name)
        compared = "mart_serving_comparison"
        today = f"select model, baseline_cost_per_million_total_usd from {compared} order by 1"
        assert made.ask(today, compared) == [("Nova Lite", Decimal("0.06")), ("Nova Pro", None)]
        warned = made.ask(check.query.format(batch=name), name)
        mart = "mart_inference_cost_daily"
        rates = made.ask(
            f"select model, cost_per_million_total_usd, left(missing_evidence, 5) from {mart} order by 1", mart
        )
    assert prices == [("Nova Lite", Decimal("0.06")), ("Nova Pro", None), ("Nova Pro", Decimal("3.20"))]
    assert rates == [("Nova Lite", Decimal("0.06"), None), ("Nova Pro", None, "price")]
    assert [row[:3] for row in warned] == [("USE1-NovaPro-input-tokens", "USD", 2)]


def test_tokens_of_a_focus_export_are_those_of_the_report() -> None:
    """A million input tokens at 0.06 by x_UsageType, and half a million on the Marketplace, which its product names."""
    mine = {
        "x_ServiceCode": "AmazonBedrock",
        "ServiceName": "Amazon Bedrock",
        "x_UsageType": "USE1-NovaLite-input-tokens",
    }
    sold = {
        "PublisherName": "Anthropic",
        "x_ServiceCode": "5xk2haiku45",
        "ServiceName": "Claude Haiku 4.5 (Amazon Bedrock Edition)",
        "x_UsageType": "USE1-MP:USE1_CacheReadInputTokenCount_Global-Units",
        "ChargeDescription": "AWS Marketplace software usage|us-east-1|Million Cache Read Input Tokens",
    }
    costs = {"BilledCost": "0.06", "EffectiveCost": "0.06", "ListCost": "0.06"}
    lines = [
        {**mine, **costs, "ConsumedQuantity": "1000", "PricingUnit": "1K tokens"},
        {**sold, **costs, "ConsumedQuantity": "0.5", "PricingUnit": "Units"},
    ]
    made = Lab({"2026-07": normalized(focus_lines(lines, "2026-07"))}, {}, listed=FOCUS)
    what = "model, token_kind, route, million_tokens, unit_price_usd, bucket"
    with made:
        rows = made.ask(f"select {what} from detail_bedrock_usage_daily order by 1", "detail_bedrock_usage_daily")
    assert rows == [
        ("Claude Haiku 4.5", "cache_read", "global", Decimal("0.5"), Decimal("0.12"), "serving"),
        ("Nova Lite", "input", "regional", Decimal("1"), Decimal("0.06"), "serving"),
    ]
