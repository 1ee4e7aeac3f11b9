"""Bill lines of reserved capacity: On-Demand Capacity Reservations and Capacity Blocks for ML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from pipelines.demo.lines import HOUR, Line, Place, charge_line, hours_of, offer_columns, usage_line
from pipelines.demo.machines import Machine, reservation_type
from pipelines.demo.price_list import box
from pipelines.demo.scenario import Reservation


def capacity_lines(reservation: Reservation, machines: Iterable[Machine]) -> Iterator[Line]:
    """The unused hours, the marker lines of an ODCR, and the fee of a Capacity Block."""
    used: dict[datetime, int] = {}
    for machine in machines:
        if machine.node.reservation == reservation:
            for hour, seconds in hours_of(machine.launched_at, machine.ended_at):
                used[hour] = used.get(hour, 0) + seconds
    if reservation.is_block:
        yield _block_fee(reservation)
    for hour, seconds in hours_of(reservation.started_at, reservation.ended_at):
        held = reservation.count * seconds
        unused = held - used.get(hour, 0)
        if unused:
            yield _held_line(reservation, "UnusedBox", "Unused", hour, unused)
        if not reservation.is_block:
            yield _held_line(reservation, "Reservation", "Reserved", hour, held)


def _held_line(reservation: Reservation, usage: str, status: str, hour: datetime, seconds: int) -> Line:
    region = reservation.zone[:-1]
    operation = "RunInstances:CB" if reservation.is_block else "RunInstances"
    return usage_line(
        box(reservation.instance_type, region, usage, operation),
        Place(reservation.account, region, reservation.zone, reservation.arn),
        hour,
        seconds / 3600,
        capacity_reservation_capacity_reservation_arn=reservation.arn,
        capacity_reservation_capacity_reservation_status=status,
        capacity_reservation_capacity_reservation_type=reservation_type(reservation.is_block),
    )


def _block_fee(block: Reservation) -> Line:
    """The whole price, charged at purchase and naming the block where an RI would name itself."""
    assert block.purchased_at is not None and block.fee_per_hour is not None
    region = block.zone[:-1]
    hours = (block.ended_at - block.started_at) / HOUR
    bought_at = block.purchased_at.replace(minute=0, second=0)
    offer = box(block.instance_type, region, "CapacityBlockFee", "RunInstances:CB")
    line = charge_line(
        "Fee",
        block.account,
        "AmazonEC2",
        bought_at,
        bought_at + timedelta(hours=1),
        block.count * hours * block.fee_per_hour,
        f"Capacity Block for ML, {block.count} x {block.instance_type} for {hours:g} hours",
    )
    return line | {
        **offer_columns(offer, Place(block.account, region)),
        "bill_bill_type": "Purchase",
        "reservation_reservation_a_r_n": block.arn,
    }


def answer_of_ec2(reservations: Iterable[Reservation]) -> bytes:
    """The answer of DescribeCapacityReservations, as the AWS command line saves it."""
    answers = [
        {
            "CapacityReservationId": held.id,
            "OwnerId": held.account.id,
            "CapacityReservationArn": held.arn,
            "InstanceType": held.instance_type,
            "InstancePlatform": "Linux/UNIX",
            "AvailabilityZone": held.zone,
            "TotalInstanceCount": held.count,
            "State": "expired",
            "StartDate": f"{held.started_at.isoformat()}+00:00",
            "EndDate": f"{held.ended_at.isoformat()}+00:00",
            "ReservationType": "capacity-block" if held.is_block else "default",
        }
        for held in reservations
    ]
    return json.dumps({"CapacityReservations": answers}, indent=1).encode()
