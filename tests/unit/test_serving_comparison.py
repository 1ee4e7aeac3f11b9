"""Another way to serve the same traffic: cost, crossover and verdict over made-up days; figures derived by hand."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from math import exp, sqrt
from typing import Any

import polars as pl
import pytest

from pipelines.analysis.crossover import break_even_tokens_per_second, saving_of_days
from pipelines.base.resources import REFERENCE
from pipelines.models.contract import load_contract
from pipelines.transforms.mart_serving_comparison import build
from pipelines.transforms.serving_decision import serving_rows

# Three whole weeks from a Monday on, in one delivered month.
WEEKS = [date(2026, 7, 6) + timedelta(weeks=number) for number in range(3)]
PAYER = "000011112222"
PRICES = {
    "instance_type": pl.String,
    "region_id": pl.String,
    "offer": pl.String,
    "from_date": pl.Date,
    "billing_currency": pl.String,
    "price_per_hour_usd": pl.Float64,
    "price_evidence": pl.String,
}
DECLARED = {
    "serving_no": 1,
    "model": "chat",
    "candidate_model": "chat",
    "is_capacity": True,
    "instance_type": None,
    "accelerator_family": None,
    "region_id": None,
    "usd_per_hour": None,
    "tokens_per_second": None,
    "output_ratio": None,
    "input_usd": None,
    "cache_read_usd": None,
    "cache_write_usd": None,
    "output_usd": None,
    "source": "a benchmark",
    "is_same_quality": True,
    "meets_latency": True,
    "port_cost_usd": 0,
    "upkeep_usd_per_month": 0,
    "horizon_months": 12,
}
HOUR: dict[str, Any] = {
    "model": "chat",
    "billing_currency": "USD",
    "payer_account_id": PAYER,
    "platform": "gpu",
    "accelerator_family": "gpu",
    "instance_type": "g6e.xlarge",
    "region_id": "us-east-1",
    "precision": "bf16",
    "is_measured": True,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "up_seconds": 3600.0,
    "capacity_tokens_per_second": 1000.0,
    "ttft_target_seconds": 2.0,
    "itl_target_seconds": 1e9,
    "has_part": False,
}
HOURS: dict[str, Any] = {**dict.fromkeys(HOUR), "usage_date": pl.Date, "hour_started_at": pl.Datetime}
TOKENS: dict[str, Any] = {
    **dict.fromkeys(("model", "billing_currency", "payer_account_id", "region_id", "tier", "usage_type"), pl.String),
    "usage_date": pl.Date, "token_kind": pl.String, "million_tokens": pl.Float64, "list_cost_usd": pl.Float64,
    "effective_cost_usd": pl.Float64,
}  # fmt: skip
UNITS: dict[str, Any] = {
    **dict.fromkeys(("model", "billing_currency", "tier", "payer_account_id", "region_id"), pl.String),
    "usage_date": pl.Date,
    "is_measured": pl.Boolean, **dict.fromkeys(("input_tokens", "cache_read_tokens", "cache_write_tokens",
    "output_tokens", "list_cost_usd", "effective_cost_usd"), pl.Float64),
}  # fmt: skip
CALLS = {"model": pl.String, "is_capacity": pl.Boolean, "hour_started_at": pl.Datetime, "tokens": pl.Float64}
DISCOUNTS = {"billing_currency": pl.String, "billing_month": pl.Date, "family": pl.String, "discount_usd": pl.Float64}
BILL = {"payer_account_id": pl.String, "billing_currency": pl.String, "billing_month": pl.Date, "newest_date": pl.Date}


def days(start: date) -> list[date]:
    """The seven days of a week."""
    return [start + timedelta(days=number) for number in range(7)]


def served(costs: list[float], millions: float = 3.0, **changed: Any) -> list[dict[str, Any]]:
    """A server for an hour of each day of WEEKS, a third of its tokens output; `costs` are those of a day, by week."""
    return [
        {
            **HOUR,
            "usage_date": day,
            "hour_started_at": pl.Series([day]).cast(pl.Datetime)[0],
            "input_tokens": millions * 2e6 / 3,
            "output_tokens": millions * 1e6 / 3,
            "list_cost_usd": usd,
            "effective_cost_usd": usd,
            **changed,
        }
        for week, usd in zip(WEEKS, costs, strict=True)
        for day in days(week)
    ]


def called(prices: dict[str, float], millions: list[float], tier: str = "standard") -> list[dict[str, Any]]:
    """So many million tokens of each kind on each day of WEEKS, by week, on Bedrock."""
    place = {"model": "chat", "billing_currency": "USD", "payer_account_id": PAYER, "region_id": "us-east-1"}
    return [
        place | {"usage_date": day, "token_kind": kind, "million_tokens": count, "tier": tier, "usage_type": kind}
        | {"list_cost_usd": price * count, "effective_cost_usd": price * count}
        for week, count in zip(WEEKS, millions, strict=True)
        for day in days(week)
        for kind, price in prices.items()
    ]  # fmt: skip


def logged(millions: list[float], peak: float) -> list[dict[str, Any]]:
    """A log of so many million tokens on each day of WEEKS, by week, in four hours alike, and an hour of `peak` tokens
    a second."""
    most = {"model": "chat", "hour_started_at": datetime(2026, 7, 6, 12), "tokens": peak * 3600, "is_capacity": False}
    return [most] + [
        most | {"hour_started_at": datetime(day.year, day.month, day.day, hour), "tokens": count * 1e6 / 4}
        for week, count in zip(WEEKS, millions, strict=True)
        for day in days(week)
        for hour in range(4)
    ]


def compared(
    hours: list[dict[str, Any]],
    tokens: list[dict[str, Any]],
    *declared: dict[str, Any],
    calls: list[dict[str, Any]] = [],  # noqa: B006
    units: list[dict[str, Any]] = [],  # noqa: B006
    newest: date = date(2026, 7, 26),
    prices: list[dict[str, Any]] = [],  # noqa: B006
    discounts: list[tuple[str, date, str, float]] = [],  # noqa: B006
) -> list[dict[str, Any]]:
    options = [{**DECLARED, **one} for one in declared]
    empty = pl.DataFrame([dict.fromkeys(DECLARED)]).clear()
    months = dict.fromkeys((date(2026, 7, 1), newest.replace(day=1)))
    bill = [{"payer_account_id": PAYER, "billing_currency": "USD"} | {"billing_month": month, "newest_date": newest}
            for month in months]  # fmt: skip
    return build(
        detail_serving_capacity_hourly=pl.DataFrame(hours) if hours else pl.DataFrame(served([1, 1, 1])).clear(),
        detail_bedrock_usage_daily=pl.DataFrame(tokens, schema=TOKENS),
        mart_inference_cost_daily=pl.DataFrame(units, schema=UNITS),
        stg_serving__traffic=pl.DataFrame(calls, schema=CALLS),
        mart_price_book=pl.DataFrame(prices, schema=PRICES),
        fct_invoice_monthly=pl.DataFrame(bill, schema=BILL),
        declared_serving=pl.DataFrame(options) if options else empty,
        fct_charge_sum_monthly=pl.DataFrame(discounts, schema=DISCOUNTS, orient="row"),
    )


def test_the_interval_of_days_is_that_of_registered_pairs() -> None:
    """Three weeks of a day, 10 each today, 4, 6 and 5 elsewhere: half. z = (-1, 1, 0)/15; of three clusters alike
    var = 3/2 x 2/225 = 1/75, t(2) at 97.5 % = 4.302653.
    """
    found = saving_of_days(WEEKS, [True] * 3, [10, 10, 10], [4, 6, 5])
    margin = 4.302653 * sqrt(1 / 75)
    assert found.saving == pytest.approx(0.5)
    assert found.low == pytest.approx(1 - 0.5 * exp(margin), abs=1e-6)
    assert found.high == pytest.approx(1 - 0.5 * exp(-margin), abs=1e-6)
    # Prices alone decide where every week saves the same.
    found = saving_of_days(WEEKS, [True] * 3, [10, 12, 14], [5, 6, 7])
    assert (found.low, found.high) == (pytest.approx(0.5), pytest.approx(0.5))
    # Two days of one week are one cluster.
    two = [WEEKS[0], WEEKS[0] + timedelta(1), WEEKS[1]]
    assert saving_of_days(two, [True] * 3, [1, 2, 3], [3, 2, 1]).low is None


def test_a_week_without_traffic_costs_but_is_no_evidence() -> None:
    """10 a day today, 4, 6 and 5 elsewhere in three weeks of a day, then a week in which only today's way costs 10: it
    saves 1 - 15/40 = 62.5 %. That week counts in the third, with half of the days: z = (4/15 - 1/4, 6/15 - 1/4,
    5/15 - 1/2) = (1, 9, -10)/60; over the other days' share 3/4, 3/4 and 1/2 it is (4/3, 12, -20)/60, and var = 2/3 x
    its square sum 4912/32400.
    """
    later = [*WEEKS, WEEKS[2] + timedelta(weeks=1)]
    used = [True, True, True, False]
    found = saving_of_days(later, used, [10, 10, 10, 10], [4, 6, 5, 0])
    assert found.saving == pytest.approx(0.625)
    margin = 4.302653 * sqrt(2 / 3 * 4912 / 32400)
    assert (found.low, found.high) == (
        pytest.approx(1 - 0.375 * exp(margin), abs=1e-6),
        pytest.approx(1 - 0.375 * exp(-margin), abs=1e-6),
    )
    # One that costs nothing changes nothing, and neither makes three of two weeks.
    assert saving_of_days(later, used, [10, 10, 10, 0], [4, 6, 5, 0]) == saving_of_days(
        WEEKS, used[:3], [10, 10, 10], [4, 6, 5]
    )
    for used in ([True, True, False, False], [False, True, False, True]):
        assert saving_of_days(later, used, [10, 10, 10, 10], [4, 6, 5, 7]).missing == (
            "2 weeks of traffic; an interval needs 3"
        )


def test_a_saving_of_two_weeks_with_traffic_is_no_verdict() -> None:
    """Called in the first and the last of three weeks, at 1.00 and 5.00 in and out; at 0.10 and 0.50 it saves 90 %."""
    declared = {"is_capacity": False, "input_usd": 0.1, "output_usd": 0.5, "candidate_model": "other"}
    used = [row for row in called({"input": 1.0, "output": 5.0}, [1, 1, 1]) if row["usage_date"] not in days(WEEKS[1])]
    (row,) = compared([], used, declared)
    assert (row["day_count"], row["saving_ratio"]) == (21, pytest.approx(0.9))
    assert (row["verdict"], row["verdict_reason"]) == (
        "not enough evidence",
        "2 weeks of traffic; an interval needs 3",
    )


def test_our_servers_against_tokens_of_bedrock() -> None:
    """Today 30 a day, 3 M tokens, a third output: 10.00 a million. At 0.30 and 1.20 the mix is (2 x 0.30 + 1.20) / 3 =
    0.60. A fleet of 30 x 730 / 24 = 912.50 a month is worth 912.50 / 0.60 = 1,520.83 M tokens; today there are 3 x
    730 / 24 = 91.25 M, a 16.67th. Up for an hour of a day, the server has 1000 x 3 x 3600 = 10.8 M tokens a day, 6.48
    at 0.60: used 30 / 6.48 = 4.63 times: never, and Bedrock must be known to be as good.
    """
    managed = {"is_capacity": False, "input_usd": 0.30, "output_usd": 1.20}
    (row,) = compared(served([30, 30, 30]), [], managed)
    assert row["baseline_cost_per_million_total_usd"] == pytest.approx(10)
    assert row["candidate_cost_per_million_total_usd"] == pytest.approx(0.60)
    assert row["tokens_per_month"] == pytest.approx(91.25e6)
    assert row["crossover_utilization_ratio"] == pytest.approx(30 / 6.48)
    assert (row["crossover_tokens_per_month"], row["verdict"]) == (None, "never")
    (unknown,) = compared(served([30, 30, 30]), [], {**managed, "is_same_quality": None})
    assert (unknown["verdict"], unknown["recommended_family"]) == ("not enough evidence", None)
    # A throughput that no target held leaves the volume open, not its utilization.
    (row,) = compared(served([30, 28, 32], capacity_tokens_per_second=None), [], managed)
    assert row["crossover_tokens_per_month"] == pytest.approx(1520.833e6, rel=1e-6)
    assert row["traffic_multiple"] == pytest.approx(16.6667, rel=1e-5)
    assert (row["crossover_utilization_ratio"], row["verdict"]) == (None, "managed")
    # Of servers with two capacities neither is that of all.
    half = [15.0, 14.0, 16.0]
    hours = [*served(half, 1.5), *served(half, 1.5, capacity_tokens_per_second=90.0)]
    (row,) = compared(hours, [], managed)
    assert (row["crossover_utilization_ratio"], row["verdict"]) == (None, "managed")


def test_nothing_moves_from_servers_whose_discounts_are_lines_of_their_own() -> None:
    """Of 21 x 30 = 630 a discount of 600 leaves 30, less than 21 x 3 x 0.60 = 37.80. Others change nothing."""
    managed = {"is_capacity": False, "input_usd": 0.30, "output_usd": 1.20}
    hours = served([30, 28, 32], capacity_tokens_per_second=None)
    others = [
        ("USD", WEEKS[0], "trainium", -600.0),
        ("EUR", WEEKS[0], "gpu", -600.0),
        ("USD", date(2026, 6, 1), "gpu", -600.0),
    ]
    (row,) = compared(hours, [], managed, discounts=[(one, day.replace(day=1), *rest) for one, day, *rest in others])
    assert row["verdict"] == "managed"
    (row,) = compared(hours, [], managed, discounts=[("USD", date(2026, 7, 1), "gpu", -600.0)])
    assert (row["verdict"], row["recommended_family"]) == ("not enough evidence", None)
    assert "today's cost lacks discounts of USD 600.00" in row["missing_evidence"]


def test_tokens_of_bedrock_against_capacity() -> None:
    """30, 36 and 33 a day at 3.00 a million; one replica at 0.50 an hour is 12 a day, 36 of 99: it saves 63.6 %. Its
    throughput of 500 output tokens a second at a mix of one half is 1000. The busiest hour must be known to win.
    """
    tokens = called({"input": 1.0, "output": 5.0}, [5, 6, 5.5])
    capacity = {"usd_per_hour": 0.50, "tokens_per_second": 500.0, "output_ratio": 0.5}
    (row,) = compared([], tokens, capacity)
    assert row["saving_ratio"] == pytest.approx(1 - 36 / 99)
    assert row["verdict"] == "not enough evidence" and "busiest hour" in row["missing_evidence"]
    calls = logged([10, 12, 11], peak=1000)
    (row,) = compared([], tokens, capacity, calls=calls)
    assert (row["verdict"], row["replica_count"], row["recommended_family"]) == ("self-host", 1, "bedrock")
    # A log of a part of the tokens, from one region of two for one, does not show the busiest hour of all.
    for part in (calls[:1], [one | {"tokens": one["tokens"] / 2} for one in calls]):
        (row,) = compared([], tokens, capacity, calls=part)
        assert row["verdict"] == "not enough evidence" and "busiest hour" in row["missing_evidence"]
    # The busiest day has 12 M tokens: 138.9 a second, however few a log has.
    (row,) = compared([], tokens, capacity, calls=logged([0, 0, 0], peak=1))
    assert row["peak_tokens_per_second"] == pytest.approx(12e6 / 86400)
    # A busier hour before the first day that counts is not of this traffic.
    old = calls[0] | {"hour_started_at": datetime(2026, 3, 6, 12), "tokens": 2000 * 3600.0}
    (row,) = compared([], tokens, capacity, calls=[*calls, old])
    assert (row["peak_tokens_per_second"], row["replica_count"]) == (1000, 1)
    # Twice the peak takes two replicas.
    (row,) = compared([], tokens, capacity, calls=logged([10, 12, 11], peak=2000))
    assert (row["replica_count"], row["saving_ratio"]) == (2, pytest.approx(1 - 72 / 99))
    # A throughput of another mix shows nothing, and one of an unknown mix wins nothing.
    (row,) = compared([], tokens, {**capacity, "output_ratio": 0.25}, calls=calls)
    assert "25.0% output tokens, the traffic has 50.0%" in row["verdict_reason"]
    assert "saving_ratio" not in row and "crossover_tokens_per_month" not in row
    (row,) = compared([], tokens, {**capacity, "output_ratio": None}, calls=calls)
    assert row["verdict"] == "not enough evidence" and "output_ratio" in row["missing_evidence"]
    # What loses needs no proof of its quality or its peak.
    (row,) = compared([], tokens, {**capacity, "usd_per_hour": 50, "is_same_quality": None, "meets_latency": None})
    assert (row["verdict"], row["recommended_family"]) == ("never", "bedrock")
    # V6: 24.50 a unit-hour against 0.2625 a million: 25,926 tokens a second.
    assert break_even_tokens_per_second(24.50, 0.2625) == pytest.approx(25_926, abs=0.5)


def test_a_port_between_two_machines_is_paid_back_in_months() -> None:
    """40 a day today, 10 on the candidate at 10/24 an hour: 30 x 730 / 24 = 912.50 a month pay 1,825 back in two. Over
    its horizon of twelve months the port adds 1,825 / 12 x 24 / 730 = 5 a day: 15 of 40, a saving of 62.5 %.
    """
    port: dict[str, Any] = {
        "instance_type": "inf2.xlarge",
        "accelerator_family": "inferentia",
        "tokens_per_second": 500.0,
    }
    port["output_ratio"] = 1 / 3
    (row,) = compared(served([39, 40, 41]), [], {**port, "usd_per_hour": 10 / 24, "port_cost_usd": 1825})
    assert row["payback_months"] == pytest.approx(2)
    assert row["saving_ratio"] == pytest.approx(0.625)
    assert (row["verdict"], row["recommended_family"]) == ("move", "inferentia")
    assert "crossover_tokens_per_month" not in row
    (row,) = compared(served([39, 40, 41]), [], {**port, "usd_per_hour": 100 / 24})
    assert (row["verdict"], row["recommended_family"], row["payback_months"]) == ("stay", "gpu", None)


def test_unknown_is_not_enough_evidence() -> None:
    """A price that the book lacks, a kind without a price, a model served in two ways of other precision."""
    (row,) = compared(served([1, 2, 3]), [], {"instance_type": "inf2.xlarge", "tokens_per_second": 5.0})
    assert row["verdict"] == "not enough evidence" and "no price of inf2.xlarge" in row["verdict_reason"]
    (row,) = compared(served([1, 2, 3]), [], {"is_capacity": False, "input_usd": 1.0})
    assert "candidate_cost_per_month_usd" not in row and "has no price" in row["verdict_reason"]
    both = compared(served([30, 31, 33]), called({"input": 0.1, "output": 0.2}, [1, 2, 3]))
    assert [(row["baseline_platform"], row["candidate_platform"]) for row in both] == [
        ("bedrock", "gpu"), ("gpu", "bedrock"),
    ]  # fmt: skip
    assert {row["verdict"] for row in both} == {"not enough evidence"}


@pytest.mark.parametrize(
    ("precision", "lacks_equal_quality"),
    [("bf16", [False, False]), ("int4", [True, True]), (None, [True, True])],
)
def test_equal_quality_is_shown_where_both_precisions_are_known_and_the_same(
    precision: str | None, lacks_equal_quality: list[bool]
) -> None:
    """A bf16 server and another one of the same model; Bedrock, whose precision is unknown, is like neither of them."""
    other = {"instance_type": "inf2.xlarge", "platform": "inferentia", "accelerator_family": "inferentia"}
    servers = served([30, 31, 33]) + served([10, 11, 12], **other, precision=precision)
    rows = compared(servers, called({"input": 5.0, "output": 5.0}, [3, 3, 3]))
    lacks: dict[bool, list[bool]] = {True: [], False: []}
    for row in rows:
        is_bedrock = "bedrock" in (row["baseline_platform"], row["candidate_platform"])
        lacks[is_bedrock].append("equal quality is not declared" in (row["missing_evidence"] or ""))
    assert lacks == {True: [True] * 4, False: lacks_equal_quality}
    assert {row["verdict"] for row in rows if row["baseline_platform"] == "bedrock"} == {"not enough evidence"}


def test_a_declaration_of_another_model_hides_no_way_in_use() -> None:
    """A model on a server and on Bedrock, and another one there: the server's traffic has both alternatives."""
    other = {"is_capacity": False, "candidate_model": "other", "input_usd": 0.1, "output_usd": 0.5}
    rows = compared(served([30, 31, 33]), called({"input": 5.0, "output": 5.0}, [3, 3, 3]), other)
    assert {row["candidate_model"] for row in rows if row["baseline_platform"] == "gpu"} == {"chat", "other"}


@pytest.mark.parametrize(("region", "candidate"), [("us-east-1", None), ("eu-west-1", "g6e.xlarge")])
def test_the_same_machine_in_another_region_is_another_way(region: str, candidate: str | None) -> None:
    declared = {"instance_type": "g6e.xlarge", "region_id": region, "tokens_per_second": 1000.0}
    (row,) = compared(served([30, 31, 33]), [], declared)
    assert row.get("candidate_instance_type") == candidate


@pytest.mark.parametrize(
    ("ttft", "itl", "verdict"), [(2.0, 1e9, "move"), (1.0, 0.1, "move"), (5.0, 0.1, "not enough evidence")]
)
def test_a_throughput_at_a_less_strict_latency_target_moves_nothing(ttft: float, itl: float, verdict: str) -> None:
    """Facts serving 4: a saving is at the same latency target. Today's is a first token within 2 seconds."""
    other = {"instance_type": "inf2.xlarge", "platform": "inferentia", "accelerator_family": "inferentia"}
    other |= {"ttft_target_seconds": ttft, "itl_target_seconds": itl}
    price = {"region_id": "us-east-1", "offer": "on_demand", "from_date": WEEKS[0], "billing_currency": "USD"}
    book = [price | {"instance_type": "inf2.xlarge", "price_per_hour_usd": 0.4, "price_evidence": "declared"}]
    rows = compared(served([30, 31, 33]) + served([10, 10, 10], **other), [], prices=book)
    (row,) = (row for row in rows if row["candidate_instance_type"] == "inf2.xlarge")
    assert row["verdict"] == verdict


@pytest.mark.parametrize("count", [0, 1])
def test_an_hour_without_records_may_be_the_busiest(count: int) -> None:
    """One of 21 hours: another server could have to serve more than the busiest of the other 20."""
    price = {"region_id": "us-east-1", "offer": "on_demand", "from_date": WEEKS[0], "billing_currency": "USD"}
    book = [price | {"instance_type": "inf2.xlarge", "price_per_hour_usd": 0.4, "price_evidence": "declared"}]
    today = served([30, 31, 33])
    today[0]["is_measured"] = not count
    other = {"instance_type": "inf2.xlarge", "platform": "inferentia", "accelerator_family": "inferentia"}
    rows = compared(today + served([10, 10, 10], **other), [], prices=book)
    (row,) = (row for row in rows if row["candidate_instance_type"] == "inf2.xlarge")
    assert row["verdict"] == ("not enough evidence" if count else "move")
    lacking = "the busiest hour is not known: read the traffic of all hours of its servers as [[serving]] sources"
    assert (lacking in (row["missing_evidence"] or "")) == count


@pytest.mark.parametrize("has_part", [False, True])
def test_a_throughput_of_a_part_of_a_machine_is_not_that_of_its_price(has_part: bool) -> None:
    """Facts serving, trap 3: on 1 of 4 accelerators, what a replica serves costs a quarter of the machine or less."""
    other = {"instance_type": "g5.12xlarge", "accelerator_family": "gpu", "has_part": has_part}
    price = {"region_id": "us-east-1", "offer": "on_demand", "from_date": WEEKS[0], "billing_currency": "USD"}
    book = [price | {"instance_type": "g5.12xlarge", "price_per_hour_usd": 5.672, "price_evidence": "declared"}]
    rows = compared(served([30, 31, 33]) + served([10, 10, 10], **other), [], prices=book)
    (row,) = (row for row in rows if row["candidate_instance_type"] == "g5.12xlarge")
    lacking = "servers measured on g5.12xlarge have a part of it: declare tokens_per_second of a whole one"
    assert (lacking in (row.get("missing_evidence") or "")) is has_part
    assert (row.get("candidate_cost_per_month_usd") is None) is has_part


def test_what_is_not_counted_as_tokens_leaves_the_cost_unknown() -> None:
    """On each of 21 days 500 for images: 10,500 that are neither in a cost of tokens nor in a saving."""
    declared: dict[str, Any] = {"is_capacity": False, "input_usd": 0.5, "candidate_model": "other"}
    images = called({"image": 500.0}, [1, 1, 1])
    rows = compared([], called({"input": 1.0}, [1, 2, 3]) + images, declared)
    assert "baseline_cost_per_month_usd" not in rows[0] and "saving_ratio" not in rows[0]
    lacking = "10,500.00 USD on the bill for chat is for what is not counted as tokens: image"
    assert (rows[0]["verdict"], rows[0]["missing_evidence"]) == ("not enough evidence", lacking)
    assert decided(rows)["monthly_cost_usd"] is None


@pytest.mark.parametrize("price", [None, 0.5])
def test_what_a_candidate_bills_besides_tokens_leaves_its_cost_unknown(price: float | None) -> None:
    """Tokens of 1, 2 and 3 a day go to a model at 0.50, by its bill or declared: half, but for the 500 a day of a meter
    of that model that is on no list.
    """
    of_other = [row | {"model": "other"} for row in called({"input": 0.5, "unknown": 500.0}, [1, 1, 1])]
    declared = {"is_capacity": False, "input_usd": price, "candidate_model": "other"}
    rows = compared([], called({"input": 1.0}, [1, 2, 3]) + of_other, declared)
    row = next(row for row in rows if row["model"] == "chat")
    lacking = "10,500.00 USD on the bill for other is for what is not counted as tokens: unknown"
    assert (row["verdict"], row["verdict_reason"]) == ("not enough evidence", lacking)
    assert "candidate_cost_per_month_usd" not in row and "saving_ratio" not in row
    assert row["baseline_cost_per_month_usd"] == pytest.approx(2 * 730 / 24)


def test_traffic_of_days_that_are_not_all_measured_is_not_denied() -> None:
    """Each day has hours without a count, so its tokens are not completely known; it has traffic."""
    (row,) = compared(served([1, 2, 3], is_measured=False), [], {"is_capacity": False, "input_usd": 1.0})
    assert row["verdict"] == "not enough evidence"
    assert row["verdict_reason"] == "the tokens of no day are completely known"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Chat", "of 'Chat'; correct candidate_model to 'chat', or declare input_usd and output_usd"),
        ("mistral", "of 'mistral': declare input_usd and output_usd"),
    ],
)
def test_a_candidate_that_the_bill_does_not_name_is_named(name: str, reason: str) -> None:
    tokens = called({"input": 1.0, "output": 4.0}, [1.0, 1.0, 1.0])
    rows = compared(served([3.0, 3.0, 3.0]), tokens, {"candidate_model": name, "is_capacity": False})
    (row,) = (one for one in rows if one.get("candidate_model") == name and one["baseline_platform"] == "gpu")
    assert row["verdict_reason"] == row["missing_evidence"] == f"the last 90 days of the bill have no tokens {reason}"


def test_a_model_without_another_way_is_a_row_with_what_to_declare() -> None:
    (row,) = compared(served([1, 2, 3]), [])
    assert (row["verdict"], row["baseline_platform"]) == ("not enough evidence", "gpu")
    assert "[[decisions.serving]]" in row["verdict_reason"]
    (row,) = compared(served([1, 2, 3]), [], {"model": "Chat", "instance_type": "inf2.xlarge"})
    assert "only for 'Chat', which nothing serves: correct the model if 'chat' is meant" in row["missing_evidence"]


def test_servers_without_recorded_traffic_keep_their_cost() -> None:
    """30 a day is 30 x 730 / 24 = 912.50 a month; per token it is unknown."""
    (row,) = compared(served([30, 30, 30], 0, is_measured=False), [], {"is_capacity": False, "input_usd": 1.0})
    assert row["baseline_cost_per_month_usd"] == pytest.approx(912.5)
    assert row["baseline_cost_per_million_total_usd"] is None
    assert row["verdict"] == "not enough evidence" and "no traffic" in row["verdict_reason"]


def test_a_month_has_the_days_without_use() -> None:
    """Called on Mondays alone, 36, 33 and 39 at 3.00 a million: 108 on the 21 days up to the newest of the bill,
    108 / 21 x 730 / 24 = 156.43 a month. A replica at 0.50 runs for 365 around the clock: 1 - 252 / 108 = -133 %.
    A server that is up on Mondays alone costs nothing on the other days either.
    """
    monday = [row for row in called({"input": 1.0, "output": 5.0}, [6, 5.5, 6.5]) if row["usage_date"] in WEEKS]
    capacity = {"usd_per_hour": 0.50, "tokens_per_second": 500.0, "output_ratio": 0.5}
    (row,) = compared([], monday, capacity)
    assert row["baseline_cost_per_month_usd"] == pytest.approx(108 / 21 * 730 / 24)
    assert (row["candidate_cost_per_month_usd"], row["day_count"]) == (pytest.approx(365), 21)
    assert row["saving_ratio"] == pytest.approx(1 - 252 / 108)
    assert (row["verdict"], row["recommended_family"]) == ("managed", "bedrock")
    server = [row for row in served([36, 33, 39]) if row["usage_date"] in WEEKS]
    (row,) = compared(server, [], {**capacity, "instance_type": "inf2.xlarge", "output_ratio": 1 / 3})
    assert row["baseline_cost_per_month_usd"] == pytest.approx(108 / 21 * 730 / 24)
    assert row["verdict"] == "stay"
    # Where a Monday is not measured, a third of the days without use does not count either: 36 + 39 on 14 days.
    server[1]["is_measured"] = False
    (row,) = compared(server, [], capacity)
    assert (row["day_count"], row["baseline_cost_per_month_usd"]) == (14, pytest.approx(75 / 14 * 730 / 24))
    assert "days left out because their tokens or costs are not all known: 1" in row["missing_evidence"]


def test_use_of_long_ago_is_no_traffic() -> None:
    """The newest use is of 26 July. On 23 October it is 89 days old; a day later no day of the last 90 has any. Of the
    months only July and October are delivered: a day with use, five more of July and 23 of October.
    """
    tokens = called({"input": 1.0}, [1, 1, 1])
    (row,) = compared([], tokens[-1:], newest=date(2026, 10, 23))
    assert row["day_count"] == 1 + 5 + 23
    assert compared([], tokens, newest=date(2026, 10, 24)) == []


def provisioned(usd: float, **tokens: float) -> list[dict[str, Any]]:
    """Units of Provisioned Throughput on each day of WEEKS; `tokens` are those of their calls."""
    place = {"model": "chat", "billing_currency": "USD", "tier": "provisioned", "payer_account_id": PAYER}
    place["region_id"] = "us-east-1"
    costs = {"list_cost_usd": usd, "effective_cost_usd": usd, "is_measured": bool(tokens)}
    row = dict.fromkeys(UNITS) | place | costs | tokens
    return [row | {"usage_date": day} for week in WEEKS for day in days(week)]


def test_provisioned_units_without_a_log_keep_their_cost() -> None:
    """24 hours of a unit at 13.08 are 313.92 a day, 9,548.40 a month; no bill shows their tokens."""
    (row,) = compared([], [], units=provisioned(313.92))
    assert row["baseline_cost_per_month_usd"] == pytest.approx(9548.40)
    assert (row["baseline_platform"], row["baseline_tier"]) == ("bedrock", "provisioned")
    assert row["verdict"] == "not enough evidence"


def test_an_unknown_meter_may_be_of_provisioned_units() -> None:
    """313.92 a day for units and 500 for a usage type that is on no list: both may serve, so no cost is known. Images
    are billed by use, and the units cost 9,548.40 a month with them, too.
    """
    tokens = {"is_capacity": False, "input_usd": 0.15, "output_usd": 0.60}
    units = provisioned(313.92, input_tokens=3e6, output_tokens=1e6)
    (row,) = compared([], called({"unknown": 500.0}, [1, 1, 1]), tokens, units=units)
    assert "baseline_cost_per_month_usd" not in row and "saving_ratio" not in row
    lacking = "10,500.00 USD on the bill for chat is for what is not counted as tokens: unknown"
    assert row["verdict_reason"] == lacking
    both = compared([], called({"input": 1.0, "unknown": 500.0}, [1, 1, 1]), units=units)
    assert [one["verdict_reason"].count(lacking) for one in both] == [1, 1]
    (row,) = compared([], called({"image": 500.0}, [1, 1, 1]), tokens, units=units)
    assert row["baseline_cost_per_month_usd"] == pytest.approx(9548.40)
    assert row["verdict"] == "managed"


def test_provisioned_units_break_even_with_tokens_on_demand() -> None:
    """V6: a unit at 24.50 an hour against 0.15 and 0.60 at a mix of 3 to 1, 0.2625 a million: 93.3 M tokens an hour,
    25,926 a second, 68.13 billion in 730 hours. Today's 4 M a day are 121.67 M a month, a 560th."""
    tokens = {"is_capacity": False, "input_usd": 0.15, "output_usd": 0.60, "meets_latency": True}
    units = provisioned(24 * 24.50, input_tokens=3e6, output_tokens=1e6)
    (row,) = compared([], [], tokens, units=units)
    assert row["blended_price_usd"] == pytest.approx(0.2625)
    assert row["break_even_tokens_per_second"] == pytest.approx(25_926, abs=0.5)
    assert row["crossover_tokens_per_month"] == pytest.approx(93.3333e6 * 730, rel=1e-5)
    assert row["traffic_multiple"] == pytest.approx(560, rel=1e-5)
    assert row["verdict"] == "managed"


def decided(compared: list[dict[str, Any]], model: str = "chat") -> dict[str, Any]:
    """The row of the portfolio for what is compared."""
    rules = pl.read_csv(REFERENCE / "ref_recommendation_rule.csv", infer_schema=False)
    rows = load_contract("marts/mart_serving_comparison").frame([{**row, "model": model} for row in compared])
    listed = pl.read_csv(REFERENCE / "ref_bedrock_model.csv", infer_schema=False)
    frames = {"mart_serving_comparison": rows, "ref_bedrock_model": listed, "ref_recommendation_rule": rules}
    (row,) = serving_rows(frames)
    return row


def test_days_before_a_price_change_show_nothing_of_what_it_costs_today() -> None:
    """30 a day at 30.00 an hour in two weeks, then 10 at 10.00: at 4.00 a million, 12 a day, Bedrock saves 48.6 % of
    490 in three weeks, and costs 20 % more than today's 70 in a week. So do tokens at 1.20 that cost 3.00, then 1.00.
    """
    price = {"instance_type": "g6e.xlarge", "region_id": "us-east-1", "offer": "on_demand", "billing_currency": "USD"}
    book = [price | {"from_date": day, "price_per_hour_usd": usd, "price_evidence": "bill"}
            for day, usd in ((WEEKS[0], 30.0), (WEEKS[2], 10.0))]  # fmt: skip
    declared = {"is_capacity": False, "candidate_model": "other"}
    (row,) = compared(served([30, 30, 10]), [], {**declared, "input_usd": 4.0, "output_usd": 4.0}, prices=book)
    tokens = called({"input": 3.0}, [1, 1, 0]) + called({"input": 1.0}, [0, 0, 1])
    used = [one for one in tokens if one["million_tokens"]]
    (other,) = compared([], used, {**declared, "input_usd": 1.2})
    for one in (row, other):
        assert (one["day_count"], one["saving_ratio"]) == (7, pytest.approx(-0.2))
        assert (one["verdict"], one["recommended_family"]) == ("not enough evidence", None)
        assert one["missing_evidence"] == "days up to 2026-07-19 are left out: a list price has changed since"


def test_each_model_has_one_recommendation() -> None:
    """30, 36 and 33 a day are 33 x 730 / 24 = 1,003.75 a month on Bedrock; at 0.50 an hour 365 elsewhere."""
    tokens = called({"input": 1.0, "output": 5.0}, [5, 6, 5.5])
    calls = logged([10, 12, 11], peak=1000)
    machine: dict[str, Any] = {"instance_type": "inf2.xlarge", "accelerator_family": "inferentia", "usd_per_hour": 0.50}
    machine["output_ratio"] = 0.5
    rows = compared([], tokens, {**machine, "tokens_per_second": 500.0}, calls=calls)
    row = decided(rows)
    assert (row["recommendation"], row["decided_by"], row["verdict"]) == ("inferentia", "arithmetic", "self-host")
    assert row["bedrock_monthly_cost_usd"] == pytest.approx(1003.75)
    assert row["inferentia_monthly_cost_usd"] == pytest.approx(365)
    assert row["monthly_at_stake_usd"] == pytest.approx(638.75)
    # A closed model stays, whatever the arithmetic shows.
    row = decided(rows, "Claude Haiku 4.5")
    assert (row["recommendation"], row["decided_by"]) == ("bedrock", "closed_weights")
    # What nothing shows takes a pilot: three weeks of a replica are 504 hours.
    row = decided(compared([], tokens, {**machine, "tokens_per_second": 500.0, "is_same_quality": None}, calls=calls))
    assert (row["recommendation"], row["pilot_run_cost_usd"]) == ("run a pilot", pytest.approx(252))
    row = decided(compared(served([1, 2, 3]), []))
    assert (row["recommendation"], row["verdict"]) == ("run a pilot", "not compared")
    # More expensive capacity leaves it where it is.
    row = decided(compared([], tokens, {**machine, "usd_per_hour": 50.0, "tokens_per_second": 500.0}))
    assert (row["recommendation"], row["verdict"], row["monthly_at_stake_usd"] < 0) == ("bedrock", "never", True)


def test_a_model_served_in_two_ways_has_figures_of_all_its_traffic() -> None:
    """30 a day on a GPU and 10 on Inferentia are 40 x 730 / 24 = 1,216.67 a month. At 0.60 a million, as above, each
    3 M tokens a day cost 1.80 on Bedrock: 3.60 x 730 / 24 = 109.50 in all, so 1,107.17, 91 % of today, are at stake.
    What the other one's traffic costs on a GPU or on Inferentia nothing shows.
    """
    small: dict[str, Any] = {
        "platform": "inferentia",
        "accelerator_family": "inferentia",
        "instance_type": "inf2.xlarge",
    }
    managed = {"is_capacity": False, "input_usd": 0.30, "output_usd": 1.20}
    row = decided(compared(served([30, 30, 30]) + served([10, 10, 10], **small), [], managed))
    assert row["recommendation"] == "bedrock" and "of what g6e.xlarge serves" in row["recommendation_reason"]
    assert row["monthly_cost_usd"] == pytest.approx(1216.6667)
    assert row["bedrock_monthly_cost_usd"] == pytest.approx(109.50)
    assert (row["gpu_monthly_cost_usd"], row["inferentia_monthly_cost_usd"]) == (None, None)
    assert row["monthly_at_stake_usd"] == pytest.approx(1107.1667)
    saved = row["saving_ratio"], row["saving_low_ratio"], row["saving_high_ratio"]
    assert saved == pytest.approx((0.91, 0.91, 0.91))


def test_bedrock_costs_a_candidate_the_standard_price_of_the_bill() -> None:
    """V3: standard 0.15, priority 0.2625; of a tenth and nine tenths the mean is 0.25125. What comes anew pays 0.15."""
    tokens = called({"input": 0.15}, [1, 1, 1]) + called({"input": 0.2625}, [9, 9, 9], "priority")
    bedrock, gpu = compared(served([30, 30, 30], output_tokens=0), tokens)
    assert bedrock["baseline_cost_per_million_total_usd"] == pytest.approx(0.25125)
    assert gpu["candidate_cost_per_million_total_usd"] == pytest.approx(0.15)
    # Where only priority is on the bill, it is the price.
    _, gpu = compared(served([30, 30, 30], output_tokens=0), tokens[21:])
    assert gpu["candidate_cost_per_million_total_usd"] == pytest.approx(0.2625)


def test_ways_share_the_room_of_one_replica() -> None:
    """Bedrock's tokens fit the replica that costs 30 a day today: 30 x 730 / 24 = 912.50 in all. A second replica, at
    30 an hour, is needed where a peak of 2,000 tokens a second comes to one of 3 x 1000.

    Bedrock's 1,003.75 a month are saved whole of 1,916.25 in all: 52.4 %. Apart, a replica of 21,900 would lose.
    """
    tokens = called({"input": 1.0, "output": 5.0}, [5, 6, 5.5])
    of_bedrock, of_gpu = compared(served([30, 30, 30]), tokens)
    fits = of_bedrock | {"candidate_price_per_hour_usd": 30.0, "candidate_cost_per_month_usd": 30.0 * 730}
    fits |= {"candidate_tokens_per_second": 3000.0, "replica_count": 1, "peak_tokens_per_second": 100.0}
    fits |= dict.fromkeys(("saving_ratio", "saving_low_ratio", "saving_high_ratio"), 1 - 21900 / 1003.75)
    row = decided([fits, of_gpu])
    assert row["gpu_monthly_cost_usd"] == pytest.approx(912.5)
    assert row["monthly_at_stake_usd"] == pytest.approx(1003.75)
    saved = row["saving_ratio"], row["saving_low_ratio"], row["saving_high_ratio"]
    assert saved == pytest.approx([1003.75 / 1916.25] * 3)
    more = fits | {"peak_tokens_per_second": 2500.0}
    assert decided([more, of_gpu])["gpu_monthly_cost_usd"] == pytest.approx(912.5 + 30 * 730)
