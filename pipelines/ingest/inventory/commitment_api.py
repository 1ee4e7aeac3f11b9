"""Commitments asked of AWS itself: the Savings Plans of the account, and the reservations of each region."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipelines.config.sources import CommitmentSource
from pipelines.ingest.inventory.aws_api import asking, client_of

_PLANS = "savingsplans:DescribeSavingsPlans"
_RESERVED = "ec2:DescribeReservedInstances"


def ask_aws(source: CommitmentSource) -> Iterator[tuple[Any, str]]:
    """Each answer with the call it is from. Raises SourceError naming the permission that is missing."""
    where = f"[[commitments]] {source.name}"
    plans = client_of(source, where, "savingsplans", source.queried_regions[0])
    asked: dict[str, Any] = {}
    while True:
        with asking(where, _PLANS):
            answer = plans.describe_savings_plans(**asked)
        yield _told(answer), f"{where} {_PLANS}"
        if not answer.get("nextToken"):
            break
        asked = {"nextToken": answer["nextToken"]}
    for region in source.queried_regions:
        client = client_of(source, where, "ec2", region)
        with asking(where, _RESERVED):
            answer = client.describe_reserved_instances()
        yield _told(answer), f"{where}, {client.meta.region_name} {_RESERVED}"


def _told(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}
