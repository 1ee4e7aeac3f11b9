"""One reservation of capacity, the table of reservations, and what is odd in one and yet read."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache

import polars as pl

from pipelines.base import resources

ODCR, BLOCK, PLAN = KINDS = ("odcr", "capacity_block", "training_plan")
# AWS sells blocks and plans for half a year at most; every hour of one becomes a row.
LONGEST = timedelta(days=1100)
_AT = pl.Datetime("ms")
# The states of EC2's CapacityReservationState and CapacityBlockResourceState and SageMaker's TrainingPlanStatus
# (service models of botocore, 2026-11), in lower case.
_STATES = frozenset(
    {"active", "assessing", "cancelled", "cancelling", "delayed", "expired", "failed", "payment-failed",
     "payment-pending", "pending", "scheduled", "unavailable", "unsupported"}
)  # fmt: skip

# Times are naive UTC. A training plan may hold several capacities with windows of their own: one part each.
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(("source_name", "reservation_id"), pl.String),
    "part_no": pl.Int64,
    **dict.fromkeys(("reservation_kind", "account_id", "region_id", "instance_type"), pl.String),
    "instance_count": pl.Int64,
    "started_at": _AT,
    "ended_at": _AT,
    "ultraserver_type": pl.String,
    "upfront_fee": pl.Decimal(20, 10),
    "currency": pl.String,
    "state": pl.String,
}


@dataclass(frozen=True)
class Reservation:
    """One reservation, or one part of it, in one answer; `where` is the address of the entry.

    `is_detail`: an answer that only adds to DescribeCapacityReservations' answer about the same reservation.
    """

    where: str
    reservation_id: str
    reservation_kind: str
    part_no: int = 1
    source_name: str = ""
    account_id: str | None = None
    region_id: str | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    ultraserver_type: str | None = None
    upfront_fee: Decimal | None = None
    currency: str | None = None
    state: str | None = None
    is_detail: bool = False

    @property
    def duration(self) -> timedelta | None:
        """The length of the window; None while it is open."""
        return self.ended_at - self.started_at if self.started_at and self.ended_at else None

    @property
    def window(self) -> tuple[datetime | None, datetime | None]:
        return self.started_at, self.ended_at

    def warnings(self) -> Iterator[str]:
        """One sentence for each unexpected value."""
        name = f"{self.where}: {self.reservation_id}"
        if self.state is not None and self.state.lower() not in _STATES:
            yield f"{name} has the unknown state {self.state[:80]!r}; it counts as any other."
        if self.instance_count == 0:
            yield f"{name} has 0 instances; their number is read as unknown."
        if self.instance_type is not None and not _is_known(self.instance_type, self.reservation_kind):
            yield (
                f"{name} has the instance type {self.instance_type[:80]!r}, which is not in ref_instance_type.csv; "
                "check its spelling."
            )
        if self.reservation_kind != ODCR and self.duration is None:
            yield f"{name} has no window; its fee is spread over the hours on the bill."


def _is_known(instance_type: str, kind: str) -> bool:
    """Whether a type is listed, or of a family without accelerators, which an ODCR may be of."""
    plain = instance_type.removeprefix("ml.")
    family, dot, size = plain.partition(".")
    if plain in _accelerated() or kind != ODCR or not (family and dot and size):
        return plain in _accelerated()
    return family not in {known.partition(".")[0] for known in _accelerated()}


@cache
def _accelerated() -> frozenset[str]:
    with (resources.REFERENCE / "ref_instance_type.csv").open(encoding="utf-8", newline="") as listed:
        return frozenset(row["instance_type"] for row in csv.DictReader(listed))
