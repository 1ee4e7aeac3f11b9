"""Reservations asked of AWS itself: EC2's reservations and blocks, SageMaker's training plans, region by region."""

from __future__ import annotations

from typing import Any

from pipelines.config.sources import ReservationSource
from pipelines.ingest.inventory.aws_api import asking, client_of, code_of
from pipelines.ingest.inventory.reservation import Reservation
from pipelines.ingest.inventory.reservation_answer import reservations_in

# Service, paginator, and the permission of the same name.
CALLS = (
    ("ec2", "describe_capacity_reservations", "ec2:DescribeCapacityReservations"),
    ("ec2", "describe_capacity_blocks", "ec2:DescribeCapacityBlocks"),
    ("sagemaker", "list_training_plans", "sagemaker:ListTrainingPlans"),
)
_LACKING = ("InvalidAction", "UnknownOperation", "UnknownOperationException", "UnsupportedOperation")


def ask_aws(source: ReservationSource) -> tuple[list[Reservation], list[str]]:
    """What AWS tells of all configured regions, and what it has no answer for, one sentence each.

    Raises SourceError naming the permission that is missing, UnreachableError where nobody answers.
    """
    found: list[Reservation] = []
    doubts: list[str] = []
    for region in source.queried_regions:
        for service, call, permission in CALLS:
            where = f"[[reservations]] {source.name}"
            client = client_of(source, where, service, region)
            place = f"{where}, {client.meta.region_name}"
            pages = _pages(client, call, permission, place)
            if pages is None:
                doubts.append(f"{place}: there is no {permission} here; what it would tell is not known.")
            for page in pages or ():
                found += reservations_in(page, f"{place} {permission}")
    return found, doubts


def _pages(client: Any, call: str, permission: str, place: str) -> list[dict[str, Any]] | None:
    """All pages of a call; None where this region or endpoint does not know it."""
    from botocore.exceptions import ClientError

    with asking(place, permission):
        try:
            return list(client.get_paginator(call).paginate())
        except ClientError as error:
            if code_of(error) in _LACKING:
                return None
            raise
