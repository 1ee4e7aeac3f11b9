"""What published throughputs make a token cost, through a bill and serving events (facts serving 6: V1, V9, V10)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.bills import instance_time, moment, write_config, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.models.build import Builder

STARTED, HOUR = datetime(2026, 7, 1), timedelta(hours=1)
# KILN race, ml.p5en.48xlarge at 72.795 USD an hour, 8192 tokens in and 256 out: time to first token (p90, s), output
# tokens a second, and USD per million output tokens as printed.
RATE = "72.795"
RACE = (("16", 12.316, 311, 65.02), ("32", 4.672, 842, 24.02), ("64", 2.724, 1458, 13.87), ("128", 1.561, 2359, 8.57))
# Llama-3-8B on inf2.48xlarge at 12.98127 an hour, 649.17 output tokens a second at batch 8.
INF2_RATE, INF2_SPEED, MONTH = "12.98127", 649.17, timedelta(hours=730)
# Encoders on inf2.xlarge on demand: inferences a second, USD per million; an inference stands for a token.
ENCODER_RATE = "0.7582"
ENCODERS = (("albert-base-v2", "2999.88", 0.070), ("bert-base-cased", "2697.72", 0.078))


def server(name: str, resource: str, model: str, duration: timedelta, **fields: Any) -> list[dict[str, Any]]:
    start = {"event": "server_started", "server_id": name, "at": moment(STARTED), "model": model, "resource": resource}
    return [{**start, **fields}, {"event": "server_stopped", "server_id": name, "at": moment(STARTED + duration)}]


def traffic(name: str, begun: timedelta, ended: timedelta, output: int, **fields: Any) -> dict[str, Any]:
    times = {"from": moment(STARTED + begun), "to": moment(STARTED + ended)}
    counts = {"requests": min(output, 1000), "input_tokens": 0, "output_tokens": output}
    return {"event": "traffic", "server_id": name, **times, **counts, **fields}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    lines: list[Any] = []
    events: list[dict[str, Any]] = []
    nothing = timedelta()
    for concurrency, ttft, speed, _ in RACE:
        endpoint = f"arn:aws:sagemaker:us-west-2:000033334444:endpoint/race-{concurrency}"
        lines += instance_time(
            endpoint,
            "ml.p5en.48xlarge",
            RATE,
            STARTED,
            HOUR,
            line_item_product_code="AmazonSageMaker",
            line_item_operation="RunInstance",
            line_item_usage_type="USW2-Host:ml.p5en.48xlarge",
        )
        events += server(f"race-{concurrency}", endpoint, "race", HOUR, instance_type="ml.p5en.48xlarge")
        # At 128 it served 9.3 requests a second.
        prompts = 274_268_160 if concurrency == "128" else 0
        events.append(traffic(f"race-{concurrency}", nothing, HOUR, speed * 3600, ttft_p90=ttft, input_tokens=prompts))
    for number in (1, 2):
        name, node, half = f"llama-{number}", f"i-inf2-{number}", MONTH / 2
        lines += instance_time(node, "inf2.48xlarge", INF2_RATE, STARTED, MONTH)
        events += server(
            name, node, "llama-3-8b", MONTH, instance_type="inf2.48xlarge", max_tokens_per_second=INF2_SPEED
        )
        events += [traffic(name, nothing, half, 600_000_000), traffic(name, half, MONTH, 0)]
    for model, speed, _ in ENCODERS:
        lines += instance_time(f"i-{model}", "inf2.xlarge", ENCODER_RATE, STARTED, HOUR)
        events += server(model, f"i-{model}", model, HOUR, instance_type="inf2.xlarge")
        events.append(traffic(model, nothing, HOUR, round(float(speed) * 3600)))
    root = tmp_path_factory.mktemp("inference")
    (root / "serving").mkdir()
    (root / "serving" / "servers.jsonl").write_text("\n".join(map(json.dumps, events)))
    export = write_export(root, {"2026-07": lines})
    return lazy_warehouse(write_config(root, billing=export, serving=root / "serving"))


@pytest.mark.parametrize(("concurrency", "speed", "printed"), [(one[0], one[2], one[3]) for one in RACE])
def test_price_is_latency(built: Builder, concurrency: str, speed: int, printed: float) -> None:
    """V1: 72.795 x 1e6 / (tokens a second x 3600), to the cent; what meets 2 s to the first token is the capacity."""
    cost, tokens, capacity, utilization = ask(
        built,
        "select effective_cost_usd, output_tokens, capacity_tokens_per_second, utilization_ratio "
        f"from detail_serving_capacity_hourly where server_id = 'race-{concurrency}'",
    ).row(0)
    assert float(cost) * 1e6 / float(tokens) == pytest.approx(printed, abs=0.005)
    assert capacity == 2359
    assert float(utilization) == pytest.approx(speed / 2359, abs=1e-6)


def test_output_and_total_tokens_are_33_times_apart(built: Builder) -> None:
    """V1: all of 78,545 tokens a second at 72.795 are 0.257 per million, output alone 8.57."""
    cost, output, total = ask(
        built,
        "select sum(effective_cost_usd), sum(output_tokens), sum(input_tokens + output_tokens) "
        "from detail_serving_capacity_hourly where server_id = 'race-128'",
    ).row(0)
    assert float(cost) * 1e6 / float(total) == pytest.approx(0.257, abs=0.0005)
    assert float(total) / float(output) == pytest.approx(33.3, abs=0.1)


def test_endpoints_are_sagemaker(built: Builder) -> None:
    """The four endpoints together: 4 x 72.795, at SageMaker's price."""
    rows = ask(
        built,
        "select platform, sum(effective_cost_usd) from mart_inference_cost_daily where model = 'race' group by 1",
    ).rows()
    assert [(platform, float(cost)) for platform, cost in rows] == [("sagemaker", pytest.approx(291.18))]


def test_two_inferentia_servers_a_third_used(built: Builder) -> None:
    """V9: 2 x 730 x 12.98127 = 18,952.65; 1.2e9 of 3.412e9 tokens are 35.2 %; 15.79 per million, idle included.

    No request ran in half of the time, so busy alone it is half of that.
    """
    cost, idle, tokens, capacity = ask(
        built,
        "select sum(effective_cost_usd), sum(idle_cost_usd), sum(output_tokens), sum(capacity_tokens) "
        "from mart_inference_cost_daily where model = 'llama-3-8b' and platform = 'inferentia'",
    ).row(0)
    assert float(cost) == pytest.approx(18_952.6542)
    assert float(idle) == pytest.approx(9_476.3271)
    assert float(tokens) == 1.2e9
    assert float(tokens) / float(capacity) == pytest.approx(0.352, abs=0.0005)
    assert float(cost) * 1e6 / float(tokens) == pytest.approx(15.79, abs=0.005)


@pytest.mark.parametrize(("model", "printed"), [(one[0], one[2]) for one in ENCODERS])
def test_encoders_by_the_million(built: Builder, model: str, printed: float) -> None:
    """V10: 0.7582 x 1e6 / (inferences a second x 3600)."""
    cost = ask(built, f"select cost_per_million_output_usd from mart_inference_cost_daily where model = '{model}'")
    assert float(cost.item()) == pytest.approx(printed, abs=0.0005)
