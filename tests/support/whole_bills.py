"""Random bills that are whole: every commitment with its fee, every discount once, to the last decimal.

A bill is built from what a company would buy, so its identities (facts aws-billing 2.4) hold before our code sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from hypothesis import strategies as st

from support.random_ledgers import hour

Line = dict[str, str]
ZERO = Decimal(0)
PLACE = Decimal("1e-10")
PLAN = "arn:aws:savingsplans::000011112222:savingsplan/sp-{}"
RESERVED = "arn:aws:ec2:us-west-2:000011112222:reserved-instances/ri-{}"
# Cents, so that a sum of a few is not hidden by the tolerance; the discount gives them all their ten places.
MONEY = st.integers(0, 500_000).map(lambda cents: Decimal(cents) / 100)
CONVENTIONS = ("none", "rows", "in line")


@st.composite
def whole_bill(draw: st.DrawFn, convention: str) -> list[Line]:
    """The lines of one closed month of a payer whose discounts follow `convention`."""
    rate = Decimal(1) if convention == "none" else 1 - Decimal(draw(st.integers(3, 40))) / 100
    lines = [_line(draw(MONEY), "Usage") for _ in range(draw(st.integers(1, 3)))]
    for number in range(draw(st.integers(0, 2))):
        lines += _plan(draw, number)
    for number in range(draw(st.integers(0, 2))):
        lines += _reservation(draw, number)
    lines.append(_line(draw(MONEY), "Tax"))
    lines.append(_line(-draw(MONEY), "Refund", line_item_line_item_description="Refund of a transfer charge"))
    lines.append(_refunded_plan(-draw(MONEY)))
    if convention != "none":
        discounts = [_netted(line, rate, convention) for line in lines]
        if convention == "rows":
            half = (sum(discounts, ZERO) / 2).quantize(PLACE)
            lines += [_line(half, "EdpDiscount"), _line(sum(discounts, ZERO) - half, "SppDiscount")]
    credit = _line(-draw(MONEY), "Credit", line_item_line_item_description="AWS Activate")
    if convention != "none":
        credit["line_item_net_unblended_cost"] = credit["line_item_unblended_cost"]
    return [*lines, credit]


def _line(cost: Decimal, charge: str, **more: str) -> Line:
    return {
        **hour(0),
        "line_item_usage_type": "USW2-Requests-Tier1",
        "line_item_usage_amount": "1",
        "line_item_line_item_type": charge,
        "line_item_unblended_cost": str(cost),
        **more,
    }


def _refunded_plan(cost: Decimal) -> Line:
    words = "Refund for one-time fee for Savings Plan ID: sp-9"
    return _line(cost, "Refund", line_item_product_code="ComputeSavingsPlans", line_item_line_item_description=words)


def _plan(draw: st.DrawFn, number: int) -> list[Line]:
    """A plan's fee and use in a few hours, and what was paid upfront for it."""
    arn = {"savings_plan_savings_plan_a_r_n": PLAN.format(number)}
    upfront, recurring = draw(MONEY), draw(MONEY) + 1
    lines = [_line(draw(MONEY), "SavingsPlanUpfrontFee", **arn)] if upfront else []
    for at in range(draw(st.integers(1, 3))):
        used = _part(draw, upfront + recurring)
        first = _part(draw, used)
        for part in (first, used - first):
            list_price, same = draw(MONEY), {**hour(at), **arn}
            covered = {"savings_plan_savings_plan_effective_cost": str(part)}
            lines.append(_line(list_price, "SavingsPlanCoveredUsage", **covered, **same))
            lines.append(_line(-list_price, "SavingsPlanNegation", **same))
        fee = {
            "savings_plan_total_commitment_to_date": str(upfront + recurring),
            "savings_plan_used_commitment": str(used),
            "savings_plan_amortized_upfront_commitment_for_billing_period": str(upfront),
        }
        lines.append(_line(recurring, "SavingsPlanRecurringFee", **fee, **hour(at), **arn))
    return lines


def _reservation(draw: st.DrawFn, number: int) -> list[Line]:
    """A reservation's fee for the month, the hours it covered and what was paid upfront for it."""
    arn = {"reservation_reservation_a_r_n": RESERVED.format(number)}
    upfront, recurring = draw(MONEY), draw(MONEY)
    used_upfront, used_recurring = _part(draw, upfront), _part(draw, recurring)
    fee = {
        "reservation_amortized_upfront_fee_for_billing_period": str(upfront),
        "reservation_unused_amortized_upfront_fee_for_billing_period": str(upfront - used_upfront),
        "reservation_unused_recurring_fee": str(recurring - used_recurring),
    }
    used = {"reservation_effective_cost": str(used_upfront + used_recurring)}
    return [
        _line(recurring, "RIFee", **fee, **arn),
        _line(ZERO, "DiscountedUsage", **used, **arn),
        _line(draw(MONEY), "Fee", **arn),
    ]


def _part(draw: st.DrawFn, whole: Decimal) -> Decimal:
    """Some of an amount, in cents."""
    return Decimal(draw(st.integers(0, int(whole * 100)))) / 100


# What the discount takes a part of, and where AWS writes what is left.
NET = {
    "line_item_unblended_cost": "line_item_net_unblended_cost",
    "savings_plan_savings_plan_effective_cost": "savings_plan_net_savings_plan_effective_cost",
    "savings_plan_amortized_upfront_commitment_for_billing_period": (
        "savings_plan_net_amortized_upfront_commitment_for_billing_period"
    ),
    "reservation_effective_cost": "reservation_net_effective_cost",
    "reservation_unused_amortized_upfront_fee_for_billing_period": (
        "reservation_net_unused_amortized_upfront_fee_for_billing_period"
    ),
    "reservation_unused_recurring_fee": "reservation_net_unused_recurring_fee",
}


def _netted(line: Line, rate: Decimal, convention: str) -> Decimal:
    """Give a line its net columns; the discount on it, which is negative where the line costs something."""
    for gross, net in NET.items():
        if gross in line:
            line[net] = str((Decimal(line[gross]) * rate).quantize(PLACE))
    discount = Decimal(line["line_item_net_unblended_cost"]) - Decimal(line["line_item_unblended_cost"])
    if convention == "in line":
        line["discount_total_discount"] = str(discount)
    return discount


def total(lines: list[Line], column: str, wanted: Callable[[str], bool] = lambda charge: True) -> Decimal:
    """A column added up over lines of the wanted charge types."""
    return sum((Decimal(line.get(column) or 0) for line in lines if wanted(line["line_item_line_item_type"])), ZERO)
