"""Servers of models as they counted their traffic: an embedding service, and an assistant that is idle by night."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.demo import company
from pipelines.demo.lines import HOUR, hours_of
from pipelines.demo.scenario import Node, opaque_id
from pipelines.demo.timeline import rfc3339


@dataclass(frozen=True)
class Server:
    """A server on a standing node: tokens of its busiest hour, and the hours of the day in which it is used."""

    node: Node
    model: str
    engine: str
    precision: str
    input_tokens: int
    output_tokens: int = 0
    opens_at: int = 0
    closes_at: int = 24
    max_tokens_per_second: int | None = None
    request_tokens: int = 1500


SERVERS = (
    Server(
        company.EMBED_NODE, "e5-embed", "neuron", "bf16", 27_000_000, max_tokens_per_second=9000, request_tokens=380
    ),
    Server(company.ASSIST_NODE, "qwen3-32b", "vllm", "fp8", 7_600_000, 2_500_000, opens_at=7, closes_at=21),
)


def serving_files() -> dict[str, bytes]:
    """File content by path below the serving folder: <server_id>.jsonl."""
    return {
        f"{server.node.name}.jsonl": "".join(json.dumps(event) + "\n" for event in _events(server)).encode()
        for server in SERVERS
    }


def _events(server: Server) -> Iterator[dict[str, Any]]:
    node, noise = server.node, random.Random(server.node.name)
    assert node.launched_at is not None and node.ended_at is not None
    started: dict[str, Any] = {"event": "server_started", "server_id": node.name, "at": rfc3339(node.launched_at)}
    started |= {"model": server.model, "precision": server.precision, "engine": server.engine}
    started |= {"resource": opaque_id("i-", node.name), "instance_type": node.instance_type, "team": "platform"}
    if server.max_tokens_per_second:
        started["max_tokens_per_second"] = server.max_tokens_per_second
    yield started
    for hour, _ in hours_of(node.launched_at, node.ended_at):
        load = 0.0
        if server.opens_at <= hour.hour < server.closes_at:
            place = (hour.hour - server.opens_at) / (server.closes_at - server.opens_at)
            weekend = 0.55 if hour.weekday() > 4 else 1.0
            load = weekend * (0.45 + 0.45 * math.sin(place * math.pi) + noise.uniform(-0.08, 0.08))
        read, written = round(server.input_tokens * load), round(server.output_tokens * load)
        event: dict[str, Any] = {
            "event": "traffic",
            "server_id": node.name,
            "from": rfc3339(hour),
            "to": rfc3339(hour + HOUR),
        }
        event |= {"requests": read // server.request_tokens, "input_tokens": read, "output_tokens": written}
        if written:
            # Above nine tenths of its busiest hour, requests wait.
            event["ttft_p90"] = round(0.6 + 0.9 * load + max(0.0, load - 0.9) * 20, 3)
        yield event
    yield {"event": "server_stopped", "server_id": node.name, "at": rfc3339(node.ended_at)}
