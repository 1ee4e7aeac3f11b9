"""Published claims on where a model is served cheaper: facts serving 6, cases V2, V8 and V9's crossover."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support.bills import instance_time, moment, write_config, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.analysis.crossover import Capacity, blended_price, crossover_tokens, crossover_utilization

STARTED = datetime(2026, 7, 1)
# KILN race at concurrency 128: 9.3 requests a second of 8192 tokens in, 2,359 tokens out a second, for an hour.
INPUT, OUTPUT = 274_268_160, 2359 * 3600
ENDPOINT = "arn:aws:sagemaker:us-west-2:000033334444:endpoint/race"
QWEN = """
[[decisions.serving]]
model = "race"
candidate_model = "Qwen3 32B"
input_usd = "0.15"
output_usd = "0.60"
source = "AWS Price List, 2026-07-27"
same_quality = true
meets_latency = true
"""


def test_v2_the_same_traffic_on_bedrock(tmp_path: Path) -> None:
    """V2: at 8192:256 Qwen3-32B is (8192 x 0.15 + 256 x 0.60) / 8448 = 0.1636 a million; the endpoint at 72.795 an hour
    and 78,566 tokens a second must be used 72.795e6 / (3600 x 78,566 x 0.1636) = 1.57 times: never.
    """
    lines = instance_time(
        ENDPOINT,
        "ml.p5en.48xlarge",
        "72.795",
        STARTED,
        timedelta(hours=1),
        line_item_product_code="AmazonSageMaker",
        line_item_operation="RunInstance",
        line_item_usage_type="USW2-Host:ml.p5en.48xlarge",
    )
    times = {"from": moment(STARTED), "to": moment(STARTED + timedelta(hours=1))}
    start = {
        "server_id": "s",
        "at": times["from"],
        "model": "race",
        "resource": ENDPOINT,
        "max_tokens_per_second": 2359,
    }
    served = {"server_id": "s", **times, "requests": 33_480, "input_tokens": INPUT, "output_tokens": OUTPUT}
    events = [
        {"event": "server_started", "instance_type": "ml.p5en.48xlarge", **start},
        {"event": "traffic", **served},
        {"event": "server_stopped", "server_id": "s", "at": times["to"]},
    ]
    (tmp_path / "serving").mkdir()
    (tmp_path / "serving" / "s.jsonl").write_text("\n".join(map(json.dumps, events)))
    config = write_config(tmp_path, billing=write_export(tmp_path, {"2026-07": lines}), serving=tmp_path / "serving")
    config.write_text(config.read_text() + QWEN)
    ((price, share, volume, verdict, family),) = ask(
        lazy_warehouse(config),
        "select blended_price_usd, crossover_utilization_ratio, crossover_tokens_per_month, verdict, "
        "recommended_family from mart_serving_comparison",
    ).rows()
    assert float(price) == pytest.approx(0.1636, abs=0.0001)
    assert share == pytest.approx(1.57, abs=0.005)
    assert (volume, verdict, family) == (None, "never", "bedrock")
    # The blend at exactly 8192:256.
    assert blended_price({"input": 8192, "output": 256}, {"input": 0.15, "output": 0.60}) == pytest.approx(
        0.163636, abs=1e-6
    )


def test_v8_a_fixed_cost_breaks_even_whatever_its_utilization() -> None:
    """V8: 4,608 a month against 10 a million is 460.8 million tokens; the page prints 0.46, 1.5 and 4.6 million."""
    month = Capacity(6.40 * 720 / 730, tokens_per_second=12.24e6 / 3600)
    assert crossover_tokens(month, 10) == pytest.approx(460.8e6)


def test_v9_two_inferentia_instances_never_reach_their_crossover() -> None:
    """V9: 18,952.65 / 0.60 = 31.6e9 tokens are above the 3.41e9 that two serve; against 5.50 u* is 1.01, never."""
    two = Capacity(12.98127, 649.17, replicas=2)
    assert two.month_usd == pytest.approx(18_952.65, abs=0.005)
    assert two.month_usd / 0.60 * 1e6 == pytest.approx(31.6e9, rel=0.001)
    assert 2 * (two.month_tokens or 0) == pytest.approx(3.41e9, rel=0.001)
    assert crossover_tokens(two, 0.60) is None and crossover_tokens(two, 5.50) is None
    assert crossover_utilization(two, 5.50) == pytest.approx(1.01, abs=0.005)
