"""What is odd in a reservation and yet read: a word AWS has not told us of, a number or a window that says nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache

from pipelines.base import resources
from pipelines.ingest.inventory.reservation import ODCR, Reservation

# The states of EC2's CapacityReservationState and CapacityBlockResourceState and SageMaker's TrainingPlanStatus
# (service models of botocore, 2026-11), in small letters.
STATES = frozenset(
    {
        "active",
        "assessing",
        "cancelled",
        "cancelling",
        "delayed",
        "expired",
        "failed",
        "payment-failed",
        "payment-pending",
        "pending",
        "scheduled",
        "unavailable",
        "unsupported",
    }
)


def doubts_of(told: Reservation) -> Iterator[str]:
    """One sentence for each oddity of a reservation."""
    who = f"{told.where}: {told.reservation_id}"
    if told.state is not None and told.state.lower() not in STATES:
        yield f"{who} has the state {told.state[:80]!r}, which AWS is not known to have; it counts as any other."
    if told.instance_count == 0:
        yield f"{who} has 0 instances; their number is taken as not told."
    if told.instance_type is not None and not _is_known(told.instance_type, told.reservation_kind):
        yield (
            f"{who} has the instance type {told.instance_type[:80]!r}, which ref_instance_type.csv lacks; "
            "check how it is written."
        )
    if told.reservation_kind != ODCR and told.lasts is None:
        yield f"{who} has no window; its fee is spread over the hours the bill shows."


def _is_known(instance_type: str, kind: str) -> bool:
    """Whether a type is listed, or is of a family without accelerators, of which anybody may reserve one."""
    plain = instance_type.removeprefix("ml.")
    family, dot, size = plain.partition(".")
    if plain in _accelerated() or kind != ODCR or not (family and dot and size):
        return plain in _accelerated()
    return family not in {known.partition(".")[0] for known in _accelerated()}


@cache
def _accelerated() -> frozenset[str]:
    with (resources.REFERENCE / "ref_instance_type.csv").open(encoding="utf-8", newline="") as listed:
        return frozenset(row["instance_type"] for row in csv.DictReader(listed))
