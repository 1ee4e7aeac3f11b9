"""Commitments whose bill is odd, incomplete or wrong: each is reported by name, and no figure is clamped."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
import yaml
from support.lab import Lab

from pipelines.models.contract import contract_paths

MONTH = "2026-07"
DAILY, MONTHLY = "detail_commitment_utilization_daily", "mart_commitment_utilization_monthly"
PLAN = "arn:aws:savingsplans::000011112222:savingsplan/"
RESERVED = "arn:aws:ec2:us-west-2:000033334444:reserved-instances/"
Line = dict[str, str]


def answer(bill: list[Line], sql: str) -> list[tuple]:
    """A SELECT over the table it names, made of the bill alone."""
    with Lab({MONTH: bill}, {}) as made:
        return made.ask(sql, sql.split(" from ")[1].split()[0])


def span(started: str, ended: str) -> Line:
    return {"line_item_usage_start_date": started, "line_item_usage_end_date": ended}


def hour(number: int, minute: int = 0) -> Line:
    return span(f"2026-07-14 {number:02d}:{minute:02d}:00", f"2026-07-14 {number + 1:02d}:00:00")


def fee(when: Line, total: str, used: str, plan: str = "sp-1", **more: str) -> Line:
    return {
        **when,
        "line_item_line_item_type": "SavingsPlanRecurringFee",
        "line_item_product_code": "ComputeSavingsPlans",
        "line_item_usage_type": "ComputeSP:1yrNoUpfront",
        "line_item_operation": "-",
        "line_item_usage_amount": "1",
        "line_item_unblended_cost": total,
        "savings_plan_savings_plan_a_r_n": PLAN + plan,
        "savings_plan_total_commitment_to_date": total,
        "savings_plan_used_commitment": used,
        **more,
    }


def machine(when: Line, cost: str, kind: str = "Usage", **more: str) -> Line:
    return {
        **when,
        "line_item_line_item_type": kind,
        "line_item_usage_type": "USW2-BoxUsage:p5.48xlarge",
        "line_item_resource_id": "i-0a",
        "product_instance_type": "p5.48xlarge",
        "line_item_usage_amount": "1",
        "line_item_unblended_cost": cost,
        "pricing_public_on_demand_cost": cost,
        **more,
    }


def covered(when: Line, list_cost: str, plan_cost: str, plan: str = "sp-1") -> Line:
    named = {"savings_plan_savings_plan_a_r_n": PLAN + plan, "savings_plan_savings_plan_effective_cost": plan_cost}
    return machine(when, list_cost, "SavingsPlanCoveredUsage", **named)


def reserved_fee(when: Line, units: str, unused: str, cost: str, unused_cost: str, name: str) -> Line:
    return {
        **when,
        "line_item_line_item_type": "RIFee",
        "line_item_usage_type": "USW2-HeavyUsage:m5.xlarge",
        "line_item_usage_amount": units,
        "line_item_unblended_cost": cost,
        "reservation_reservation_a_r_n": RESERVED + name,
        "reservation_total_reserved_units": units,
        "reservation_unused_quantity": unused,
        "reservation_unused_recurring_fee": unused_cost,
    }


def test_a_plan_bought_mid_hour_is_committed_from_then_on() -> None:
    """Bought at 10:30: half an hour's 20.00, of which 15.00 was used, then 40.00 with 30.00 used: 45 of 60 is 75 %."""
    bill = [
        fee(hour(10, 30), "20.00", "15.00"),
        covered(hour(10), "27.52", "15.00"),
        fee(hour(11), "40.00", "30.00"),
        covered(hour(11), "55.04", "30.00"),
    ]
    found = answer(bill, f"select commitment_cost_usd, unused_cost_usd, utilization_ratio from {MONTHLY}")
    assert found == [(Decimal("60"), Decimal("15"), Decimal("0.75"))]


def test_a_plan_that_ended_in_the_month_has_no_days_left_and_no_later_cost() -> None:
    """Its last fee is that of 14 July, 10:00; the other plan goes on on the 15th."""
    ended = {"savings_plan_end_time": "2026-07-14T11:00:00.000Z"}
    later = span("2026-07-15 10:00:00", "2026-07-15 11:00:00")
    bill = [fee(hour(10), "40.00", "40.00", **ended), fee(later, "8.00", "8.00", "sp-2")]
    sql = f"select commitment_id, commitment_cost_usd, days_to_expiry, is_expired from {MONTHLY} order by 1"
    assert answer(bill, sql) == [
        (PLAN + "sp-1", Decimal("40"), 0, True),
        (PLAN + "sp-2", Decimal("8"), None, False),
    ]


def test_a_plan_that_stopped_at_the_end_of_a_month_has_ended() -> None:
    """Returned on 31 July, with years to go: its fees are on no later day, those of the other plan are."""
    last, later = span("2026-07-31 10:00:00", "2026-07-31 11:00:00"), span("2026-08-20 10:00:00", "2026-08-20 11:00:00")
    until = {"savings_plan_end_time": "2028-07-01T00:00:00.000Z"}
    july = [fee(last, "40.00", "40.00", **until), fee(last, "8.00", "8.00", "sp-2", **until)]
    sql = f"select billing_month, commitment_id, is_expired, days_to_expiry = 0 from {MONTHLY} order by 1, 2"
    with Lab(
        {MONTH: july, "2026-08": [fee(later, "8.00", "8.00", "sp-2", **until), machine(later, "55.04")]}, {}
    ) as made:
        found = made.ask(sql, MONTHLY)
    months = [(row[0].month, row[1].removeprefix(PLAN), *row[2:]) for row in found]
    assert months == [(7, "sp-1", True, True), (7, "sp-2", False, False), (8, "sp-2", False, False)]


def test_plans_of_two_payers_stay_apart() -> None:
    """One plan shared by name is still each payer's own."""
    other = {"bill_payer_account_id": "000099998888"}
    bill = [fee(hour(10), "40.00", "10.00"), fee(hour(10), "4.00", "4.00", **other)]
    sql = f"select payer_account_id, utilization_ratio from {MONTHLY} order by 1"
    assert answer(bill, sql) == [("000011112222", Decimal("0.25")), ("000099998888", Decimal("1"))]


def test_a_reservation_that_was_modified_ends_where_the_new_one_begins() -> None:
    """24 hours at 0.10 are 2.40 a day of the old one up to the 14th, and 24 x 0.20 = 4.80 of the one it was
    exchanged for; 33.60 and 81.60 in the month, and no day has both."""
    old, new = span("2026-07-01 00:00:00", "2026-07-15 00:00:00"), span("2026-07-15 00:00:00", "2026-08-01 00:00:00")
    bill = [
        reserved_fee(old, "336", "336", "33.60", "33.60", "ri-old"),
        reserved_fee(new, "408", "408", "81.60", "81.60", "ri-new"),
    ]
    sql = f"select usage_date, count(*), sum(commitment_cost_usd) from {DAILY} group by 1 order by 1"
    days = answer(bill, sql)
    assert [count for _, count, _ in days] == [1] * 31
    assert [cost for _, _, cost in days] == [Decimal("2.40")] * 14 + [Decimal("4.80")] * 17
    sql = f"select commitment_id, unused_cost_usd, lost_savings_reason from {MONTHLY} order by 1"
    assert answer(bill, sql) == [
        (RESERVED + "ri-new", Decimal("81.60"), "nothing used it"),
        (RESERVED + "ri-old", Decimal("33.60"), "nothing used it"),
    ]


def test_a_reservation_that_was_exchanged_has_ended_and_strands_nothing() -> None:
    """It cost 30.00 an hour up to the 14th, the one it was exchanged for does since: 17 days of 720.00, on one of which
    GPUs used 10.00. Until 1 July 2028 that is 700 days: 504,000.00, of which 700 / 17 x 10.00 = 411.76 are used."""
    days = span("2026-07-01 00:00:00", "2026-07-15 00:00:00"), span("2026-07-15 00:00:00", "2026-08-01 00:00:00")
    until, unbilled = {"reservation_end_time": "2028-07-01T00:00:00.000Z"}, {"line_item_unblended_cost": "0"}
    bill = [
        reserved_fee(days[0], "336", "335", "10080", "10070", "ri-old") | until,
        reserved_fee(days[1], "408", "407", "12240", "12230", "ri-new") | until,
    ]
    for day, name in (("10", "ri-old"), ("20", "ri-new")):
        use = {"reservation_reservation_a_r_n": RESERVED + name, "reservation_effective_cost": "10.00"}
        when = span(f"2026-07-{day} 10:00:00", f"2026-07-{day} 11:00:00")
        bill.append(machine(when, "55.04", "DiscountedUsage") | unbilled | use)
    sql = "select commitment_id, committed_to_expiry_usd, stranded_cost_usd from detail_commitment_stranding"
    assert answer(bill, sql) == [(RESERVED + "ri-new", Decimal("504000"), Decimal("411.76"))]
    sql = f"select commitment_id, days_to_expiry, is_expired from {MONTHLY} order by 1"
    assert answer(bill, sql) == [(RESERVED + "ri-new", 700, False), (RESERVED + "ri-old", 0, True)]


def test_a_shorter_month_strands_nothing_of_a_plan() -> None:
    """GPUs use 30.00 of 40.00 in each of June's two hours and in July's only one: none left. In August's, 20.00 of it:
    with June's share of 0.75 they would use 30.00, so 10.00 is stranded."""
    june = [span(f"2026-06-14 {number}:00:00", f"2026-06-14 {number + 1}:00:00") for number in (10, 11)]
    august = span("2026-08-14 10:00:00", "2026-08-14 11:00:00")
    months = {
        "2026-06": [line for when in june for line in (fee(when, "40.00", "30.00"), covered(when, "55.04", "30.00"))],
        MONTH: [fee(hour(10), "40.00", "30.00"), covered(hour(10), "55.04", "30.00")],
        "2026-08": [fee(august, "40.00", "20.00"), covered(august, "36.69", "20.00")],
    }
    with Lab(months, {}) as made:
        found = made.ask(f"select stranded_cost_usd from {MONTHLY} order by billing_month", MONTHLY)
    assert found == [(None,), (Decimal(0),), (Decimal("10"),)]


def test_more_used_than_there_is_is_a_data_error_with_a_name() -> None:
    """45.00 used of 40.00: -5.00 unused, 112.5 %. Neither is clamped, and the check names the plan."""
    bill = [fee(hour(10), "40.00", "45.00"), fee(hour(10), "8.00", "8.00", "sp-2")]
    contract = yaml.safe_load(contract_paths()[f"marts/{MONTHLY}"].read_text(encoding="utf-8"))
    check = contract["warn"]["rows"]["negative_unused_commitment"].replace("{batch}", MONTHLY)
    with Lab({MONTH: bill}, {}) as made:
        found = made.ask(f"select unused_cost_usd, utilization_ratio from {MONTHLY} order by 1", MONTHLY)
        named = made.ask(f"select commitment_id from ({check}) as failing", MONTHLY)
    assert found == [(Decimal("-5"), Decimal("1.125")), (Decimal("0"), Decimal("1"))]
    assert named == [(PLAN + "sp-1",)]


def test_fees_for_hours_to_come_are_not_committed_yet() -> None:
    """An open bill of 14 July with six hours of fees, and use in the first: 30 of 40, not 30 of 240."""
    bill = [fee(hour(10 + number), "40.00", "30.00" if not number else "0", bill_invoice_id="") for number in range(6)]
    bill.append(covered(hour(10), "55.04", "30.00") | {"bill_invoice_id": ""})
    assert answer(bill, f"select commitment_cost_usd, utilization_ratio from {MONTHLY}") == [
        (Decimal("40"), Decimal("0.75"))
    ]


def test_use_without_a_fee_on_any_bill_is_reported() -> None:
    """The plan is another account's: what it covered is known, what it costs is not."""
    sql = f"select used_cost_usd, commitment_cost_usd, utilization_ratio, lost_savings_reason from {MONTHLY}"
    assert answer([covered(hour(10), "55.04", "30.00")], sql) == [
        (Decimal("30"), None, None, "unknown: no fee of it is on the bill")
    ]


def test_use_without_a_fee_has_no_savings_rate() -> None:
    """What of sp-2 went unused is unknown, whatever sp-1 next to it did: its hour is 30.00 of 40.00."""
    negated = machine(hour(10), "-55.04", "SavingsPlanNegation") | {"pricing_public_on_demand_cost": "0"}
    bill = [fee(hour(10), "40.00", "30.00"), covered(hour(10), "55.04", "30.00"), negated]
    sql = (
        "select unused_cost_usd, net_savings_usd, effective_savings_rate_ratio, lost_savings_reason "
        "from mart_effective_savings_rate_monthly where savings_scope = 'classic'"
    )
    assert answer(bill, sql) == [(Decimal("10"), Decimal("15.04"), Decimal("0.273256"), None)]
    assert answer([*bill, covered(hour(10), "55.04", "30.00", "sp-2"), negated], sql) == [
        (None, None, None, "unknown: the bill has no fee of a commitment that was used")
    ]


def test_a_day_that_the_bill_has_in_part_strands_no_less() -> None:
    """24 hours of 40.00 on 14 July, of which GPUs use 30.00, and two of the open 15th: to the end of 25 July that is
    ten days of 960.00, of 720.00 used and 240.00 unused; not of half of 1,040.00."""
    until = {"savings_plan_end_time": "2026-07-26T00:00:00.000Z", "bill_invoice_id": ""}
    hours = [datetime(2026, 7, 14) + timedelta(hours=number) for number in range(26)]
    bill = []
    for when in (span(f"{at}", f"{at + timedelta(hours=1)}") for at in hours):
        bill += [fee(when, "40.00", "30.00", **until), covered(when, "55.04", "30.00") | {"bill_invoice_id": ""}]
    columns = "days_to_expiry, committed_to_expiry_usd, unused_to_expiry_usd, stranded_cost_usd"
    assert answer(bill, f"select {columns} from detail_commitment_stranding") == [
        (10, Decimal("9600"), Decimal("2400"), Decimal("7200"))
    ]


def test_a_plan_bought_mid_hour_covers_its_hour() -> None:
    """AWS bills use from 10:00 to 11:00 and the fee from 10:30 on: 15.00 of both."""
    bill = [fee(hour(10, 30), "20.00", "15.00"), covered(hour(10), "27.52", "15.00")]
    sql = "select covered_cost_usd, used_commitment_usd from stg_aws__savings_plan_hourly"
    assert answer(bill, sql) == [(Decimal("15"), Decimal("15"))]


def test_a_reservation_without_costs_is_listed_and_has_no_rate() -> None:
    """An hour of 55.04 at list that a reservation covers, at no cost, next to a plan of 40.00 that is used whole."""
    reserved = machine(hour(11), "55.04", "DiscountedUsage") | {"line_item_unblended_cost": "0"}
    bill = [fee(hour(10), "40.00", "40.00"), covered(hour(10), "55.04", "40.00"), reserved]
    sql = f"select commitment_kind, commitment_cost_usd, used_cost_usd, lost_savings_reason from {MONTHLY} order by 1"
    assert answer(bill, sql) == [
        ("compute_savings_plan", Decimal("40"), Decimal("40"), None),
        ("reserved_instance", None, None, "unknown: no fee of it is on the bill"),
    ]
    sql = (
        "select usage_cost_usd, effective_savings_rate_ratio, lost_savings_reason "
        "from mart_effective_savings_rate_monthly where savings_scope = 'classic'"
    )
    assert answer([reserved], sql) == [(None, None, "unknown: the bill has no cost of some use")]


@pytest.mark.parametrize("usage", ["SpotUsage", "BoxUsage"])
def test_spot_and_blocks_are_in_no_denominator(usage: str) -> None:
    """An hour of either next to the golden hour's: coverage stays 55.04 of 110.08."""
    outside = machine(hour(10), "20.00", line_item_usage_type=f"USW2-{usage}:p5.48xlarge", line_item_resource_id="i-0c")
    outside |= {"pricing_term": "Spot"} if usage == "SpotUsage" else {"line_item_operation": "RunInstances:CB"}
    bill = [
        fee(hour(10), "40.00", "30.00"),
        covered(hour(10), "55.04", "30.00"),
        machine(hour(10), "55.04", line_item_resource_id="i-0b"),
        outside,
    ]
    sql = (
        "select eligible_list_cost_usd, coverage_ratio from mart_commitment_coverage_daily "
        "where commitment_kind = 'compute_savings_plan'"
    )
    assert answer(bill, sql) == [(Decimal("110.08"), Decimal("0.5"))]


def test_coverage_is_unknown_where_a_line_has_no_public_price() -> None:
    """An hour of 55.04 at list that the plan covers, and one on demand whose list price the bill lacks: the plan covers
    one of two hours, and of the cost an unknown part. What is priced is summed."""
    unpriced = machine(hour(10), "60.00", line_item_resource_id="i-0b")
    del unpriced["pricing_public_on_demand_cost"]
    bill = [fee(hour(10), "40.00", "30.00"), covered(hour(10), "55.04", "30.00"), unpriced]
    sums, plan = (
        "eligible_list_cost_usd, coverage_ratio, unpriced_line_count",
        "commitment_kind = 'compute_savings_plan'",
    )
    expected = (Decimal("55.04"), None, 1)
    columns = f"{sums}, all_families_coverage_ratio, coverage_with_other_kinds_ratio, hours_coverage_ratio"
    found = answer(bill, f"select {columns} from mart_commitment_coverage_daily where {plan}")
    assert found == [(*expected, None, None, Decimal("0.5"))]
    assert answer(bill, f"select {sums} from detail_commitment_coverage_hourly where {plan}") == [expected]
    whole = (
        "commitment_kind = 'all' and account_id = 'all' and accelerator_family = 'all' and eligible_list_cost_usd > 0"
    )
    assert answer(bill, f"select {sums} from detail_commitment_summary_monthly where {whole}") == [expected]


def test_currencies_are_never_added() -> None:
    """The same hour billed in euros stands next to it."""
    bill = [fee(hour(10), "40.00", "30.00"), fee(hour(10), "7.00", "7.00", line_item_currency_code="EUR")]
    sql = f"select billing_currency, commitment_cost_usd from {MONTHLY} order by 1"
    assert answer(bill, sql) == [("EUR", Decimal("7")), ("USD", Decimal("40"))]


def test_a_fee_of_nine_thousand_years_is_one_day() -> None:
    """No term is longer than three years, so all of it is the cost of its first day."""
    bill = [fee(span("1000-01-01 00:00:00", "9999-12-31 00:00:00"), "40.00", "30.00")]
    sql = f"select usage_date, commitment_cost_usd from {DAILY}"
    assert answer(bill, sql) == [(date(1000, 1, 1), Decimal("40"))]
