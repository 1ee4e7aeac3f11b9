"""Costs, commitments and discounts: faults other readers of AWS bills have had, one test each (issue line 10)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import HOUR, ORDINARY_LINE, instance_hour, one_attempt, write_config, write_events, write_export
from support.lab import Lab
from support.ledgers import ask, lazy_warehouse
from support.random_ledgers import HOUR_MS, MONTH, Stay, hour, machine_line, tracker

from pipelines.config.policy import Policy
from pipelines.config.terms import Terms
from pipelines.models.contract import load_contract

Line = dict[str, str]
PLAN = {"savings_plan_savings_plan_a_r_n": "arn:aws:savingsplans::000011112222:savingsplan/sp-1"}
RESERVED = {"reservation_reservation_a_r_n": "arn:aws:ec2:us-west-2:000011112222:reserved-instances/ri-1"}
WHOLE_MONTH = {"line_item_usage_start_date": "2026-07-01 00:00:00", "line_item_usage_end_date": "2026-08-01 00:00:00"}
FIRST_HOURS = [
    {"line_item_usage_start_date": f"2026-07-01 0{n}:00:00", "line_item_usage_end_date": f"2026-07-01 0{n + 1}:00:00"}
    for n in range(3)
]
NODE = [Stay(0, "i-0a", None, 0, HOUR_MS)]
AS_SHIPPED = Policy()
LEDGER, WAY = "fct_ledger", "mart_invoice_reconciliation_monthly"


def answer(bill: list[Line], sql: str, policy: Policy = AS_SHIPPED) -> list[tuple]:
    """A SELECT over the table it names, made of the bill and one run that holds i-0a for hour 20."""
    table = sql.split(" from ")[1].split()[0]
    with Lab({MONTH: bill}, tracker(NODE), policy=policy) as made:
        return made.ask(sql, table)


def charge(kind: str, cost: str, number: int = 0, **more: str) -> Line:
    """A line that is no machine's."""
    return {
        **hour(number), "line_item_line_item_type": kind, "line_item_unblended_cost": cost,
        "line_item_usage_type": "-", "line_item_usage_amount": "0", "line_item_operation": "-", **more,
    }  # fmt: skip


def covered(number: int = 0, rate: str = "30.00", hours: str = "1", cost: str = "55.04", **more: str) -> list[Line]:
    """An hour of i-0a under the plan, and the negation of it, which repeats its hours."""
    both = {**PLAN, "line_item_unblended_cost": cost}
    line = machine_line("i-0a", number, hours, cost, line_item_line_item_type="SavingsPlanCoveredUsage", **both)
    line |= {"savings_plan_savings_plan_effective_cost": rate, **more}
    negation = {**line, "line_item_line_item_type": "SavingsPlanNegation", "line_item_unblended_cost": f"-{cost}"}
    for column in ("line_item_resource_id", "savings_plan_savings_plan_effective_cost"):
        del negation[column]
    return [line, negation]


def without(column: str, lines: list[Line]) -> list[Line]:
    """The lines with this cell empty."""
    return [{name: value for name, value in line.items() if name != column} for line in lines]


def plan_fee(number: int, used: str, total: str = "40.00", **more: str) -> Line:
    fee = {"savings_plan_total_commitment_to_date": total, "savings_plan_used_commitment": used}
    product = {"line_item_product_code": "ComputeSavingsPlans"}
    return charge("SavingsPlanRecurringFee", "40.00", number, **fee, **PLAN, **product, **more)


def test_fees_of_hours_to_come_are_not_cost_to_date() -> None:
    """T3. An open month whose plan is billed for six hours of which one has passed: cut there, 40.00, not 240.00.

    Five later hours, unused so far, show 200.00 of commitment as wasted if nothing is cut. With a later moment, 22:30,
    the cut leaves 2.5 hours of fee, 100.00; with an earlier one it leaves what has been used.
    """
    open_month = {"bill_invoice_id": ""}
    bill = [{**line, **open_month} for line in [*covered(rate="40.00"), plan_fee(0, "40.00")]]
    bill += [plan_fee(number, "0", **open_month) for number in range(1, 6)]
    sql = f"select status, billed_cost_usd, billed_to_date_usd, effective_to_date_usd, newest_usage_at from {WAY}"
    newest = datetime(2026, 7, 14, 20)
    cut = ("open", Decimal("240"), Decimal("40"), Decimal("40"), newest)
    assert answer(bill, sql) == [cut]
    early = Policy(as_of=datetime(2026, 7, 14, 12, tzinfo=UTC))
    assert answer(bill, sql, early) == [cut]
    later = Policy(as_of=datetime(2026, 7, 14, 22, 30, tzinfo=UTC))
    assert answer(bill, sql, later) == [("open", Decimal("240"), Decimal("100"), Decimal("100"), newest)]


def test_a_negation_is_no_usage_and_an_upfront_fee_is_not_paid_twice() -> None:
    """T6. One covered hour of 8 GPUs on an All Upfront plan of 40.00 an hour, bought for 350,400.00 the same month.

    Hours: 8, not 16. Effective: 30.00 covered + 10.00 unused, not 350,440.00; billed: the fee alone. A reservation's
    upfront fee of 8,760.00 the same month counts like the plan's. At list a commitment's purchase is 0, not unknown.
    """
    upfront = {"savings_plan_amortized_upfront_commitment_for_billing_period": "40.00", "line_item_unblended_cost": "0"}
    bill = [*covered(), {**plan_fee(0, "30.00"), **upfront}, charge("SavingsPlanUpfrontFee", "350400.00", **PLAN)]
    bill += [charge("Fee", "8760.00", **RESERVED)]
    sums = "sum(accelerator_hours), sum(effective_cost_usd), sum(billed_cost_usd), sum(list_cost_usd)"
    assert answer(bill, f"select {sums} from {LEDGER} where bucket = 'run'") == [
        (Decimal("8"), Decimal("30"), Decimal("0"), Decimal("55.04"))
    ]
    at_list = f"select count(*) - count(list_cost_usd), sum(list_cost_usd) from {LEDGER} where bucket <> 'run'"
    assert answer(bill, at_list) == [(0, 0)]
    found = answer(bill, f"select effective_cost_usd, upfront_fee_usd, billed_cost_usd from {WAY}")
    assert found == [(Decimal("40"), Decimal("359160"), Decimal("359160"))]


def test_a_reservations_fee_of_the_whole_month_leads_to_the_invoice_on_day_one() -> None:
    """T7. A Partial Upfront reservation on its first day: 1488.00 recurring for 744 hours and 744.00 of its upfront fee
    amortized, one hour used at 3.00 (2.00 + 1.00).

    Effective 3.00, billed 1488.00; between them the amortized 744.00 comes off and 2229.00 is ahead of use:
    743 hours at 3.00. To date: 1488.00 / 744 = 2.00 billed.
    """
    open_month = {"bill_invoice_id": "", **RESERVED}
    used = machine_line("i-0a", 0, "1", "0", line_item_line_item_type="DiscountedUsage", **open_month)
    first = {"line_item_usage_start_date": "2026-07-01 00:00:00", "line_item_usage_end_date": "2026-07-01 01:00:00"}
    amortized = {"reservation_amortized_upfront_fee_for_billing_period": "744.00"}
    fee = charge("RIFee", "1488.00", **{**WHOLE_MONTH, **amortized, **open_month})
    bill = [{**used, **first, "reservation_effective_cost": "3.00"}, fee]
    columns = "effective_cost_usd, upfront_fee_usd, amortized_upfront_usd, commitment_timing_usd, billed_cost_usd"
    assert answer(bill, f"select {columns}, billed_to_date_usd, status from {WAY}") == [
        (Decimal("3"), Decimal("0"), Decimal("-744"), Decimal("2229"), Decimal("1488"), Decimal("2"), "open")
    ]


@pytest.mark.parametrize(("stated", "net"), [("1484.00", None), ("2.00", None), ("1484.00", "0.5")])
def test_what_a_reservation_left_unused_to_date_is_its_fee_to_date_less_its_use(stated: str, net: str | None) -> None:
    """A reservation of 1488.00 for 744 hours, 2.00 each; three hours have passed, two of them used.

    To date it costs 6.00, of which 4.00 are used and 2.00 are not, whether the fee states as unused the 742 hours of
    the month or the one so far. At net costs of one half, 1.00 is unused after discounts. Another machine, at 55.04 on
    demand, ran in the third hour: to date 4.00 + 2.00 + 55.04, at net costs 2.00 + 1.00 + 55.04.
    """
    rest = {
        "reservation_unused_recurring_fee": stated,
        "reservation_unused_amortized_upfront_fee_for_billing_period": "0",
    }
    used = {"line_item_unblended_cost": "0", "reservation_effective_cost": "2.00", "bill_invoice_id": ""}
    on_demand = {"bill_invoice_id": ""}
    if net:
        used |= {"reservation_net_effective_cost": "1.00"}
        on_demand |= {"line_item_net_unblended_cost": "55.04"}
        rest |= {"reservation_net_unused_recurring_fee": "742.00", "line_item_net_unblended_cost": "744.00"}
    bill = [
        machine_line("i-0a", 0, "1", "55.04", line_item_line_item_type="DiscountedUsage", **RESERVED)
        | used
        | FIRST_HOURS[n]
        for n in range(2)
    ]
    bill += [machine_line("i-0b", 0, "1", "55.04") | FIRST_HOURS[2] | on_demand]
    bill += [charge("RIFee", "1488.00", **WHOLE_MONTH, **RESERVED, bill_invoice_id="", **rest)]
    after = Decimal("0.5") if net else Decimal(1)
    with Lab({MONTH: bill}, tracker(NODE), policy=AS_SHIPPED) as made:
        month, rate = "mart_commitment_utilization_monthly", "mart_effective_savings_rate_monthly"
        paid = made.ask(f"select commitment_cost_usd, used_cost_usd, unused_cost_usd from {month}", month)
        assert paid == [(Decimal(6), Decimal(4), Decimal(2))]
        unused = f"select unused_cost_usd from {rate} where savings_scope ="
        assert made.ask(f"{unused} 'classic'", rate) == [(Decimal(2),)]
        assert made.ask(f"{unused} 'all_usage_after_discounts'", rate) == [(2 * after,)]
        assert made.ask(f"select effective_to_date_usd from {WAY}", WAY) == [(6 * after + Decimal("55.04"),)]


def test_what_a_reservation_of_a_database_covers_is_covered() -> None:
    """An hour of a reserved database, 0.45 at list price and 0.226 reserved, next to one of a machine on demand at
    55.04: what its commitment costs and what it covers are both in the sums, 0.45 of 55.49. An hour of another database
    on demand is of no kind that commitments are known to cover."""
    database = {"line_item_product_code": "AmazonRDS", "line_item_usage_type": "InstanceUsage:db.r6g.large"}
    database |= {"product_instance_type": "db.r6g.large", "line_item_usage_amount": "1", "pricing_term": ""}
    used = charge("DiscountedUsage", "0", **RESERVED, **database, reservation_effective_cost="0.226")
    rest = {
        "reservation_unused_recurring_fee": "0",
        "reservation_unused_amortized_upfront_fee_for_billing_period": "0",
    }
    fee = charge("RIFee", "0.226", **RESERVED, **rest, line_item_product_code="AmazonRDS")
    listed = {"pricing_public_on_demand_cost": "0.45"}
    bill = [used | listed | database, charge("Usage", "0.45", **listed) | database, fee]
    bill += [machine_line("i-0a", 0, "1", "55.04")]
    with Lab({MONTH: bill}, tracker(NODE), policy=AS_SHIPPED) as made:
        table = "detail_commitment_summary_monthly"
        where = "commitment_kind = 'all' and account_id = 'all' and accelerator_family in ('other', 'all')"
        found = made.ask(
            "select accelerator_family, eligible_list_cost_usd, covered_list_cost_usd, used_cost_usd "
            f"from {table} where {where} order by 1",
            table,
        )
    dollars = Decimal("0.45"), Decimal("0.226")
    assert found == [("all", Decimal("55.49"), *dollars), ("other", dollars[0], *dollars)]


def test_inferentia_is_a_family_of_its_own_in_coverage_and_use() -> None:
    """An hour of a reserved inf2.48xlarge, 12.98 at list price and 8.20 reserved, is no use of anything else."""
    used = machine_line("i-0a", 0, "1", "12.98", line_item_line_item_type="DiscountedUsage", **RESERVED)
    used |= {"product_instance_type": "inf2.48xlarge", "line_item_usage_type": "USW2-BoxUsage:inf2.48xlarge"}
    used |= {"line_item_unblended_cost": "0", "reservation_effective_cost": "8.20"}
    rest = {
        "reservation_unused_recurring_fee": "0",
        "reservation_unused_amortized_upfront_fee_for_billing_period": "0",
    }
    fee = charge("RIFee", "8.20", **RESERVED, **rest)
    with Lab({MONTH: [used, fee]}, tracker(NODE), policy=AS_SHIPPED) as made:
        day, month = "mart_commitment_coverage_daily", "detail_commitment_family_monthly"
        reserved = f"select accelerator_family from {day} where covered_list_cost_usd = 12.98"
        assert made.ask(reserved, day) == [("inferentia",)]
        by_family = f"select accelerator_family, used_cost_usd from {month} where used_cost_usd > 0"
        assert made.ask(by_family, month) == [("inferentia", Decimal("8.20"))]


def test_a_fee_whose_use_an_open_month_does_not_show_has_no_unused_part_and_no_rate() -> None:
    """A reservation of 1488.00 for 744 hours, 2.00 each, without the columns of its unused part. Up to the newest hour,
    the third, 6.00 are owed and a covered line explains 2.00: of 4.00 the bill does not show what used it."""
    open_month = {"bill_invoice_id": ""}
    used = machine_line("i-0a", 0, "1", "55.04", line_item_line_item_type="DiscountedUsage", **RESERVED)
    used |= {**FIRST_HOURS[0], **open_month, "line_item_unblended_cost": "0", "reservation_effective_cost": "2.00"}
    bill = [used, machine_line("i-0b", 0, "1", "55.04") | FIRST_HOURS[2] | open_month]
    bill += [charge("RIFee", "1488.00", **WHOLE_MONTH, **RESERVED, **open_month)]
    with Lab({MONTH: bill}, tracker(NODE), policy=AS_SHIPPED) as made:
        for table, columns, where, row in (
            ("detail_billing_month", "status, unallocated_fee_usd", "true", ("open", Decimal(4))),
            (
                "mart_effective_savings_rate_monthly",
                "unused_cost_usd, effective_savings_rate_ratio, lost_savings_reason",
                "savings_scope = 'classic'",
                (None, None, "unknown: the bill does not show what used some fees"),
            ),
            (
                "mart_commitment_utilization_monthly",
                "commitment_cost_usd, used_cost_usd, unused_cost_usd, unallocated_fee_usd",
                "true",
                (Decimal(6), None, None, Decimal(4)),
            ),
            (
                "mart_team_cost_monthly",
                "unused_cost_usd, showback_cost_usd, is_cost_partial",
                "team = 'no team' and accelerator_family = 'none'",
                (None, None, True),
            ),
            (
                "mart_cost_summary_monthly",
                "effective_cost_usd, is_cost_partial",
                "dimension_value = 'commitment_unused'",
                (None, True),
            ),
        ):
            assert made.ask(f"select {columns} from {table} where {where}", table) == [row]


@pytest.mark.parametrize("product", ["ComputeSavingsPlans", "MachineLearningSavingsPlans"])
def test_a_plans_fee_refund_counts_nothing_and_any_other_refund_on_it_is_kept(product: str) -> None:
    """T8. Refunds of 50.00 (the plan's upfront fee), 4.00 (its enterprise discount) and 12.00 (a reservation's)."""
    on_plan = {"line_item_product_code": product}
    words = "line_item_line_item_description"
    bill = [
        charge("Refund", "-50.00", **{**on_plan, words: "Refund for one-time fee for Savings Plan ID: sp-1"}),
        charge("Refund", "-4.00", **{**on_plan, words: "EDP refund"}),
        charge("Refund", "-12.00", **{**RESERVED, words: "Refund of a reservation"}),
    ]
    way = f"select effective_cost_usd, neutralised_refund_usd, billed_cost_usd from {WAY}"
    assert answer(bill, way) == [(Decimal("-16"), Decimal("-50"), Decimal("-66"))]


def test_a_node_under_a_plan_gives_its_run_what_the_plan_charges() -> None:
    """T10. Unblended shows the on-demand 55.04 on the node and the negation elsewhere: the run costs 30.00."""
    sums = "run_id, sum(effective_cost_usd), sum(billed_cost_usd), sum(list_cost_usd)"
    bill = [*covered(), plan_fee(0, "30.00")]
    assert answer(bill, f"select {sums} from {LEDGER} where bucket = 'run' group by 1") == [
        ("run-0", Decimal("30"), Decimal("0"), Decimal("55.04"))
    ]


def test_an_hour_on_demand_under_a_plan_and_reserved_is_one_hour() -> None:
    """T12. A quarter on demand at 13.76, half under the plan at 15.00 (27.52 at list), a quarter reserved at 3.00.

    The run held the node for the hour: 8 GPU-hours and 13.76 + 15.00 + 3.00 = 31.76, once, whatever the lines.
    """
    reserved = {"line_item_line_item_type": "DiscountedUsage", "reservation_effective_cost": "3.00", **RESERVED}
    bill = [
        machine_line("i-0a", 0, "0.25", "13.76"),
        *covered(rate="15.00", hours="0.5", cost="27.52"),
        {**machine_line("i-0a", 0, "0.25", "0"), **reserved, "pricing_public_on_demand_cost": "13.76"},
        plan_fee(0, "15.00", "15.00"),
    ]
    sums = "sum(accelerator_hours), sum(effective_cost_usd), sum(list_cost_usd)"
    assert answer(bill, f"select {sums} from {LEDGER} where run_id = 'run-0'") == [
        (Decimal("8"), Decimal("31.76"), Decimal("55.04"))
    ]


def test_savings_stay_below_spend_and_a_loss_is_shown_as_one() -> None:
    """T16. Against 55.04 at list a discount of 60 % saves 33.024, in whichever column; counted in both it would save
    66.048, more than there is. A plan of 40.00 used for 5.00 in an hour worth 9.00 on demand loses 31.00.
    """
    discount = charge("EdpDiscount", "-33.024")
    netted = machine_line("i-0a", 0, "1", "55.04", line_item_net_unblended_cost="22.016")
    saved = f"select sum(list_cost_usd) from {LEDGER} where run_id = 'run-0'"
    spent = f"select sum(effective_cost_usd) from {LEDGER}"
    for bill in ([machine_line("i-0a", 0, "1", "55.04"), discount], [netted, discount]):
        ((listed,),) = answer(bill, saved)
        ((cost,),) = answer(bill, spent)
        assert (listed - cost, cost) == (Decimal("33.024"), Decimal("22.016"))
    idle_plan = [*covered(rate="5.00", cost="9.00"), plan_fee(0, "5.00")]
    sums = "sum(list_cost_usd) - sum(effective_cost_usd)"
    assert answer(idle_plan, f"select {sums} from {LEDGER}") == [(Decimal("-31"),)]


def test_usage_without_a_public_price_hides_none_that_has_one() -> None:
    """T16. Two machines alike but for a public price: 12.00 against 10.00 saves; the other's 7.00 is in no rate."""
    usage = {"line_item_usage_type": "USW2-BoxUsage:m7g.large"}
    bill = [
        charge("Usage", "10.00", line_item_resource_id="i-1", pricing_public_on_demand_cost="12.00", **usage),
        charge("Usage", "7.00", line_item_resource_id="i-2", **usage),
    ]
    figures = "select list_cost_usd, usage_cost_usd, unpriced_cost_usd from mart_effective_savings_rate_monthly"
    assert answer(bill, f"{figures} where savings_scope = 'classic'") == [(12, 10, 7)]


# By payer, what its usage line has of net columns and what its four lines come to.
NET: dict[str, tuple[Line, str]] = {
    # No net value: the discount row is the discount. 100 - 10 + 20 - 5.
    "000000000001": ({}, "105"),
    # Net values on the usage line: the row is inside them. 90 + 20 (tax, whose net is empty) - 5 (refund).
    "000000000002": ({"line_item_net_unblended_cost": "90.00"}, "105"),
    # Net values on some other line only: the usage line keeps its gross, and the row still counts nothing.
    "000000000003": ({"reservation_net_effective_cost": "1.00"}, "115"),
}


def of_payer(payer: str, given: Line) -> list[Line]:
    """Usage 100.00, an EdpDiscount row of 10.00, tax 20.00, a refund of 5.00."""
    bill = [charge("Usage", "100.00", line_item_usage_type="Requests-Tier1", **given)]
    bill += [charge("EdpDiscount", "-10.00"), charge("Tax", "20.00"), charge("Refund", "-5.00")]
    return [line | {"bill_payer_account_id": payer} for line in bill]


def test_net_columns_absent_null_or_present() -> None:
    """T21. One discount in every form, whether the bill lacks the net columns or they are null or filled."""
    sums = f"sum(effective_cost_usd), sum(billed_cost_usd) from {LEDGER}"
    assert answer(of_payer("000000000001", {}), f"select {sums}") == [(Decimal("105"), Decimal("105"))]
    bill = [line for payer, (given, _) in NET.items() for line in of_payer(payer, given)]
    found = {payer: costs for payer, *costs in answer(bill, f"select payer_account_id, {sums} group by 1")}
    assert found == {payer: [Decimal(expected), Decimal("105")] for payer, (_, expected) in NET.items()}


@pytest.mark.parametrize(
    ("choice", "unblended", "net", "expected"),
    [
        ("scaled", "40.00", "36.00", "9.00"),
        ("gross", "40.00", "36.00", "10.00"),
        # Everything off is a ratio of nothing, not an unknown one.
        ("scaled", "40.00", "0", "0"),
        # All Upfront: nothing by the hour, so the amortized part gives the ratio, 40 to 30.
        ("scaled", "0", "0", "7.50"),
    ],
)
def test_unused_commitment_after_discounts_follows_the_policy(
    choice: str, unblended: str, net: str, expected: str
) -> None:
    """Facts 2.3 (unverified): 40 - 30 unused, as it is or by net over gross."""
    fee = plan_fee(0, "30.00") | {"line_item_unblended_cost": unblended, "line_item_net_unblended_cost": net}
    fee |= {"savings_plan_amortized_upfront_commitment_for_billing_period": "40.00"}
    fee |= {"savings_plan_net_amortized_upfront_commitment_for_billing_period": "30.00"}
    sql = f"select sum(effective_cost_usd) from {LEDGER} where bucket = 'commitment_unused'"
    bill = [*covered(line_item_net_unblended_cost="55.04"), fee]
    assert answer(bill, sql, Policy.model_validate({"savings_plan_unused": choice})) == [(Decimal(expected),)]


def test_use_of_a_plan_without_its_cost_strands_nothing_and_is_no_spend_of_zero() -> None:
    """A GPU in reserved capacity uses 30 of a plan's 40 in June, and in July again, where the bill lacks what its use
    costs: how much of July's 10.00 is stranded, what counts toward an agreement, and what the capacity cost is unknown.
    """
    held = {
        "capacity_reservation_capacity_reservation_arn": "arn:aws:ec2:us-west-2:1:capacity-reservation/cr-0a",
        "capacity_reservation_capacity_reservation_status": "Used",
        "capacity_reservation_capacity_reservation_type": "ODCR",
    }
    june = {
        "line_item_usage_start_date": "2026-06-14 20:00:00",
        "line_item_usage_end_date": "2026-06-14 21:00:00",
    }
    use = [line | held for line in covered()]
    bills = {
        "2026-06": [line | june for line in [*use, plan_fee(0, "30.00")]],
        MONTH: [*without("savings_plan_savings_plan_effective_cost", use), plan_fee(0, "30.00")],
    }
    period = {"first_month": "2026-06", "last_month": "2026-07", "commitment_usd": "100"}
    terms = Terms.model_validate({"agreements": [{"name": "edp", "counts": "effective", "periods": [period]}]})
    with Lab(bills, tracker([]), terms=terms) as made:
        for table, columns, row in (
            ("mart_commitment_utilization_monthly", "unused_cost_usd, stranded_cost_usd", (Decimal(10), None)),
            ("detail_edp_burn_down_monthly", "eligible_cost_usd, remaining_cost_usd, forecast_cost_usd", (None,) * 3),
        ):
            july = "billing_month = date '2026-07-01'"
            assert made.ask(f"select {columns} from {table} where {july}", table) == [row]
        stranding = "detail_commitment_stranding"
        assert made.ask(f"select stranded_cost_usd, missing_evidence from {stranding}", stranding) == [
            (None, "the bill has no cost of some GPU use")
        ]
        capacity = "mart_capacity_utilization_daily"
        columns = "used_hours, used_cost_usd, capacity_cost_usd, month_capacity_cost_usd"
        assert made.ask(f"select {columns} from {capacity} order by usage_date", capacity) == [
            (1, 30, 30, 30),
            (1, None, None, None),
        ]


def test_the_missing_bill_of_a_payer_is_no_spend_and_no_use_of_zero() -> None:
    """Payer 1 has bills of 100.00 and 110.00 and 120.00, payer 2 of 40.00 in May and 60.00 in July, and none of June.

    What an agreement counts in June is unknown, whether it names its payers or not; so is what May and June fall short
    of 400.00. Of 20.00 of credits payer 2 used 5.00 in each of two months: 10.00 last two more. April and June are the
    months since they were issued without its bill.
    """

    one, two = ("000000000001", "000000000002")

    def bill(month: str, first: str, *second: str) -> list[Line]:
        time = {
            "line_item_usage_start_date": f"{month}-14 20:00:00",
            "line_item_usage_end_date": f"{month}-14 21:00:00",
        }
        lines = [charge("Usage", first, bill_payer_account_id=one)]
        for usd in second:
            lines += [charge("Usage", usd, bill_payer_account_id=two)]
            lines += [charge("Credit", "-5", bill_payer_account_id=two, line_item_line_item_description="MAP")]
        return [line | time for line in lines]

    spent = {"2026-05": ("100", "40"), "2026-06": ("110",), "2026-07": ("120", "60")}
    bills = {month: bill(month, *usd) for month, usd in spent.items()}
    periods = [
        {"first_month": "2026-05", "last_month": "2026-06", "commitment_usd": "400"},
        {"first_month": "2026-07", "last_month": "2026-12", "commitment_usd": "900"},
    ]
    agreements = [
        {"name": "all", "periods": periods},
        {"name": "two", "payer_account_ids": [one, two], "shortfall": "carried", "periods": periods},
    ]
    pool = {"name": "map", "matches": "MAP", "issued_usd": "20", "issued_on": "2026-04-15"}
    terms = Terms.model_validate({"agreements": agreements, "credits": [{**pool, "payer_account_ids": [two]}]})
    with Lab(bills, tracker([]), terms=terms) as made:
        table, reason = "detail_edp_burn_down_monthly", f"no bill of payer {two} for 2026-06"
        columns = "agreement_name, eligible_cost_usd, carried_cost_usd, shortfall_usd, missing_evidence"
        assert made.ask(f"select {columns} from {table} order by agreement_name, billing_month", table) == [
            ("all", 140, 0, 120, "1 whole month of history; an interval needs 3"),
            ("all", None, 0, None, reason),
            ("all", 180, 0, 0, "1 whole month of history; an interval needs 3"),
            ("two", 140, 0, 120, "1 whole month of history; an interval needs 3"),
            ("two", None, 0, None, reason),
            ("two", 180, None, None, f"the shortfall carried over is unknown: {reason}"),
        ]
        table = "detail_credit_pool_monthly"
        columns = "used_usd, runway_months, cost_after_credits_usd, missing_evidence"
        assert made.ask(f"select {columns} from {table} order by billing_month", table) == [
            (5, 3, 35, "1 month since it was issued without a bill"),
            (None, 3, None, "2 months since it was issued without a bill"),
            (5, 2, 55, "2 months since it was issued without a bill"),
        ]


def test_use_of_a_plan_without_a_list_price_has_no_savings_rate() -> None:
    """30 of 40 are used, by a machine whose list price is unknown: what the plan saves is too."""
    bill = [*without("pricing_public_on_demand_cost", covered()), plan_fee(0, "30.00")]
    columns = "list_cost_usd, net_savings_usd, effective_savings_rate_ratio, lost_savings_reason"
    assert answer(
        bill, f"select {columns} from mart_effective_savings_rate_monthly where savings_scope = 'classic'"
    ) == [(None, None, None, "unknown: some use under a commitment has no public price")]


@pytest.mark.parametrize(
    ("source", "status", "counted", "lost", "wasted", "cause"),
    [
        ("events", "completed", Decimal("0"), Decimal("55.04"), Decimal("55.04"), ("lost_work", True)),
        ("slurm", "completed", None, None, None, ("unknown", False)),
        ("slurm", "failed", None, Decimal("0"), Decimal("110.08"), ("failed_run", True)),
    ],
)
def test_a_source_that_knows_no_checkpoints_makes_no_work_lost(
    source: str, status: str, counted: Decimal | None, lost: Decimal | None, wasted: Decimal | None, cause: tuple
) -> None:
    """A node fails after an hour of 55.04, and the run does another. Events without a checkpoint: the hour is lost.

    Slurm cannot know checkpoints, epochs or phases: the hour may be kept or lost. A failed run is waste whole.
    """
    runs = tracker(
        [Stay(0, "i-0a", None, start, start + HOUR_MS) for start in (0, HOUR_MS)],
        [(0, 0, HOUR_MS), (0, HOUR_MS, 2 * HOUR_MS)],
    )
    runs["tracker_run"][0] |= {"source_system": source, "status": status}
    runs["tracker_attempt"][0]["end_reason"] = "hw_failure"
    bill = [machine_line("i-0a", number, "1", "55.04") for number in (0, 1)]
    columns = "epoch_completed_count, checkpoint_durable_count, lost_work_cost_usd, replay_cost_usd, wasted_cost_usd"
    with Lab({MONTH: bill}, runs) as made:
        found = made.ask(f"select {columns}, goodput_ratio from mart_run_cost", "mart_run_cost")
        causes = made.ask("select distinct cause, is_waste from mart_run_waste", "mart_run_waste")
        total = made.ask(
            "select wasted_cost_usd from detail_run_summary where billing_currency = 'USD' and dimension = 'total'",
            "detail_run_summary",
        )
    replay = None if lost is None else Decimal("0")
    assert found == [(None, counted, lost, replay, wasted, None)]
    assert (causes, total) == ([cause], [(wasted,)])


@pytest.mark.parametrize(("status", "epochs", "expected"), [("completed", None, None), ("failed", 0, "110.08")])
def test_a_training_that_completed_without_a_recorded_epoch_has_no_epoch_of_zero(
    tmp_path: Path, status: str, epochs: int | None, expected: str | None
) -> None:
    """Two hours of 55.04, one with an epoch: 110.08 an epoch if the other run failed, unknown if it completed."""
    lines, events = [], []
    for number in (0, 1):
        lines.append(instance_hour(f"2026-07-01T0{number}", f"i-{number}", "p5.48xlarge", "55.04"))
        inside = [{"event": "epoch_completed", "at": "2026-07-01T00:59:00Z", "epoch": 1}] if number == 0 else []
        start = datetime(2026, 7, 1, number)
        events += one_attempt(f"r-{number}", [f"i-{number}"], "p5.48xlarge", start, HOUR, inside, model="m")
    events[-1]["status"] = status
    write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs=write_events(tmp_path / "runs", events)))
    counted = ask(builder, "select epoch_completed_count from mart_run_cost order by run_id").rows()
    assert counted == [(1,), (epochs,)]
    ((cost,),) = ask(builder, "select cost_per_epoch_usd from detail_workload_cost").rows()
    assert cost == (expected and Decimal(expected))


def test_a_run_that_a_correction_makes_cheaper_than_nothing_stops_no_build() -> None:
    """An hour of 55.04 is corrected by -80.00: it cost -24.96, and no idle time of its machine is missing from that."""
    lines = [machine_line("i-0a", 0, "1", cost) for cost in ("55.04", "-80.00")]
    with Lab({MONTH: lines}, tracker(NODE)) as made:
        assert made.ask("select run_id, effective_cost_usd from mart_run_cost", "mart_run_cost") == [
            ("run-0", Decimal("-24.96"))
        ]
        assert made.ask("select run_id from detail_run_job", "detail_run_job") == [("run-0",)]


def test_what_keeping_a_checkpoint_costs_is_of_its_bucket_alone_and_to_date(tmp_path: Path) -> None:
    """Half of the 1,000 GiB in a bucket are a save of 1 July, 00:01: on 11 July, half of its $7.75, less a minute.

    Ten of 31 days are 322.58 GiB-months, of which the save held 500 x 14,399 / 44,640 = 161.28: 3.8747. A credit that
    repeats the quantity, and a repository of the bucket's name, hold none of the bytes.
    """
    day = {
        **ORDINARY_LINE,
        "bill_invoice_id": "",
        "line_item_product_code": "AmazonS3",
        "line_item_resource_id": "ckpt",
    }
    day |= {"line_item_usage_type": "USW2-TimedStorage-ByteHrs", "line_item_usage_amount": "32.2580645161"}
    lines = [
        {**day, "line_item_usage_start_date": f"2026-07-{n:02d}T00:00:00Z", "line_item_unblended_cost": "0.775",
         "line_item_usage_end_date": f"2026-07-{n + 1:02d}T00:00:00Z"}
        for n in range(1, 11)
    ]  # fmt: skip
    lines += [lines[0] | {"line_item_line_item_type": "Credit", "line_item_unblended_cost": "-0.1"}]
    repository = {"line_item_resource_id": "arn:aws:ecr:us-west-2:000033334444:repository/ckpt"}
    lines += [lines[0] | repository | {"line_item_product_code": "AmazonECR", "line_item_unblended_cost": "100"}]
    write_export(tmp_path, {"2026-07": [*lines, instance_hour("2026-07-01T00", "i-0a", "p5.48xlarge", "55.04")]})
    save = {"event": "checkpoint_saved", "at": "2026-07-01T00:01:00Z", "bytes": 500 << 30, "uri": "s3://ckpt/a"}
    write_events(tmp_path / "runs", one_attempt("r", ["i-0a"], "p5.48xlarge", datetime(2026, 7, 1), HOUR, [save]))
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs="runs"))
    ((cost,),) = ask(builder, "select retention_cost_usd from mart_checkpoint_cost").rows()
    assert round(cost, 4) == Decimal("3.8747")


def test_tax_credits_and_discounts_on_support_are_no_support() -> None:
    """100.00 of support with 20.00 of tax, a credit of 30.00, a refund of 5.00 and a discount of 7.00."""
    amounts = {"Fee": "100.00", "Tax": "20.00", "Credit": "-30.00", "Refund": "-5.00", "EdpDiscount": "-7.00"}
    bill = [charge(kind, cost, line_item_product_code="AWSSupportEnterprise") for kind, cost in amounts.items()]
    found = dict(answer(bill, f"select charge_category, sum(billed_cost_usd) from {LEDGER} group by 1"))
    assert found == {"Support": 100, "Tax": 20, "Credit": -30, "Refund": -5, "Discount": -7}


@pytest.mark.parametrize(("held_minutes", "expected"), [(15, "21.76"), (10, "14.51")])
def test_bytes_of_an_instance_leave_while_it_is_up(held_minutes: int, expected: str) -> None:
    """An instance is up for a quarter of an hour, 13.76, and sends 8.00 of bytes: all are of the run that holds it.

    Of ten of the fifteen minutes two thirds of both are, 14.51; a third of the bytes, 2.67, stays shared.
    """
    sent = {"line_item_usage_type": "USW2-AWS-Out-Bytes", "line_item_resource_id": "i-0a"}
    bill = [machine_line("i-0a", 0, "0.25", "13.76"), charge("Usage", "8.00", **sent)]
    stays = tracker([Stay(0, "i-0a", None, 0, held_minutes * 60_000)])
    with Lab({MONTH: bill}, stays) as made:
        found = dict(made.ask(f"select bucket, sum(effective_cost_usd) from {LEDGER} group by 1", LEDGER))
    assert round(found["run"], 2) == Decimal(expected)
    assert round(found.get("shared", Decimal(0)), 2) == (Decimal(0) if held_minutes == 15 else Decimal("2.67"))


def test_a_run_that_records_cores_for_chips_has_the_machine_and_no_hours_that_are_not_billed() -> None:
    """trn1.32xlarge has 16 chips of 2 cores: 32 for an hour of 21.50 is the whole hour, not 16 hours more."""
    cores = tracker([Stay(0, "i-0b", 32, 0, HOUR_MS)])
    (check,) = [c for c in load_contract("core/fct_resource_claim_monthly").checks if c.name.startswith("more_")]
    query = check.query.format(batch="fct_resource_claim_monthly")
    with Lab({MONTH: [machine_line("i-0b", 0, "1", "21.50")]}, cores) as lab:
        assert lab.ask("select sum(effective_cost_usd) from fct_ledger where bucket = 'run'", LEDGER) == [(21.50,)]
        unbilled = "fct_unbilled_claim_monthly"
        assert lab.ask(f"select count(*) from {unbilled}", unbilled) == [(0,)]
        warned = lab.ask(
            f"select run_id, accelerator_count from ({query})", "fct_resource_claim_monthly", "fct_resource_hourly"
        )
        assert warned == [("run-0", 16)]


@pytest.mark.parametrize(("last_seen", "expected"), [("10:40", (None, 206.40)), ("12:45", (14, None))])
def test_a_run_without_an_end_had_each_machine_to_its_last_billed_second(
    tmp_path: Path, last_seen: str, expected: tuple[float | None, float | None]
) -> None:
    """One machine is billed to 11:30 and one to 12:15: 3.75 hours at 55.04 are 206.40, all of one epoch.

    A heartbeat of 12:45 records 1.25 and 0.5 hours more of 8 GPUs each, 14 accelerator-hours that the bill lacks.
    """
    use = {"i-0a": ("1", "0.5"), "i-0b": ("1", "1", "0.25")}
    lines = [
        instance_hour(f"2026-07-01T{10 + n}", machine, "p5.48xlarge", "55.04", part)
        for machine, parts in use.items()
        for n, part in enumerate(parts)
    ]
    write_export(tmp_path, {"2026-07": [*lines, instance_hour("2026-07-02T20", "i-0c", "p5.48xlarge", "55.04")]})
    inside = [{"event": "epoch_completed", "epoch": 1, "at": "2026-07-01T10:30:00Z"}]
    inside += [{"event": "heartbeat", "at": f"2026-07-01T{last_seen}:00Z"}]
    ended = {"resource_left", "attempt_ended", "run_ended"}
    events = one_attempt("r", list(use), "p5.48xlarge", datetime(2026, 7, 1, 10), HOUR, inside)
    write_events(tmp_path / "runs", [event for event in events if event["event"] not in ended])
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs="runs"))
    (cost,) = ask(builder, "select effective_cost_usd, unbilled_hours, cost_per_epoch_usd from mart_run_cost").rows()
    assert (float(cost[0]), cost[1], cost[2] and float(cost[2])) == (206.40, *expected)


@pytest.mark.parametrize("resource", ["arn:aws:sagemaker:us-west-2:000033334444:training-job/sft", "sft"])
def test_a_run_that_was_killed_has_its_sagemaker_job_to_the_end(tmp_path: Path, resource: str) -> None:
    """A job of 3.5 hours at 20.00; its run's last record is of 10:30. All 70.00 are the run's."""
    arn = "arn:aws:sagemaker:us-west-2:000033334444:training-job/sft"
    train = {"line_item_product_code": "AmazonSageMaker", "line_item_usage_type": "USW2-Train:ml.p4d.24xlarge"}
    lines = [
        instance_hour(f"2026-07-01T{10 + n}", arn, "ml.p4d.24xlarge", "20", part, **train)
        for n, part in enumerate(["1", "1", "1", "0.5"])
    ]
    write_export(tmp_path, {"2026-07": [*lines, instance_hour("2026-07-02T20", "i-0c", "p5.48xlarge", "55.04")]})
    inside = [{"event": "epoch_completed", "epoch": 1, "at": "2026-07-01T10:30:00Z"}]
    ended = {"resource_left", "attempt_ended", "run_ended"}
    events = one_attempt("r", [resource], "ml.p4d.24xlarge", datetime(2026, 7, 1, 10), HOUR, inside)
    write_events(tmp_path / "runs", [event for event in events if event["event"] not in ended])
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs="runs"))
    found = ask(builder, "select effective_cost_usd, cost_per_epoch_usd, status from mart_run_cost").rows()
    assert found == [(70, 70, "unknown")]
