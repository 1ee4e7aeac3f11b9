"""Reserved Instances at work: matching hours become DiscountedUsage, fees pay for the term."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pipelines.demo.lines import HOUR, Line, charge_line, month_end, month_start, usd
from pipelines.demo.price_list import REGION_PREFIX
from pipelines.demo.scenario import ReservedInstances


def apply_reserved_instances(bought: ReservedInstances, lines: Iterable[Line], month: str) -> list[Line]:
    """The month's lines with the purchase applied and its monthly fee; the upfront fee when it was bought."""
    usage_type = REGION_PREFIX[bought.region] + bought.usage_type
    left: dict[datetime, float] = {}
    used_hours = 0.0
    billed: list[Line] = []
    for line in lines:
        hour = line["line_item_usage_start_date"]
        matches = (
            line["line_item_line_item_type"] == "Usage"
            and line["line_item_usage_type"] == usage_type
            and line["line_item_usage_account_id"] == bought.account.id
            and bought.started_at <= hour < bought.ended_at
        )
        free = left.setdefault(hour, float(bought.count)) if matches else 0.0
        # The purchase is at least as large as the fleet it was bought for, so no line is ever cut in two.
        if not matches or line["line_item_usage_amount"] > free:
            billed.append(line)
            continue
        left[hour] = free - line["line_item_usage_amount"]
        used_hours += line["line_item_usage_amount"]
        billed.append(_discounted(bought, line))
    billed.append(_monthly_fee(bought, usage_type, month, used_hours))
    if bought.upfront_usd and month_start(month) <= bought.started_at < month_end(month):
        billed.append(_upfront_fee(bought, usage_type))
    return billed


def _discounted(bought: ReservedInstances, line: Line) -> Line:
    amount = line["line_item_usage_amount"]
    upfront, recurring = usd(amount * bought.upfront_usd_per_hour), usd(amount * bought.usd_per_hour)
    return line | {
        "line_item_line_item_type": "DiscountedUsage",
        "line_item_unblended_rate": "0.0000000000",
        "line_item_unblended_cost": 0.0,
        "line_item_line_item_description": f"{line['line_item_usage_type']} reserved instance applied",
        "pricing_term": "Reserved",
        "reservation_reservation_a_r_n": bought.arn,
        "reservation_amortized_upfront_cost_for_usage": upfront,
        "reservation_recurring_fee_for_usage": recurring,
        "reservation_effective_cost": usd(upfront + recurring),
        **_terms(bought),
    }


def _monthly_fee(bought: ReservedInstances, usage_type: str, month: str, used_hours: float) -> Line:
    """Posted once a month for all hours of it that the purchase was in force; unused hours are its waste."""
    start, end = month_start(month), month_end(month)
    hours = bought.count * ((end - max(start, bought.started_at)) / HOUR)
    unused = round(hours - used_hours, 10)
    line = charge_line(
        "RIFee",
        bought.account,
        bought.product_code,
        start,
        end,
        hours * bought.usd_per_hour,
        f"USD {bought.usd_per_hour} hourly fee per {usage_type} instance",
    )
    return line | {
        **_fee_columns(bought, usage_type),
        "line_item_usage_amount": hours,
        "line_item_unblended_rate": f"{bought.usd_per_hour:.10f}",
        "reservation_amortized_upfront_fee_for_billing_period": usd(hours * bought.upfront_usd_per_hour),
        "reservation_total_reserved_units": f"{hours:g}",
        "reservation_unused_quantity": unused,
        "reservation_unused_recurring_fee": usd(unused * bought.usd_per_hour),
        "reservation_unused_amortized_upfront_fee_for_billing_period": usd(unused * bought.upfront_usd_per_hour),
    }


def _upfront_fee(bought: ReservedInstances, usage_type: str) -> Line:
    line = charge_line(
        "Fee",
        bought.account,
        bought.product_code,
        bought.started_at,
        bought.started_at + HOUR,
        bought.count * bought.upfront_usd,
        f"Sign up charge for subscription: {bought.id}, planId: 128",
    )
    return line | _fee_columns(bought, usage_type) | {"bill_bill_type": "Purchase"}


def _fee_columns(bought: ReservedInstances, usage_type: str) -> Line:
    return {
        "line_item_usage_type": usage_type,
        "pricing_term": "Reserved",
        "pricing_unit": "Hrs",
        "product_region_code": bought.region,
        "product_servicecode": bought.product_code,
        "reservation_reservation_a_r_n": bought.arn,
        "reservation_number_of_reservations": str(bought.count),
        **_terms(bought),
    }


def _terms(bought: ReservedInstances) -> Line:
    return {
        "pricing_purchase_option": "Partial Upfront" if bought.upfront_usd else "No Upfront",
        "reservation_start_time": f"{bought.started_at.isoformat()}.000Z",
        "reservation_end_time": f"{bought.ended_at.isoformat()}.000Z",
    }
