"""A Savings Plan at work: each hour its commitment covers the lines with the highest saving first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby

from pipelines.demo.lines import HOUR, Line, charge_line, hours_of, month_end, month_start, usd
from pipelines.demo.price_list import INSTANCE_TYPES, OFFERS
from pipelines.demo.scenario import SavingsPlan


def apply_savings_plan(plan: SavingsPlan, lines: Iterable[Line], month: str) -> list[Line]:
    """The month's lines as billed under the plan: covered lines, their negations, the hourly fee."""
    billed: list[Line] = []
    eligible: dict[datetime, list[tuple[float, Line]]] = {}
    for line in lines:
        ratio = _plan_ratio(line)
        if ratio is None:
            billed.append(line)
        else:
            eligible.setdefault(line["line_item_usage_start_date"], []).append((ratio, line))
    for hour, _ in hours_of(month_start(month), month_end(month)):
        best_first = sorted(eligible.get(hour, []), key=_saving_order)
        covered, rest, used = _cover(plan, best_first)
        billed += [*covered, *rest, *_negations(plan, covered), _fee(plan, hour, used)]
    return billed


def _plan_ratio(line: Line) -> float | None:
    """Plan rate ÷ list price; None where no Compute Savings Plan applies."""
    if line["line_item_line_item_type"] != "Usage":
        return None
    if line["line_item_usage_type"].endswith(OFFERS["function_seconds"].usage_type):
        return OFFERS["function_seconds"].savings_plan_ratio
    is_on_demand = line["line_item_operation"] == "RunInstances" and line["pricing_term"] == "OnDemand"
    if not is_on_demand or line["line_item_unblended_cost"] == 0:
        return None
    return INSTANCE_TYPES[line["product_instance_type"]].savings_plan_ratio


def _saving_order(candidate: tuple[float, Line]) -> tuple[float, str, str]:
    ratio, line = candidate
    return ratio, line["line_item_usage_account_id"], line["line_item_resource_id"]


def _cover(plan: SavingsPlan, best_first: list[tuple[float, Line]]) -> tuple[list[Line], list[Line], float]:
    """Covered lines, lines left on demand, and the commitment used in USD; one line may be cut in two."""
    covered: list[Line] = []
    rest: list[Line] = []
    used = 0.0
    for ratio, line in best_first:
        left = usd(plan.usd_per_hour - used)
        list_usd, amount = line["line_item_unblended_cost"], line["line_item_usage_amount"]
        wanted = usd(list_usd * ratio)
        taken = min(wanted, left)
        if taken <= 0:
            rest.append(line)
            continue
        used = usd(used + taken)
        part_amount, part_usd = amount, list_usd
        if taken < wanted:
            part_amount = round(amount * taken / wanted, 10)
            part_usd = usd(list_usd * part_amount / amount)
            rest.append(_sized(line, round(amount - part_amount, 10), usd(list_usd - part_usd)))
        covered.append(
            _sized(line, part_amount, part_usd)
            | {
                "line_item_line_item_type": "SavingsPlanCoveredUsage",
                "pricing_term": "SavingsPlan",
                "savings_plan_savings_plan_a_r_n": plan.arn,
                "savings_plan_savings_plan_rate": round(float(line["line_item_unblended_rate"]) * ratio, 10),
                "savings_plan_savings_plan_effective_cost": taken,
                **_terms(plan),
            }
        )
    return covered, rest, used


def _sized(line: Line, amount: float, cost: float) -> Line:
    return line | {
        "line_item_usage_amount": amount,
        "line_item_unblended_cost": cost,
        "pricing_public_on_demand_cost": cost,
    }


def _negations(plan: SavingsPlan, covered: list[Line]) -> Iterator[Line]:
    """One line per account and usage type takes back the covered lines' cost; it names no resource."""

    def kind(line: Line) -> tuple[str, str]:
        return line["line_item_usage_account_id"], line["line_item_usage_type"]

    for _, same in groupby(sorted(covered, key=kind), key=kind):
        group = list(same)
        cost = usd(sum(line["line_item_unblended_cost"] for line in group))
        amount = round(sum(line["line_item_usage_amount"] for line in group), 10)
        yield _sized(group[0], amount, -cost) | {
            "line_item_line_item_type": "SavingsPlanNegation",
            "line_item_resource_id": "",
            "line_item_availability_zone": "",
            "line_item_line_item_description": f"SavingsPlanNegation used by AccountId : "
            f"{group[0]['line_item_usage_account_id']} and UsageSku : {group[0]['line_item_usage_type']}",
            "pricing_public_on_demand_cost": cost,
            "resource_tags": {},
            "savings_plan_savings_plan_effective_cost": None,
            "capacity_reservation_capacity_reservation_arn": None,
            "capacity_reservation_capacity_reservation_status": None,
            "capacity_reservation_capacity_reservation_type": None,
        }


def _fee(plan: SavingsPlan, hour: datetime, used: float) -> Line:
    return charge_line(
        "SavingsPlanRecurringFee",
        plan.account,
        "ComputeSavingsPlans",
        hour,
        hour + HOUR,
        plan.usd_per_hour,
        "1 year No Upfront Compute Savings Plan",
        line_item_usage_type="ComputeSP:1yrNoUpfront",
        pricing_unit="Hrs",
        product={"product_name": "Savings Plans for AWS Compute usage"},
        product_servicecode="ComputeSavingsPlans",
        pricing_public_on_demand_cost=0.0,
        savings_plan_savings_plan_a_r_n=plan.arn,
        savings_plan_recurring_commitment_for_billing_period=plan.usd_per_hour,
        savings_plan_amortized_upfront_commitment_for_billing_period=0.0,
        savings_plan_total_commitment_to_date=plan.usd_per_hour,
        savings_plan_used_commitment=used,
        **_terms(plan),
    )


def _terms(plan: SavingsPlan) -> Line:
    return {
        "savings_plan_offering_type": "ComputeSavingsPlans",
        "savings_plan_payment_option": "No Upfront",
        "savings_plan_purchase_term": "1yr",
        "savings_plan_start_time": f"{plan.started_at.isoformat()}.000Z",
        "savings_plan_end_time": f"{plan.ended_at.isoformat()}.000Z",
    }
