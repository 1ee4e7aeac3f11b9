"""Bill lines of instances: their hours by market, their volumes and their traffic between zones."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pipelines.base.groups import grouped
from pipelines.demo.lines import Line, Place, hours_in_month, hours_of, usage_line
from pipelines.demo.price_list import INSTANCE_TYPES, OFFERS, Offer, box
from pipelines.demo.scenario import Node, opaque_id
from pipelines.demo.timeline import Stay

SPOT_RATIO = 0.46


@dataclass(frozen=True)
class Machine:
    """A node with its billed life [launched_at, ended_at) and its tags settled."""

    node: Node
    launched_at: datetime
    ended_at: datetime
    tags: dict[str, str]

    @property
    def place(self) -> Place:
        node = self.node
        return Place(node.account, node.region, node.zone, node.id, self.tags)


def machines(standing: Iterable[Node], stays: Iterable[Stay]) -> list[Machine]:
    """Every instance of the story: those that stand by themselves, and those that came and went with runs."""
    found = []
    for node in standing:
        assert node.launched_at is not None and node.ended_at is not None
        found.append(Machine(node, node.launched_at, node.ended_at, node.tags or {}))
    for held in grouped(stays, lambda stay: stay.node.name).values():
        first = min(held, key=lambda stay: stay.joined_at)
        run, node = first.run, first.node
        found.append(
            Machine(
                node,
                node.launched_at or first.joined_at - timedelta(seconds=node.boot_seconds),
                node.ended_at or max(stay.left_at for stay in held) + timedelta(seconds=node.linger_seconds),
                {"run_id": run.id, "team": run.workload.team, "owner": run.owner} if node.tags is None else node.tags,
            )
        )
    return found


def machine_lines(machine: Machine) -> Iterator[Line]:
    """The instance-hours of a machine, with its volume and traffic."""
    noise = random.Random(machine.node.name)
    for hour, seconds in hours_of(machine.launched_at, machine.ended_at):
        yield _instance_line(machine, hour, seconds, noise)
        if machine.node.volume_gib:
            yield from _volume_lines(machine, hour, seconds)
            gib = round(noise.uniform(0.4, 6.0), 8)
            yield usage_line(OFFERS["cross_zone"], replace(machine.place, zone=""), hour, gib)


def _instance_line(machine: Machine, hour: datetime, seconds: int, noise: random.Random) -> Line:
    node, place, amount = machine.node, machine.place, seconds / 3600
    if node.market == "spot":
        return _spot_line(machine, hour, amount, noise)
    if node.reservation is None:
        return usage_line(box(node.instance_type, node.region), place, hour, amount)
    operation = "RunInstances:CB" if node.reservation.is_block else "RunInstances"
    offer = box(node.instance_type, node.region, operation=operation)
    return usage_line(
        offer,
        place,
        hour,
        amount,
        capacity_reservation_capacity_reservation_arn=node.reservation.arn,
        capacity_reservation_capacity_reservation_status="Used",
        capacity_reservation_capacity_reservation_type=reservation_type(node.reservation.is_block),
    )


def reservation_type(is_block: bool) -> str:
    return "EC2 Capacity Blocks for ML" if is_block else "ODCR"


def _spot_line(machine: Machine, hour: datetime, amount: float, noise: random.Random) -> Line:
    """Spot: a price for every hour, hardly any product attributes, and no list price."""
    node = machine.node
    list_usd = INSTANCE_TYPES[node.instance_type].usd_in(node.region)
    swing = 0.04 * math.sin(hour.hour / 24 * 2 * math.pi) + noise.uniform(-0.01, 0.01)
    rate = round(list_usd * (SPOT_RATIO + swing), 6)
    line = usage_line(box(node.instance_type, node.region, "SpotUsage"), machine.place, hour, amount, rate=rate)
    return line | {
        "line_item_line_item_description": f"{node.instance_type} Linux/UNIX Spot Instance-hour",
        "pricing_term": "Spot",
        "pricing_public_on_demand_rate": None,
        "pricing_public_on_demand_cost": 0.0,
        "product": {"product_name": line["product"]["product_name"], "region": node.region},
        "product_instance_type": "",
        "product_instance_family": "",
        "product_product_family": "",
    }


def _volume_lines(machine: Machine, hour: datetime, seconds: int) -> Iterator[Line]:
    node = machine.node
    place = replace(machine.place, zone="", resource_id=opaque_id("vol-", node.name))
    share_of_month = seconds / 3600 / hours_in_month(hour)
    provisioned: list[tuple[Offer, int]] = [(OFFERS["volume"], node.volume_gib)]
    if node.volume_gib >= 2000:
        provisioned.append((OFFERS["volume_iops"], 13_000))
    for offer, size in provisioned:
        yield usage_line(offer, place, hour, size * share_of_month)
