"""One reservation of capacity, and the table that reservations fill."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl

ODCR, BLOCK, PLAN = KINDS = ("odcr", "capacity_block", "training_plan")
# AWS sells blocks and plans for half a year at most; every hour of one becomes a row.
_LONGEST = timedelta(days=1100)
_AT = pl.Datetime("ms")

# Times are naive UTC. A training plan may hold several capacities with windows of their own: one part each.
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "source_name": pl.String,
    "reservation_id": pl.String,
    "part_no": pl.Int64,
    "reservation_kind": pl.String,
    "account_id": pl.String,
    "region_id": pl.String,
    "instance_type": pl.String,
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
    """One reservation, or one part of it, as one answer tells it; `where` names the place in words.

    `is_detail`: an answer that only adds to what DescribeCapacityReservations says of the same reservation.
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
    def lasts(self) -> timedelta | None:
        """The length of the window; None while it is open."""
        return self.ended_at - self.started_at if self.started_at and self.ended_at else None

    @property
    def window(self) -> tuple[datetime | None, datetime | None]:
        return self.started_at, self.ended_at
