"""Recorded requests of others, replayed against generated bills (shared/data/README.md, serving).

The first 1000 requests of Azure's conversation trace have 1,014,189 tokens in and 247,262 out, from 18:15:46 to
18:19:22; those of Mooncake's 13,732,944 in, of which an endless cache of blocks of 512 had 2,962,776, and 349,357 out.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from support.lab import Lab

from pipelines.config.sources import ServingServer, ServingSource
from pipelines.ingest.serving.sources import read_serving

ACCOUNT, HAIKU = "000033334444", "us.anthropic.claude-haiku-4-5-20251001-v1:0"
MART = "mart_inference_cost_daily"
MINUTE = timedelta(minutes=1)


def azure(shared_data: Path) -> Iterator[tuple[datetime, int, int]]:
    """Time, tokens in and tokens out of each request; the times have seven decimals and no zone."""
    with (shared_data / "serving/azure_llm_2023_conv_first1000.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield datetime.fromisoformat(row["TIMESTAMP"][:23]), int(row["ContextTokens"]), int(row["GeneratedTokens"])


def hour(started_at: datetime, **more: str) -> dict[str, str]:
    times = {"line_item_usage_start_date": str(started_at), "line_item_usage_end_date": str(started_at + 60 * MINUTE)}
    return {**times, "product_region_code": "us-west-2", "pricing_currency": "USD", **more}


def priced(cost: str) -> dict[str, str]:
    return {"line_item_unblended_cost": cost, "pricing_public_on_demand_cost": cost}


def rows_of(source: ServingSource) -> dict[str, list[dict[str, Any]]]:
    found = read_serving([source])
    assert list(found.warnings) == []
    return {name: frame.to_dicts() for name, frame in found.tables.items()}


def test_azure_requests_on_bedrock_cost_what_their_tokens_do(shared_data: Path, tmp_path: Path) -> None:
    """Claude Haiku 4.5 at 1.10 and 5.50 a million (facts serving V4): 1.1156079 + 1.3599410 = 2.4755489, by 1.261451
    million tokens 1.9624614036. The log has the same tokens, in files that overlap by half."""
    calls = [
        {
            "schemaType": "ModelInvocationLog",
            "timestamp": f"{at.isoformat(timespec='milliseconds')}Z",
            "accountId": ACCOUNT,
            "region": "us-west-2",
            "requestId": f"request-{number}",
            "modelId": HAIKU,
            "input": {"inputTokenCount": given},
            "output": {"outputTokenCount": written},
        }
        for number, (at, given, written) in enumerate(azure(shared_data))
    ]
    for name, some in (("a", calls[:750]), ("b", calls[250:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, some)))
    found = read_serving([ServingSource(name="log", kind="bedrock_log", location=str(tmp_path))])
    assert [warning.split(": ", 1)[1] for warning in found.warnings] == [
        "calls that were delivered twice count once (500)."
    ]
    bedrock = {"line_item_product_code": "AmazonBedrock", "line_item_operation": "", "pricing_unit": "1K tokens"}
    bill = [
        hour(
            datetime(2023, 11, 16, 18),
            line_item_usage_type=f"USW2-Claude4.5Haiku-{kind}-tokens",
            line_item_usage_amount=thousands,
            **bedrock,
            **priced(cost),
        )
        for kind, thousands, cost in (("input", "1014.189", "1.1156079"), ("output", "247.262", "1.359941"))
    ]
    serving = {name: frame.to_dicts() for name, frame in found.tables.items()}
    with Lab({"2023-11": bill}, {}, serving=serving) as made:
        read = f"select model, effective_cost_usd, idle_cost_usd, cost_per_million_total_usd from {MART}"
        assert made.ask(read, MART) == [("Claude Haiku 4.5", Decimal("2.4755489"), 0, Decimal("1.9624614036"))]
        name = "detail_bedrock_reconciliation_monthly"
        kinds = made.ask(f"select token_kind, log_tokens, difference_tokens, reason from {name} order by 1", name)
    assert kinds == [("input", 1_014_189, 0, "agrees"), ("output", 247_262, 0, "agrees")]


def test_azure_requests_on_a_machine_cost_its_hour(shared_data: Path, tmp_path: Path) -> None:
    """A p5.48xlarge at 55.04 serves them between 18:15 and 18:20 and waits for the rest of the hour: 5 of 60 minutes
    are 4.5866666667. Loaded 55.04 / 0.247262 = 222.5978921144 per million output tokens."""
    begin = datetime(2023, 11, 16, 18)
    counts = {begin + number * MINUTE: Counter() for number in range(60)}
    for at, given, written in azure(shared_data):
        counts[at.replace(second=0, microsecond=0)].update(requests=1, input_tokens=given, output_tokens=written)
    up = {"event": "server_started", "server_id": "s", "at": f"{begin.isoformat()}Z", "model": "m"}
    lines: list[dict[str, Any]] = [up | {"resource": "i-0a", "instance_type": "p5.48xlarge"}]
    for at, counted in counts.items():
        served = {name: counted[name] for name in ("requests", "input_tokens", "output_tokens")}
        times = {"from": f"{at.isoformat()}Z", "to": f"{(at + MINUTE).isoformat()}Z"}
        lines.append({"event": "traffic", "server_id": "s", **times, **served})
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    serving = rows_of(ServingSource(name="s", location=str(tmp_path)))
    read = f"select effective_cost_usd, busy_cost_usd, request_count, cost_per_million_output_usd from {MART}"
    with Lab({"2023-11": [machine(begin)]}, {}, serving=serving) as made:
        assert made.ask(read, MART) == [(Decimal("55.04"), Decimal("4.5866666667"), 1000, Decimal("222.5978921144"))]


def test_mooncake_requests_through_counters_that_restart(shared_data: Path, tmp_path: Path) -> None:
    """Scraped each minute from 10:00 to 10:06; the process restarts at 10:03, after the scrape, so nothing is lost.
    55.04 by 10,770,168 uncached, 2,962,776 cached and 349,357 output tokens is 3.9084521770 per million; the machine is
    idle for its last 54 minutes."""
    begin = datetime(2026, 7, 14, 10)
    counted, cached_blocks = Counter(), set()
    minutes = {number: Counter() for number in range(6)}
    with (shared_data / "serving/mooncake_conversation_first1000.jsonl").open(encoding="utf-8") as file:
        for request in map(json.loads, file):
            rest, hits = request["input_length"], 0
            for block in request["hash_ids"]:
                hits += min(512, rest) if block in cached_blocks else 0
                rest -= min(512, rest)
            cached_blocks.update(request["hash_ids"])
            minutes[request["timestamp"] // 60_000].update(
                request_success_total=1,
                prompt_tokens_total=request["input_length"],
                prefix_cache_hits_total=hits,
                generation_tokens_total=request["output_length"],
            )
    names = ("request_success_total", "prompt_tokens_total", "prefix_cache_hits_total", "generation_tokens_total")
    (tmp_path / "s").mkdir()
    for number in range(7):
        at = begin + number * MINUTE
        started = begin if number < 4 else begin + 3 * MINUTE
        text = "".join(f'vllm:{name}{{model_name="m"}} {counted[name]}.0\n' for name in names)
        epoch = started.timestamp() - datetime(1970, 1, 1).timestamp()
        (tmp_path / "s" / f"{at:%Y%m%dT%H%M%SZ}.txt").write_text(f"{text}process_start_time_seconds {epoch}\n")
        counted = counted if number != 3 else Counter()
        counted.update(minutes.get(number, {}))
    server = ServingServer(server_id="s", resource="i-0a", instance_type="p5.48xlarge")
    serving = rows_of(ServingSource(name="v", kind="vllm", location=str(tmp_path), servers=(server,)))
    columns = "request_count, input_tokens, cache_read_tokens, output_tokens, cost_per_million_total_usd, busy_cost_usd"
    with Lab({"2026-07": [machine(begin)]}, {}, serving=serving) as made:
        assert made.ask(f"select {columns} from {MART}", MART) == [
            (1000, 10_770_168, 2_962_776, 349_357, Decimal("3.9084521770"), Decimal("5.504"))
        ]


def machine(started_at: datetime) -> dict[str, str]:
    return hour(
        started_at,
        line_item_resource_id="i-0a",
        line_item_usage_type="USW2-BoxUsage:p5.48xlarge",
        line_item_usage_amount="1",
        product_instance_type="p5.48xlarge",
        **priced("55.04"),
    )
