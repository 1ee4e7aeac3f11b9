"""Recommendations from made-up histories whose best commitment is plain to see."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.checks import failing_rows
from pipelines.models.contract import load_contract
from pipelines.transforms.mart_commitment_recommendation import build, recommend

START, WEEK = datetime(2026, 5, 1), 168
PAYER = {"payer_account_id": "000011112222", "billing_currency": "USD"}
PLAN = {"commitment_kind": "compute_savings_plan", "purchase_term": "1yr", "payment_option": "No Upfront"}
NONE_HELD = pl.DataFrame(
    schema={**dict.fromkeys(PAYER, pl.String), "commitment_kind": pl.String, "ended_at": pl.Datetime("us")}
    | {"commitment_per_hour_usd": pl.Decimal(38, 10)}
)


def history(
    weeks: int, cost, kind: str = "p5.48xlarge", eligibility: str = "ec2_instance", on_demand: float | None = 1.0
) -> pl.DataFrame:
    """Open usage hour by hour; `cost` gives an hour's list price by its number, 0 where nothing ran; `on_demand` is the
    part of it that was paid."""
    rows = [
        PAYER
        | {
            "hour_started_at": START + timedelta(hours=hour),
            "region_id": "us-west-2",
            "commitment_eligibility": eligibility,
            "usage_type_key": kind,
            "first_hour_at": START,
            "last_hour_at": START + timedelta(hours=weeks * WEEK - 1),
            "list_cost_usd": float(cost(hour)),
            "on_demand_ratio": on_demand,
        }
        for hour in range(weeks * WEEK)
        if cost(hour)
    ]
    return pl.DataFrame(rows)


def rate(paid: float, kind: str = "p5.48xlarge", **other: str) -> dict[str, object]:
    place = {"region_id": "us-west-2", "usage_type_key": kind, "paid_ratio": paid, "rate_basis": "own bill"}
    return PAYER | PLAN | place | other


def typed(rows: list[dict]) -> list[dict]:
    """The rows as the table has them."""
    return load_contract("marts/mart_commitment_recommendation").frame(rows).to_dicts()


def advise(demand: pl.DataFrame, *rates: dict[str, object], held: pl.DataFrame = NONE_HELD) -> list[dict]:
    return typed(recommend(demand, pl.DataFrame(list(rates)), held))


# A week after nine weeks from START.
END = START + timedelta(weeks=10)
INVENTORY = {
    **dict.fromkeys(("commitment_discount_id", "commitment_key", "commitment_kind", "currency", "state"), pl.String),
    **dict.fromkeys(("purchase_term", "payment_option", "region_id", "instance_family"), pl.String),
    **{"started_at": pl.Datetime("us"), "commitment_per_hour_usd": pl.Decimal(38, 10)},
}


def built(
    demand: pl.DataFrame,
    newest: datetime,
    *days: dict[str, object],
    inventory: list[dict[str, object]] | None = None,
    covered: pl.DataFrame | None = None,
    daily_month: date | None = None,
) -> list[dict]:
    """The recommendations of a bill with this on-demand use, whose newest line is at `newest`; `days` are those of its
    commitments, `inventory` AWS's own answer, `covered` what plan-1 covered. Up to `daily_month` the bill has sums of
    days. A 1-year Compute plan is declared at 0.6.
    """
    used = demand.with_columns(commitment_kind=pl.lit("none"), commitment_id=pl.lit(""), used_cost_usd=pl.lit(0.0))
    used = used.with_columns(on_demand_cost_usd=pl.col("list_cost_usd") * pl.col("on_demand_ratio"))
    if covered is not None:
        names = {"commitment_kind": pl.lit("compute_savings_plan"), "commitment_id": pl.lit("plan-1")}
        used = pl.concat([used, covered.with_columns(**names)], how="diagonal")
    used = used.drop("on_demand_ratio").with_columns(is_rated=pl.lit(False))
    texts = (*PAYER, "commitment_id", "commitment_kind", "purchase_term", "payment_option", "region_id")
    held: dict[str, Any] = dict.fromkeys((*texts, "instance_family"), pl.String)
    held |= {"usage_date": pl.Date} | dict.fromkeys(("started_at", "ended_at"), pl.Datetime("us"))
    money = ("commitment_cost_usd", "unallocated_fee_usd", "covered_hours", "covered_cost_usd")
    declared = pl.DataFrame([PLAN | {"region_id": "us-west-2", "usage_type_key": "p5.48xlarge", "paid_ratio": 0.6}])
    table = {
        "detail_commitment_use_hourly": used.with_columns(last_hour_at=pl.col("hour_started_at").max()),
        "detail_commitment_utilization_daily": pl.DataFrame(
            list(days), schema=held | dict.fromkeys(money, pl.Decimal(38, 10))
        ),
        "fct_invoice_monthly": pl.DataFrame([PAYER | {"newest_usage_at": newest}]),
        "fct_charge": pl.DataFrame(
            [PAYER | {"daily_month": daily_month}] if daily_month else [],
            schema=dict.fromkeys(PAYER, pl.String) | {"daily_month": pl.Date},
        ),
        "stg_aws__commitment": pl.DataFrame(inventory or [], schema=INVENTORY),
        "declared_commitment_rate": declared,
        "ref_commitment_rate": declared.clear().drop("region_id"),
    }
    return typed(build(**table))


def held_from(week: int, weeks: int, per_hour: int, **other: object) -> list[dict[str, object]]:
    """A 1-year Compute plan from the first day of this week to the end of the last one: what it costs each day."""
    days = [START.date() + timedelta(days=day) for day in range(7 * week, 7 * weeks)]
    cost = {"commitment_cost_usd": 24 * per_hour, "unallocated_fee_usd": 0, "commitment_id": "plan-1"}
    return [PAYER | PLAN | cost | {"usage_date": day} | other for day in days]


def plan(rows: list[dict], kind: str = "compute_savings_plan") -> dict:
    (row,) = (row for row in rows if row["commitment_kind"] == kind)
    return row


def test_what_runs_always_is_recommended_at_the_plans_price() -> None:
    """100 an hour at list, 60 % of it under the plan: 60 an hour, all of it used; 40 saved in each of 9 x 168 hours.
    Six weeks learned from, three scored: what was recommended was the best, no regret."""
    row = plan(advise(history(9, lambda hour: 100), rate(0.6)))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit", 60.0)
    assert (row["simulated_coverage_ratio"], row["simulated_utilization_ratio"]) == (1.0, 1.0)
    assert row["simulated_savings_usd"] == 40 * 9 * WEEK
    assert row["worst_week_savings_usd"] == 40 * WEEK
    assert row["back_test_savings_usd"] == 40 * 3 * WEEK
    assert row["back_test_regret_usd"] == 0
    assert row["tranche_per_hour_usd"] == 15.0
    assert row["upfront_cost_usd"] == 0.0


def test_a_plan_that_costs_more_than_the_negotiated_price_is_not_bought() -> None:
    """100 an hour at list, of which 45 are paid on demand: a plan at 56 would lose 11 an hour."""
    row = plan(advise(history(9, lambda hour: 100, on_demand=0.45), rate(0.56)))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit nothing", 0.0)
    assert (row["simulated_savings_usd"], row["back_test_savings_usd"]) == (0, 0)
    assert row["advice_reason"] == "on demand this use costs no more than under the commitment"


def test_savings_are_against_the_negotiated_price() -> None:
    """100 an hour at list, of which 90 are paid on demand: a plan at 60 saves 30 an hour and covers 100 at list."""
    row = plan(advise(history(9, lambda hour: 100, on_demand=0.9), rate(0.6)))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit", 60.0)
    assert row["simulated_savings_usd"] == 30 * 9 * WEEK
    assert row["eligible_share_ratio"] == 1


def test_nothing_is_advised_where_the_on_demand_cost_is_unknown() -> None:
    row = plan(advise(history(9, lambda hour: 100, on_demand=None), rate(0.6)))
    assert (row["advice"], row["commitment_per_hour_usd"], row["simulated_savings_usd"]) == ("undecided", None, None)
    assert row["advice_reason"] == "it is unknown what 1,512 hours of p5.48xlarge cost on demand"


def test_a_weekly_retrain_is_no_baseline() -> None:
    """One day of each week: 24 of 168 hours."""
    row = plan(advise(history(9, lambda hour: 500 if hour % WEEK < 24 else 0), rate(0.6)))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit nothing", 0.0)
    assert "intermittent" in row["advice_reason"]
    assert row["simulated_utilization_ratio"] is None


def test_a_retrain_on_a_baseline_commits_the_baseline() -> None:
    """50 always and 500 more on one day: the baseline is 50, 30 at the plan's price. Every week saves alike."""
    row = plan(advise(history(9, lambda hour: 550 if hour % WEEK < 24 else 50), rate(0.6)))
    assert row["commitment_per_hour_usd"] == 30.0
    assert row["worst_week_savings_usd"] == 20 * WEEK
    # The next dollar is met 24 hours of 168 and saves 1 / 0.6 of list price there.
    assert row["next_dollar_value_usd"] == pytest.approx(24 / 168 / 0.6 - 1, abs=1e-6)


def test_usage_that_ended_is_no_baseline() -> None:
    """Three of nine weeks at 100, then nothing: the hours without any count."""
    row = plan(advise(history(9, lambda hour: 100 if hour < 3 * WEEK else 0), rate(0.6)))
    assert row["commitment_per_hour_usd"] == 0.0


def test_three_weeks_are_too_few() -> None:
    row = plan(advise(history(3, lambda hour: 100), rate(0.6)))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("undecided", None)
    assert row["advice_reason"] == "3 whole weeks of history; advice needs 4"


def test_five_weeks_have_no_back_test_and_nothing_is_bought() -> None:
    """Two thirds of five weeks are three, too few to recommend on."""
    row = plan(advise(history(5, lambda hour: 100), rate(0.6)))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("undecided", None)
    assert row["advice_reason"] == "5 whole weeks of history; a back-test needs 6"


def test_what_its_back_test_loses_is_not_bought() -> None:
    """15 of 18 weeks with use: more than the 60 % that pay. On the first 12 weeks 60 an hour is recommended, and of the
    last 6 weeks it saves 40 an hour in 3 and loses 60 in 3: -20 x 3 x 168."""
    row = plan(advise(history(18, lambda hour: 100 if hour < 15 * WEEK else 0), rate(0.6)))
    assert row["back_test_savings_usd"] == -20 * 3 * WEEK
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit nothing", 0.0)
    assert row["last_used_at"] == START + timedelta(hours=15 * WEEK - 1)


def test_use_that_ended_two_weeks_ago_is_not_bought() -> None:
    """11 of 13 weeks with use, 85 %: more than the 56 % that pay. Learned on 8 weeks and scored on 5,
    56 an hour saves 44 in 3 and loses 56 in 2; the newest 2 weeks have no use. The 77th day from 1 May is 16 July.
    """
    row = plan(advise(history(13, lambda hour: 100 if hour < 11 * WEEK else 0), rate(0.56)))
    assert row["back_test_savings_usd"] == pytest.approx((44 * 3 - 56 * 2) * WEEK)
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit nothing", 0.0)
    assert row["advice_reason"] == "its use ended on 16 July 2026"


def test_no_more_is_bought_than_the_newest_weeks_would_have_used() -> None:
    """100 an hour for 11 weeks, 40 in the newest 2: at 0.56 that is 22.4."""
    row = plan(advise(history(13, lambda hour: 100 if hour < 11 * WEEK else 40), rate(0.56)))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit", 22.4)
    assert row["advice_reason"] == "the newest 2 weeks would have paid for this much, older ones for more"
    assert row["best_commitment_per_hour_usd"] == 56.0


def test_history_ends_at_the_newest_usage_of_any_line() -> None:
    """Nine weeks at 100, then three in which the payer used other things only: 3 of 12 weeks count as zero."""
    newest = START + timedelta(hours=12 * WEEK - 1, minutes=30)
    row = plan(built(history(9, lambda hour: 100), newest))
    assert row["week_count"] == 12
    assert row["last_used_at"] == START + timedelta(hours=9 * WEEK - 1)
    # Learned on 8 weeks: 60 an hour. Scored on 4: 40 saved in one week, 60 lost in three.
    assert row["back_test_savings_usd"] == 40 * WEEK - 60 * 3 * WEEK
    assert row["advice"] == "commit nothing"


def test_a_plan_that_covers_everything_since_last_week_is_not_bought_again() -> None:
    """100 an hour at list on demand for 8 weeks, then a plan of 60 an hour: 100 x 0.6, all of it, in every week."""
    newest = START + timedelta(hours=9 * WEEK - 1)
    row = plan(built(history(8, lambda hour: 100), newest, *held_from(8, 9, 60)))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit nothing", 0.0)
    assert "that the commitments in force would not have covered" in row["advice_reason"]
    assert row["eligible_list_cost_usd"] == 0
    assert row["simulated_coverage_ratio"] is None


def test_only_what_a_new_plan_would_have_left_on_demand_counts_before_it() -> None:
    """A plan of 45 an hour since last week covers 75 of 100 an hour at list: 25 remain in all nine weeks, 15 at 0.6."""
    demand = history(9, lambda hour: 100 if hour < 8 * WEEK else 25)
    row = plan(built(demand, START + timedelta(hours=9 * WEEK - 1), *held_from(8, 9, 45)))
    assert row["advice"] == "commit"
    assert float(row["commitment_per_hour_usd"]) == pytest.approx(15, abs=0.001)


def queued_plan(per_hour: int, **other: object) -> dict[str, Any]:
    """A 1-year Compute plan that begins on the day after nine weeks from START, 3 July."""
    names = {"commitment_discount_id": "arn:aws:savingsplans::1:savingsplan/sp-1", "commitment_key": "sp-1"}
    start = {"started_at": START + timedelta(weeks=9), "commitment_per_hour_usd": per_hour, "state": "queued"}
    return dict.fromkeys(INVENTORY) | PLAN | names | start | {"currency": "USD"} | other


@pytest.mark.parametrize(
    ("plan_in_queue", "days", "advised", "per_hour"),
    [
        # Of 100 an hour at list it covers 45 / 0.6 = 75; 25 remain, 15 at 0.6.
        (queued_plan(45), [], "commit", 15),
        (queued_plan(60), [], "commit nothing", 0),
        (queued_plan(60, state="queued-deleted"), [], "commit", 60),
        # No rate of a plan of three years is known: neither is what it covers.
        (queued_plan(60, purchase_term="3yr"), [], "undecided", None),
        # It renews a plan of 60 whose use is not on demand: nothing more is covered.
        (queued_plan(60, started_at=END), held_from(0, 9, 60, started_at=START, ended_at=END), "commit", 60),
        # 45 more than the 15 that it renews.
        (queued_plan(60, started_at=END), held_from(0, 9, 15, started_at=START, ended_at=END), "commit", 15),
    ],
    ids=["part", "all", "deleted", "no rate", "renewal", "larger renewal"],
)
def test_only_what_a_queued_plan_leaves_is_recommended(
    plan_in_queue: dict[str, Any], days: list[dict[str, object]], advised: str, per_hour: float | None
) -> None:
    newest = START + timedelta(hours=9 * WEEK - 1)
    row = plan(built(history(9, lambda hour: 100), newest, *days, inventory=[plan_in_queue]))
    assert row["advice"] == advised
    assert row["commitment_per_hour_usd"] == (None if per_hour is None else pytest.approx(per_hour, abs=0.001))
    name = f"; counted as in force: sp-1 from {plan_in_queue['started_at'].day} July 2026"
    assert row["advice_reason"].endswith(name) == (per_hour != 60)


@pytest.mark.parametrize(
    "days",
    [
        # Bought on the newest day: the bill has no whole day of it.
        held_from(8, 9, 60)[-1:],
        # No rate of a plan of three years is known.
        held_from(8, 9, 60, purchase_term="3yr"),
    ],
    ids=["no whole day", "no rate"],
)
def test_what_a_new_plan_would_have_covered_may_be_unknown(days: list[dict[str, object]]) -> None:
    row = plan(built(history(8, lambda hour: 100), START + timedelta(hours=9 * WEEK - 1), *days))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("undecided", None)
    assert row["advice_reason"].startswith("it is unknown how much use of p5.48xlarge")


@pytest.mark.parametrize("on_demand", [1.0, 0.9])
def test_what_a_plan_covered_that_has_ended_runs_on_demand_now(on_demand: float) -> None:
    """100 an hour at list in 13 weeks, under a plan of 60 for 9 of them, on demand at 100 or 90 since: 60 an hour again
    save 40 or 30 in each of 13 weeks. The bill has no end of that plan, as none of FOCUS has."""
    covered = history(13, lambda hour: 100 if hour < 9 * WEEK else 0)
    demand = history(13, lambda hour: 0 if hour < 9 * WEEK else 100, on_demand=on_demand)
    newest = START + timedelta(hours=13 * WEEK - 1)
    row = plan(built(demand, newest, *held_from(0, 9, 60), covered=covered))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit", 60.0)
    assert row["simulated_savings_usd"] == pytest.approx(Decimal(100 * on_demand - 60) * 13 * WEEK)
    assert row["expiring_per_hour_usd"] == 0
    # Renewed in the last week, nothing of it is on demand.
    demand = demand.filter(pl.col("hour_started_at") < START + timedelta(weeks=12))
    renewed = held_from(12, 13, 60, commitment_id="plan-2")
    # Renewed at once, it has no price on demand, and needs none.
    at_once = held_from(9, 13, 60, commitment_id="plan-2")
    for open_use, newer in ((demand, renewed), (demand.clear(), at_once)):
        row = plan(built(open_use, newest, *held_from(0, 9, 60), *newer, covered=covered))
        assert (row["advice"], row["commitment_per_hour_usd"]) == ("commit nothing", 0.0)
        assert (row["eligible_list_cost_usd"], row["simulated_savings_usd"]) == (0, 0)


def test_sums_of_days_show_no_hours() -> None:
    """Always 100 an hour, on the bill as 2,400 a day. By the hour since June, it has 60 days, 8 weeks, of history."""
    newest, day = START + timedelta(hours=13 * WEEK - 1), timedelta(hours=24)
    by_day = history(13, lambda hour: 2400 if hour % 24 == 0 else 0)
    row = plan(built(by_day, newest, daily_month=date(2026, 7, 1)))
    assert (row["advice"], row["commitment_per_hour_usd"], row["week_count"]) == ("undecided", None, 0)
    assert row["advice_reason"].endswith("up to July 2026 the bill has days, not hours: set the export to hourly")
    hourly_from = (datetime(2026, 6, 1) - START) // day * 24
    since = history(13, lambda hour: 100 if hour >= hourly_from else 2400 if hour % 24 == 0 else 0)
    row = plan(built(since, newest, daily_month=date(2026, 5, 1)))
    assert (row["advice"], row["commitment_per_hour_usd"], row["week_count"]) == ("commit", 60.0, 8)


def test_nothing_is_bought_while_the_use_of_what_is_owned_is_unknown() -> None:
    demand, reason = history(9, lambda hour: 100), "the bill does not show what used 13,687.20 USD of commitment fees"
    row = plan(typed(recommend(demand, pl.DataFrame([rate(0.6)]), NONE_HELD, {tuple(PAYER.values()): reason})))
    assert (row["advice"], row["commitment_per_hour_usd"], row["advice_reason"]) == ("undecided", None, reason)


def test_nothing_is_bought_while_a_plan_in_use_has_no_fee() -> None:
    """What of it is unused is unknown; that of a plan whose newest fee is late is not."""
    newest, demand = START + timedelta(hours=9 * WEEK - 1), history(9, lambda hour: 100)
    late = {"commitment_id": "plan-1", "usage_date": newest.date(), "commitment_cost_usd": None}
    late |= {"covered_hours": 24, "covered_cost_usd": 1440, "unallocated_fee_usd": 0}
    held = held_from(0, 9, 60)
    row = plan(built(demand, newest, *held[:-1], PAYER | PLAN | late))
    assert row["advice"] == "commit"
    row = plan(built(demand, newest, *held, PAYER | PLAN | late | {"commitment_id": "plan-2"}))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("undecided", None)
    assert row["advice_reason"] == "the bill has no fee of a commitment that was used in 28 days"


def test_nothing_is_bought_while_a_commitment_cannot_be_read() -> None:
    unread = dict.fromkeys(INVENTORY) | {"commitment_discount_id": "plans.json SavingsPlans number 3"}
    row = plan(built(history(9, lambda hour: 100), START + timedelta(weeks=9), inventory=[unread]))
    assert (row["advice"], row["commitment_per_hour_usd"]) == ("undecided", None)
    assert row["advice_reason"] == "commitments cannot be read, such as plans.json SavingsPlans number 3"


def test_offers_for_the_same_use_exclude_each_other() -> None:
    """A Compute plan for one and for three years: either, not both. Of 100 + 30 an hour it covers 100: 76.9 %."""
    demand = pl.concat([history(9, lambda hour: 100), history(9, lambda hour: 30, "p6-b200.48xlarge")])
    rows = advise(demand, rate(0.6), rate(0.5, purchase_term="3yr"))
    bought = {row["purchase_term"]: row for row in rows if row["advice"] == "commit"}
    assert bought["1yr"]["exclusive_offers"] == "compute_savings_plan 3yr No Upfront"
    assert bought["3yr"]["exclusive_offers"] == "compute_savings_plan 1yr No Upfront"
    assert bought["1yr"]["eligible_share_ratio"] == pytest.approx(100 / 130, abs=1e-6)


def test_usage_without_a_rate_is_left_out_and_named() -> None:
    """100 an hour has a rate, 30 an hour of another type has none; of a third, commitments in force leave nothing."""
    covered = history(8, lambda hour: 30, "trn1.32xlarge").with_columns(list_cost_usd=0.0)
    demand = pl.concat([history(8, lambda hour: 100), history(8, lambda hour: 30, "p6-b200.48xlarge"), covered])
    row = plan(advise(demand, rate(0.6)))
    assert row["commitment_per_hour_usd"] == 60.0
    assert (row["unrated_usage_types"], row["unrated_list_cost_usd"]) == ("p6-b200.48xlarge", 30 * 8 * WEEK)


def test_a_family_without_a_rate_is_named_where_another_has_one() -> None:
    """Plans are bound to a family: 30 an hour of p6-b200, which no rate has, is in no offer of p5."""
    demand = pl.concat([history(8, lambda hour: 100), history(8, lambda hour: 30, "p6-b200.48xlarge")])
    rows = advise(demand, rate(0.6, commitment_kind="ec2_instance_savings_plan"))
    found = {row["instance_family"]: row for row in rows if row["commitment_kind"] == "ec2_instance_savings_plan"}
    assert (found["p5"]["unrated_usage_types"], found["p5"]["advice"]) == (None, "commit")
    lacking = found["p6-b200"]
    assert (lacking["unrated_usage_types"], lacking["unrated_list_cost_usd"]) == ("p6-b200.48xlarge", 30 * 8 * WEEK)
    assert (lacking["advice"], lacking["advice_reason"]) == ("undecided", "no rate is known for any of the usage")


def test_no_rate_at_all_commits_nothing_and_states_why() -> None:
    rows = advise(history(8, lambda hour: 100), rate(0.6, kind="g5.xlarge"))
    for kind in ("compute_savings_plan", "ec2_instance_savings_plan", "reserved_instance"):
        assert plan(rows, kind)["advice_reason"] == "no rate is known for any of the usage"


def test_the_own_bill_comes_before_the_list() -> None:
    listed = rate(0.9, region_id="", rate_basis="reviewed list")
    row = plan(advise(history(8, lambda hour: 100), rate(0.6), listed))
    assert (row["commitment_per_hour_usd"], row["rate_basis"]) == (60.0, "own bill")


def test_a_declared_rate_comes_after_the_own_bill_and_before_the_list() -> None:
    """100 an hour: declared at 0.7 for its region, at 0.8 for any, 0.9 on the list: 70. With the own bill's 0.6: 60."""
    here, anywhere = rate(0.7, rate_basis="declared"), rate(0.8, rate_basis="declared", region_id="")
    listed = rate(0.9, region_id="", rate_basis="reviewed list")
    row = plan(advise(history(8, lambda hour: 100), listed, anywhere, here))
    assert (row["commitment_per_hour_usd"], row["rate_basis"]) == (70.0, "declared")
    assert plan(advise(history(8, lambda hour: 100), listed, anywhere))["commitment_per_hour_usd"] == 80.0
    assert plan(advise(history(8, lambda hour: 100), listed, here, rate(0.6)))["commitment_per_hour_usd"] == 60.0


def test_a_rate_declared_for_another_region_is_none() -> None:
    row = plan(advise(history(8, lambda hour: 100), rate(0.7, rate_basis="declared", region_id="eu-north-1")))
    assert (row["commitment_per_hour_usd"], row["advice_reason"]) == (None, "no rate is known for any of the usage")


def test_sagemaker_plans_see_sagemaker_alone() -> None:
    demand = pl.concat(
        [
            history(8, lambda hour: 100),
            history(8, lambda hour: 20, "ml.trn1.32xlarge", "sagemaker_instance"),
        ]
    )
    rows = advise(demand, rate(0.6), rate(0.5, kind="ml.trn1.32xlarge", commitment_kind="sagemaker_savings_plan"))
    assert plan(rows)["commitment_per_hour_usd"] == 60.0
    assert plan(rows, "sagemaker_savings_plan")["commitment_per_hour_usd"] == 10.0


def test_payers_are_advised_apart() -> None:
    demand = pl.concat(
        [history(8, lambda hour: 100), history(8, lambda hour: 40).with_columns(payer_account_id=pl.lit("9"))]
    )
    rows = advise(demand, rate(0.6), rate(0.6) | {"payer_account_id": "9"})
    found = {row["payer_account_id"]: row["commitment_per_hour_usd"] for row in rows if row["purchase_term"]}
    assert found == {"000011112222": 60.0, "9": 24.0}


@pytest.mark.parametrize(
    ("later", "expected"),
    [(datetime(2028, 12, 1), (12.0, datetime(2026, 12, 1))), (None, (None, None))],
    ids=["two years later", "no end on the bill"],
)
def test_what_ends_within_the_term_is_shown(later: datetime | None, expected: tuple[object, object]) -> None:
    """History ends 26 June 2026: 12 an hour end in December; 7 an hour end later, or when is unknown, as in FOCUS."""
    held = pl.DataFrame(
        [
            PAYER | {"commitment_kind": "compute_savings_plan", "ended_at": ended, "commitment_per_hour_usd": cost}
            for ended, cost in ((datetime(2026, 12, 1), 12.0), (later, 7.0))
        ]
    )
    row = plan(advise(history(8, lambda hour: 100), rate(0.6), held=held))
    assert (row["expiring_per_hour_usd"], row["next_expiry_at"]) == expected


@pytest.mark.parametrize(
    ("newest_hour", "days", "expected"),
    [
        # The bill ends at 10:00: the newest day has 10 of its 24 hours, the day before has all.
        (9, [24 * 12, 10 * 12], 12),
        (23, [24 * 12, 24 * 12], 12),
        # It began at 18:00 of the day before: no whole day shows what an hour costs.
        (9, [6 * 12, 10 * 12], None),
        (9, [10 * 12], None),
    ],
    ids=["part of a day", "whole day", "no whole day", "one day"],
)
def test_what_a_commitment_costs_an_hour_is_that_of_its_newest_whole_day(
    newest_hour: int, days: list[int], expected: int | None
) -> None:
    newest = START + timedelta(weeks=8, hours=newest_hour)
    first = newest.date() - timedelta(days=len(days) - 1)
    held = {
        "commitment_id": "plan-1",
        "started_at": newest - timedelta(days=30)
        if days[0] == 24 * 12
        else newest.replace(hour=18) - timedelta(days=1),
        "ended_at": newest + timedelta(days=90),
        "unallocated_fee_usd": 0,
    }
    rows = [
        PAYER | PLAN | held | {"usage_date": first + timedelta(days=day), "commitment_cost_usd": cost}
        for day, cost in enumerate(days)
    ]
    assert plan(built(history(8, lambda hour: 100), newest, *rows))["expiring_per_hour_usd"] == expected


@pytest.mark.parametrize("first_basis", ["own bill", None])
def test_usage_without_a_rate_is_counted_once(tmp_path: Path, first_basis: str | None) -> None:
    """Of 100, one offer lacks the 40 of g6, the offer of another term and a kind without any rate lack all of it.

    That no offer has any rate is reported too.
    """
    contract = load_contract("marts/mart_commitment_recommendation")
    lacking = [("1yr", 40, "g6", first_basis), ("3yr", 100, "g6, p5", None), ("", 100, "g6, p5", None)]
    names = ("purchase_term", "unrated_list_cost_usd", "unrated_usage_types", "rate_basis")
    rows = [PAYER | PLAN | dict(zip(names, offer, strict=True)) for offer in lacking]
    contract.frame(rows).write_parquet(tmp_path / "offers.parquet")
    (check,) = (check for check in contract.checks if check.name == "usage_without_a_known_rate")
    with DuckDBEngine() as engine:
        engine.view("offers", [tmp_path / "offers.parquet"])
        warned = engine.query(failing_rows(check, "offers"))
    assert warned.rows() == [(*PAYER.values(), Decimal(100), "g6, p5", 3)]


def test_three_years_all_upfront_are_paid_at_once() -> None:
    """60 an hour for 3 x 8760 hours."""
    row = plan(advise(history(8, lambda hour: 100), rate(0.6, purchase_term="3yr", payment_option="All Upfront")))
    assert row["upfront_cost_usd"] == 60 * 3 * 8760
