"""The training runs of a generated bill: many small stories, drawn from a seeded generator."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta

from pipelines.demo.lines import month_end, month_start
from pipelines.demo.scenario import Account, Node, Run, fleet
from pipelines.demo.workloads import BASE_3B, DETECTOR, LLAMA_8B, OCR, RERANKER, SEGMENTER, VIT_H

WORKLOADS = (LLAMA_8B, VIT_H, OCR, DETECTOR, SEGMENTER, RERANKER, BASE_3B)
ACCELERATED = ("p5.48xlarge", "p4d.24xlarge", "trn1.32xlarge", "g6e.12xlarge")
MARKETS = ("on_demand",) * 7 + ("spot",) * 2
REGIONS = ("us-west-2a", "us-east-1b")


@dataclass(frozen=True)
class Shape:
    """What kind of company a bill is of: the accelerated part of its lines, runs a million lines, epochs a run."""

    accelerated: float
    runs_per_million: int
    epochs: tuple[int, int]


# A large company that also trains, and a laboratory that does little else: about a hundred epochs, checkpoints and
# evaluations a run.
COMPANY, LABORATORY = Shape(0.03, 200, (3, 8)), Shape(0.3, 50_000, (28, 34))


def bench_runs(
    draw: random.Random, prefix: str, count: int, node_hours: float, accounts: list[Account], month: str, shape: Shape
) -> list[Run]:
    """`count` runs inside the month that hold about `node_hours` hours of machines in all."""
    each = node_hours / count
    return [_run(draw, f"{prefix}-{number:05d}", each, accounts, month, shape) for number in range(count)]


def _run(draw: random.Random, name: str, node_hours: float, accounts: list[Account], month: str, shape: Shape) -> Run:
    size = draw.choice((1, 1, 2, 4))
    in_month = (month_end(month) - month_start(month)) / timedelta(seconds=1)
    seconds = min(node_hours * 3600 / size * draw.uniform(0.5, 1.5), in_month - 86_400)
    epochs = draw.randint(*shape.epochs)
    workload = draw.choice(WORKLOADS)
    node = Node(
        name,
        draw.choice(ACCELERATED),
        draw.choice(accounts),
        draw.choice(REGIONS),
        market=draw.choice(MARKETS),
        # Some machines are held for hours after their run.
        linger_seconds=draw.choice((95, 95, 95, 95, 14_400)),
    )
    return Run(
        name,
        workload,
        f"engineer-{draw.randint(1, 40)}",
        fleet(node, size),
        month_start(month) + timedelta(seconds=round(draw.uniform(3_600, max(in_month - seconds - 43_200, 7_200)))),
        epoch_seconds=max(60, round(seconds / epochs) - 240),
        metric=tuple(workload.target_value * (1 + 0.05 * (epochs - 1 - epoch)) for epoch in range(epochs)),
        compile_seconds=900 if node.instance_type.startswith("trn") else 60,
        saves_per_epoch=draw.choice((1, 1, 2)),
    )


def unclaimed_nodes(
    draw: random.Random, prefix: str, node_hours: float, accounts: list[Account], month: str
) -> list[Node]:
    """Accelerated machines that no run claims, about `node_hours` hours in all."""
    nodes: list[Node] = []
    left = node_hours
    while left > 0:
        hours = min(draw.uniform(4, 120), left + 1)
        latest = (month_end(month) - month_start(month)) / timedelta(hours=1) - hours
        launched_at = month_start(month) + timedelta(seconds=round(draw.uniform(0, latest) * 3600))
        nodes.append(
            Node(
                f"{prefix}-free-{len(nodes)}",
                draw.choice(ACCELERATED),
                draw.choice(accounts),
                draw.choice(REGIONS),
                tags={"owner": f"engineer-{draw.randint(1, 40)}"},
                launched_at=launched_at,
                ended_at=launched_at + timedelta(seconds=round(hours * 3600)),
            )
        )
        left -= hours
    return nodes
