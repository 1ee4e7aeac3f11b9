"""Bill lines as AWS writes them: a dict of Cost and Usage Report 2.0 columns. Absent means blank."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pipelines.demo.price_list import INSTANCE_TYPES, REGION_PREFIX, Offer, product_attributes
from pipelines.demo.scenario import Account

Line = dict[str, Any]
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Place:
    """Who used it and where: the account, region, zone, resource and its tags."""

    account: Account
    region: str
    zone: str = ""
    resource_id: str = ""
    tags: dict[str, str] = field(default_factory=dict)


def usd(amount: float) -> float:
    """Money as the export carries it: a double of ten decimals."""
    return round(amount, 10)


def hours_of(started_at: datetime, ended_at: datetime) -> Iterator[tuple[datetime, int]]:
    """Each clock hour of [started_at, ended_at) with the seconds of it that lie inside."""
    hour = started_at.replace(minute=0, second=0, microsecond=0)
    while hour < ended_at:
        inside = min(ended_at, hour + HOUR) - max(started_at, hour)
        yield hour, int(inside.total_seconds())
        hour += HOUR


def month_start(month: str) -> datetime:
    return datetime.fromisoformat(f"{month}-01")


def month_end(month: str) -> datetime:
    """Exclusive end of 'YYYY-MM'."""
    start = month_start(month)
    return start + timedelta(days=calendar.monthrange(start.year, start.month)[1])


def hours_in_month(at: datetime) -> int:
    return calendar.monthrange(at.year, at.month)[1] * 24


def usage_line(
    offer: Offer,
    place: Place,
    start: datetime,
    amount: float,
    *,
    rate: float | None = None,
    span: timedelta = HOUR,
    **columns: Any,
) -> Line:
    """A Usage line of `amount` units at list price, or at `rate`; `columns` override."""
    rate = offer.usd if rate is None else rate
    amount = round(amount, 10)
    line = {
        **offer_columns(offer, place),
        "line_item_line_item_type": "Usage",
        "line_item_usage_start_date": start,
        "line_item_usage_end_date": start + span,
        "line_item_availability_zone": place.zone,
        "line_item_resource_id": place.resource_id,
        "line_item_usage_amount": amount,
        "line_item_unblended_rate": f"{rate:.10f}",
        "line_item_unblended_cost": usd(amount * rate),
        "line_item_line_item_description": f"${rate:g} per {offer.unit} of {offer.usage_type}",
        "pricing_term": "OnDemand",
        "pricing_public_on_demand_rate": f"{offer.usd:.10f}",
        "pricing_public_on_demand_cost": usd(amount * offer.usd),
        "resource_tags": {f"user_{key}": value for key, value in place.tags.items()},
    }
    return line | columns


def offer_columns(offer: Offer, place: Place) -> Line:
    """The columns that show what was sold, to whom and in which region."""
    return {
        "line_item_usage_account_id": place.account.id,
        "line_item_usage_account_name": place.account.name,
        "line_item_product_code": offer.product_code,
        "line_item_usage_type": REGION_PREFIX[place.region] + offer.usage_type,
        "line_item_operation": offer.operation,
        "pricing_unit": offer.unit,
        "product": product_attributes(offer, place.region),
        "product_servicecode": offer.servicecode or offer.product_code,
        "product_product_family": offer.family,
        "product_instance_type": offer.instance_type,
        "product_instance_family": INSTANCE_TYPES[offer.instance_type].family
        if offer.instance_type in INSTANCE_TYPES
        else "",
        "product_region_code": place.region,
    }


def charge_line(
    kind: str,
    account: Account,
    product_code: str,
    start: datetime,
    end: datetime,
    cost: float,
    description: str,
    **columns: Any,
) -> Line:
    """A charge that is not usage: fee, discount, tax, credit or refund. No resource, no list price."""
    line = {
        "line_item_line_item_type": kind,
        "line_item_usage_account_id": account.id,
        "line_item_usage_account_name": account.name,
        "line_item_product_code": product_code,
        "line_item_usage_start_date": start,
        "line_item_usage_end_date": end,
        "line_item_usage_amount": 1.0,
        "line_item_unblended_cost": usd(cost),
        "line_item_line_item_description": description,
    }
    return line | columns


def amortized_usd(line: Line) -> float:
    """What a usage line costs once commitments are spread: AWS's own reading, for splitting it over pods."""
    kind = line["line_item_line_item_type"]
    if kind == "SavingsPlanCoveredUsage":
        return line["savings_plan_savings_plan_effective_cost"]
    if kind == "DiscountedUsage":
        return line["reservation_effective_cost"]
    return line["line_item_unblended_cost"]
