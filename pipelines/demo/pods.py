"""Split cost allocation rows: the hours of a shared instance repeated per pod, adding nothing to the bill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from pipelines.demo.lines import Line, Place, amortized_usd, hours_of, usage_line
from pipelines.demo.price_list import INSTANCE_TYPES, OFFERS
from pipelines.demo.scenario import Node, opaque_id
from pipelines.demo.timeline import Stay

# AWS's weights on accelerated instances, and what each pod of the story asks for.
WEIGHTS = {"Accelerator": 9.0, "vCPU": 0.9, "GB": 0.1}
REQUESTS = {"vCPU": 40.0, "GB": 480.0}


def pod_lines(node: Node, cluster: str, stays: Iterable[Stay], lines: Iterable[Line]) -> Iterator[Line]:
    """Three rows per pod and hour; their split and unused cost add up to the amortized instance-hour."""
    cost: dict[datetime, float] = {}
    amount: dict[datetime, float] = {}
    for line in lines:
        if line.get("line_item_resource_id") == node.id and line["line_item_operation"] == "RunInstances":
            hour = line["line_item_usage_start_date"]
            cost[hour] = cost.get(hour, 0.0) + amortized_usd(line)
            amount[hour] = amount.get(hour, 0.0) + line["line_item_usage_amount"]
    requests: dict[datetime, list[tuple[Stay, float]]] = {}
    for stay in stays:
        if stay.node == node:
            for hour, seconds in hours_of(stay.joined_at, stay.left_at):
                requests.setdefault(hour, []).append((stay, seconds / 3600))
    for hour in sorted(requests.keys() & cost.keys()):
        yield from _hour(node, cluster, hour, requests[hour], amount[hour], cost[hour])


def _hour(
    node: Node, cluster: str, hour: datetime, pods: list[tuple[Stay, float]], billed_hours: float, cost: float
) -> Iterator[Line]:
    kind = INSTANCE_TYPES[node.instance_type]
    capacity = {"Accelerator": kind.accelerators, "vCPU": kind.vcpu, "GB": kind.memory_gib}
    unit = cost / (billed_hours * sum(WEIGHTS[name] * size for name, size in capacity.items()))
    for name, size in capacity.items():
        held = size * billed_hours
        requests = [hours * _request(stay, name) for stay, hours in pods]
        whole = max(held, sum(requests))
        for (stay, _), request in zip(pods, requests, strict=True):
            unused = (whole - sum(requests)) * request / sum(requests)
            yield _pod_line(node, cluster, stay, name, hour, request, request / whole) | {
                "split_line_item_split_cost": round(request * unit * WEIGHTS[name] * held / whole, 12),
                "split_line_item_unused_cost": round(unused * unit * WEIGHTS[name], 12),
            }


def _request(stay: Stay, name: str) -> float:
    return float(stay.run.accelerators or 0) if name == "Accelerator" else REQUESTS[name]


def _pod_line(node: Node, cluster: str, stay: Stay, name: str, hour: datetime, request: float, ratio: float) -> Line:
    run = stay.run
    offer = replace(OFFERS["pod"], usage_type=f"EKS-EC2-{name}-Hours")
    pod = f"{cluster}/train/{run.id}-0/{opaque_id('', run.id, 12)}"
    place = Place(node.account, node.region, resource_id=f"arn:aws:eks:{node.region}:{node.account.id}:pod/{pod}")
    return usage_line(
        offer,
        place,
        hour,
        request,
        pricing_public_on_demand_cost=0.0,
        resource_tags={
            "aws_eks_cluster_name": cluster,
            "aws_eks_namespace": "train",
            "aws_eks_workload_name": run.id,
            "aws_eks_workload_type": "Job",
            "user_run_id": run.id,
        },
        split_line_item_parent_resource_id=node.id,
        split_line_item_reserved_usage=round(request, 10),
        split_line_item_actual_usage=round(request * 0.87, 10),
        split_line_item_split_usage=round(request, 10),
        split_line_item_split_usage_ratio=round(ratio, 10),
    )
