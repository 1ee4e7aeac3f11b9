"""Reservations of a real bill, October 2018, against figures added up from its fee and usage lines by pyarrow alone."""

from __future__ import annotations

from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.bills import write_config
from support.cur_exports import legacy_export
from support.ledgers import ask, lazy_warehouse

from pipelines.models.build import Builder

NAME = "Oct2018-WorkshopCUR-00001.snappy.parquet"


def exact(value: Any) -> Decimal:
    return Decimal(str(value or 0)).quantize(Decimal("1e-10"), ROUND_HALF_UP)


@pytest.fixture(scope="module")
def file(shared_data: Path) -> Path:
    return shared_data / "billing" / "cur_workshop_2018" / NAME


@pytest.fixture(scope="module")
def lines(file: Path) -> list[dict[str, Any]]:
    columns = [
        "line_item_line_item_type",
        "line_item_unblended_cost",
        "line_item_usage_amount",
        "line_item_product_code",
        "line_item_usage_type",
        "reservation_reservation_a_r_n",
        "reservation_effective_cost",
        "reservation_amortized_upfront_fee_for_billing_period",
        "reservation_unused_amortized_upfront_fee_for_billing_period",
        "reservation_unused_recurring_fee",
        "pricing_public_on_demand_cost",
    ]
    return pq.read_table(file, columns=columns).to_pylist()


@pytest.fixture(scope="module")
def built(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Builder:
    root = tmp_path_factory.mktemp("workshop")
    folder = "WorkshopCUR/year=2018/month=10"
    legacy_export(root, {NAME: file.read_bytes()}, name="WorkshopCUR", month="20181001-20181101", folder=folder)
    return lazy_warehouse(write_config(root, billing=root / "WorkshopCUR"))


def test_each_reservation_costs_its_fee_and_leaves_what_the_fee_states(built: Builder, lines: list[dict]) -> None:
    cost: dict[str, Decimal] = defaultdict(Decimal)
    unused: dict[str, Decimal] = defaultdict(Decimal)
    for line in lines:
        if line["line_item_line_item_type"] == "RIFee":
            name = line["reservation_reservation_a_r_n"]
            cost[name] += exact(line["line_item_unblended_cost"])
            cost[name] += exact(line["reservation_amortized_upfront_fee_for_billing_period"])
            unused[name] += exact(line["reservation_unused_amortized_upfront_fee_for_billing_period"])
            unused[name] += exact(line["reservation_unused_recurring_fee"])
    found = {
        name: (committed, left)
        for name, committed, left in ask(
            built,
            "select commitment_id, commitment_cost_usd, unused_cost_usd from mart_commitment_utilization_monthly",
        ).rows()
    }
    assert set(found) == set(cost)
    for name, (committed, left) in found.items():
        assert committed == cost[name]
        # Unused is what use leaves of the cost; the fee line states it by itself. AWS rounds each hour of use.
        assert abs(left - unused[name]) <= Decimal("0.01"), name


def test_the_reservation_that_nothing_used_is_named(built: Builder, lines: list[dict]) -> None:
    """The data's README: one c4.large was never used, 744 of 744 hours, 22.32 of fee; part of it was paid upfront."""
    (fee,) = (
        line
        for line in lines
        if line["line_item_line_item_type"] == "RIFee"
        and exact(line["reservation_unused_recurring_fee"]) == Decimal("22.32")
    )
    cost = Decimal("22.32") + exact(fee["reservation_amortized_upfront_fee_for_billing_period"])
    rows = ask(
        built,
        "select commitment_id, commitment_cost_usd, utilization_ratio, lost_savings_reason "
        "from mart_commitment_utilization_monthly where used_cost_usd = 0",
    ).rows()
    assert rows == [(fee["reservation_reservation_a_r_n"], cost, Decimal("0"), "nothing used it")]


def test_hours_reservations_covered_are_those_of_their_lines(built: Builder, lines: list[dict]) -> None:
    covered = sum(
        exact(line["line_item_usage_amount"])
        for line in lines
        if line["line_item_line_item_type"] == "DiscountedUsage" and line["line_item_product_code"] == "AmazonEC2"
    )
    (found,) = ask(
        built,
        "select sum(covered_hours) as hours from mart_commitment_coverage_daily "
        "where commitment_kind = 'reserved_instance'",
    )["hours"]
    assert found == covered


def test_accounts_by_the_day_are_the_same_use_as_the_hours(built: Builder) -> None:
    """Two ways over the same lines: with all others by account, and apart hour by hour."""
    both = [
        ask(
            built,
            "select usage_date, region_id, accelerator_family, commitment_kind, commitment_id, "
            "sum(eligible_list_cost_usd), sum(used_cost_usd), sum(on_demand_cost_usd), sum(eligible_hours) "
            f"from {mart} group by 1, 2, 3, 4, 5 order by all",
        ).rows()
        for mart in ("detail_commitment_use_daily where is_eligible", "detail_commitment_use_hourly")
    ]
    assert both[0]
    assert both[0] == both[1]
