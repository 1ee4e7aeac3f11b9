"""Burn-downs and pools from made-up months: gaps, an open month, periods in a row, more used than issued."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import polars as pl
import pytest

from pipelines.transforms import detail_credit_pool_monthly as pools
from pipelines.transforms import detail_edp_burn_down_monthly as burn_down

MONEY = pl.Decimal(38, 10)
Row = dict[str, Any]


def month(number: int) -> date:
    """The first day of a month of 2026; 0 is December before it, 13 January after."""
    return date(2026 + (number - 1) // 12, (number - 1) % 12 + 1, 1)


def spend(
    amounts: Mapping[int, str | None],
    opened: int | None = None,
    kind: str = "agreement",
    undelivered: Mapping[int, int] = MappingProxyType({}),
) -> pl.DataFrame:
    rows = [
        {
            "term_kind": kind,
            "term_name": "one",
            "billing_month": month(number),
            "is_open_month": number == opened,
            "eligible_cost_usd": None if usd is None else Decimal(usd),
            "training_cost_usd": None if usd is None else Decimal(usd) / 4,
            "undelivered_payer_count": undelivered.get(number, 0),
            "undelivered_payer_account_id": "111122223333" if number in undelivered else None,
        }
        for number, usd in amounts.items()
    ]
    money = {"eligible_cost_usd": MONEY, "training_cost_usd": MONEY, "undelivered_payer_account_id": pl.String}
    return pl.DataFrame(rows, schema_overrides=money)


def burnt(
    amounts: Mapping[int, str | None],
    *,
    rule: str = "paid",
    opened: int | None = None,
    undelivered: Mapping[int, int] = MappingProxyType({}),
) -> dict[int, dict[str, Any]]:
    """Rows by month, of an agreement of 120.00 from January to June 2026 and 100.00 from July to December."""
    agreement = pl.DataFrame([{"agreement_name": "one", "billing_currency": "USD", "shortfall_rule": rule}])
    periods = pl.DataFrame(
        [
            {
                "agreement_name": "one",
                "period_no": number,
                "period_started_date": month(6 * number - 5),
                "period_ended_date": date(2026, 6 * number, 30 if number == 1 else 31),
                "committed_cost_usd": Decimal(committed),
            }
            for number, committed in ((1, "120"), (2, "100"))
        ]
    )
    rows = burn_down.build(agreement, periods, spend(amounts, opened, undelivered=undelivered))
    return {row["billing_month"].month: row for row in rows}


def pools_of(used: Mapping[int, str], declared: list[Row], opened: int | None = None) -> list[Row]:
    """Rows of the pools of a bill whose credits are called `SLA`, with a spend of 50.00 a month for pool `one`."""
    schema = {"pool_no": pl.Int64, "pool_name": pl.String, "billing_currency": pl.String, "matched_text": pl.String}
    bills = [(month(number), "USD", number == opened) for number in used]
    issued = {"issued_usd": MONEY, "issued_date": pl.Date, "expiry_date": pl.Date}
    return pools.build(
        declared_credit_pool=pl.DataFrame(declared, schema=schema | issued),
        declared_term_payer=pl.DataFrame([("one", None)], schema=["term_name", "payer_account_id"], orient="row"),
        fct_bill_total_monthly=pl.DataFrame(bills, orient="row"),
        fct_charge_sum_monthly=pl.DataFrame(
            [("111122223333", month(number), "USD", "SLA", Decimal(usd)) for number, usd in used.items()], orient="row"
        ),
        fct_term_spend_monthly=spend(dict.fromkeys(used, "50"), kind="credits"),
    )


def pool(used: dict[int, str], opened: int | None = None, expires: date | None = None) -> list[dict[str, Any]]:
    """Rows of a pool of 100.00, issued on 15 January 2026."""
    declared = {
        "pool_no": 1,
        "pool_name": "one",
        "billing_currency": "USD",
        "matched_text": "sla",
        "issued_usd": Decimal(100),
        "issued_date": date(2026, 1, 15),
        "expiry_date": expires,
    }
    return pools_of(used, [declared], opened)


def test_spend_of_unknown_cost_leaves_no_remainder_no_forecast_and_no_known_shortfall() -> None:
    """March has use without a cost: the period's sum is unknown from March on, and what it carries into the next."""
    rows = burnt({**dict.fromkeys(range(1, 8), "15"), 3: None}, rule="carried")
    assert (rows[2]["cumulative_cost_usd"], rows[2]["remaining_cost_usd"]) == (30, 90)
    for name in ("cumulative_cost_usd", "remaining_cost_usd", "needed_per_month_usd", "forecast_cost_usd"):
        assert rows[4][name] is None
    assert rows[4]["missing_evidence"] == "the bill has no cost of some use in 1 month of the period"
    assert (rows[6]["shortfall_usd"], rows[7]["carried_cost_usd"], rows[7]["remaining_cost_usd"]) == (None, None, None)


def test_a_period_that_ended_is_known_and_not_forecast() -> None:
    """Six times 15.00 are 90.00 of 120.00: 30.00 is missing, and that is no estimate."""
    row = burnt(dict.fromkeys(range(1, 7), "15"))[6]
    assert (row["forecast_cost_usd"], row["forecast_low_cost_usd"], row["forecast_high_cost_usd"]) == (90.0, 90.0, 90.0)
    assert (row["shortfall_usd"], row["needed_per_month_usd"], row["missing_evidence"]) == (30.0, None, None)


def test_a_shortfall_is_carried_or_owed_or_dropped() -> None:
    amounts = dict.fromkeys(range(1, 8), "15")
    carried, paid, none = (burnt(amounts, rule=rule)[7] for rule in ("carried", "paid", "none"))
    assert [row["carried_cost_usd"] for row in (carried, paid, none)] == [Decimal(30), Decimal(0), Decimal(0)]
    # 100.00 and what is carried, less July's 15.00.
    assert [row["remaining_cost_usd"] for row in (carried, paid, none)] == [Decimal(115), Decimal(85), Decimal(85)]
    # Six months of 15.00 to come, 90.00 in all.
    assert [row["shortfall_usd"] for row in (carried, paid, none)] == [40.0, 10.0, 0.0]


def test_an_open_month_is_spent_so_far_and_forecast_whole() -> None:
    """Three whole months of 10.00; of April 2.00 is known. June is forecast with three more months of 10.00: 60.00."""
    row = burnt({1: "10", 2: "10", 3: "10", 4: "2"}, opened=4)[4]
    assert (row["cumulative_cost_usd"], row["history_month_count"], row["remaining_month_count"]) == (Decimal(32), 3, 3)
    assert row["forecast_cost_usd"] == 60.0


def test_a_forecast_is_never_below_what_is_spent() -> None:
    """An open month that ran ahead: 30.00 whole and 100.00 already, though the mean would come to 60.00."""
    row = burnt({1: "10", 2: "10", 3: "10", 4: "100"}, opened=4)[4]
    assert (row["forecast_low_cost_usd"], row["forecast_cost_usd"]) == (130.0, 130.0)


def test_a_month_without_a_bill_is_named_and_ends_the_history() -> None:
    """What March spent is unknown, and with it the sum of the period and its end."""
    row = burnt({1: "10", 2: "10", 4: "10"})[4]
    assert row["missing_evidence"] == "1 month of the period without a bill"
    assert (row["history_month_count"], row["cumulative_cost_usd"], row["shortfall_usd"]) == (1, None, None)


@pytest.mark.parametrize(
    ("amounts", "reason"),
    [
        (
            {**dict.fromkeys(range(1, 8), "15"), 5: None, 6: None},
            "no bill of payer 111122223333 for 2026-05, and 1 more",
        ),
        ({**dict.fromkeys(range(1, 6), "15"), 7: "15"}, "1 month of the period without a bill"),
        ({7: "15"}, "6 months of the period without a bill"),
    ],
)
def test_what_a_period_with_a_missing_bill_carries_over_is_unknown(
    amounts: Mapping[int, str | None], reason: str
) -> None:
    """A payer's bills of May and June, June's bill, or all bills are missing of a period; July is all there."""
    undelivered = {number: 1 for number, usd in amounts.items() if usd is None}
    rows = burnt(amounts, rule="carried", undelivered=undelivered)
    if undelivered:
        assert (rows[4]["cumulative_cost_usd"], rows[6]["shortfall_usd"]) == (60, None)
        assert rows[6]["missing_evidence"] == reason
    july = rows[7]
    assert (july["cumulative_cost_usd"], july["carried_cost_usd"], july["remaining_cost_usd"]) == (15, None, None)
    assert july["missing_evidence"] == f"the shortfall carried over is unknown: {reason}"


def test_months_before_the_agreement_are_history() -> None:
    """Six months of the first period and July: a line through seven."""
    assert burnt(dict.fromkeys(range(1, 8), "15"))[7]["forecast_method"] == "a line through 7 months"


def test_more_used_than_was_issued_stands_below_nothing() -> None:
    last = pool({1: "60", 2: "70"})[-1]
    assert (last["remaining_usd"], last["runway_months"], last["expired_usd"]) == (Decimal(-30), 0.0, Decimal(0))


def test_what_is_left_at_the_expiry_is_gone() -> None:
    """Used 30.00 and 20.00; the month of the expiry is February, so 50.00 expires with it and nothing is left."""
    first, last = pool({1: "30", 2: "20"}, expires=date(2026, 2, 10))
    assert (first["remaining_usd"], first["months_to_expiry"], first["unused_at_expiry_usd"]) == (Decimal(70), 1, 40.0)
    assert (last["expired_usd"], last["remaining_usd"], last["runway_months"]) == (Decimal(50), Decimal(0), 0.0)


def test_an_open_month_of_expiry_has_not_lost_anything_yet() -> None:
    """Of 100.00, the 50.00 that remain are used like January's 30.00: 10.00 more in February, so 40.00 expire."""
    last = pool({1: "30", 2: "20"}, opened=2, expires=date(2026, 2, 10))[-1]
    assert (last["expired_usd"], last["remaining_usd"]) == (Decimal(0), Decimal(50))
    assert last["unused_at_expiry_usd"] == 40.0


def test_a_pool_begins_with_the_month_it_was_issued_or_first_used_in() -> None:
    assert [row["billing_month"] for row in pool({-1: "0", 1: "0", 2: "5"})] == [month(1), month(2)]
    # Months before its first use show nothing of how fast it is used.
    assert pool({1: "0", 2: "5"})[-1]["history_month_count"] == 1


def test_a_credit_that_was_taken_back_is_a_pool_without_use() -> None:
    """5.00 given and 5.00 taken back within the month, by an undeclared program."""
    (row,) = pools_of({7: "0"}, [])
    assert (row["used_usd"], row["remaining_usd"], row["runway_months"]) == (Decimal(0), None, None)
    assert row["missing_evidence"] == "the issued amount is not declared: add it to [[terms.credits]]"
