"""FOCUS charges of a bill with a line of every kind; expected values follow from the line and the FOCUS 1.2 text."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pytest
from support.focus_rules import COLUMNS, SERVICES, violations
from support.lab import Lab
from support.rich_bill import JULY, LINES, ODCR, PLAN, RESERVED

from pipelines.base import resources

Charge = dict[str, Any]
CHARGES = "stg_aws__focus_charge"


@pytest.fixture(scope="module")
def charges() -> list[Charge]:
    with Lab({JULY: LINES}, {}) as lab:
        names = [*COLUMNS, "x_Operation", "x_ServiceCode"]
        rows = lab.ask(f"select {', '.join(names)} from {CHARGES}", CHARGES)
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.fixture
def dataset(charges: list[Charge]) -> Iterator[duckdb.DuckDBPyRelation]:
    with duckdb.connect() as connection:
        frame = pl.DataFrame(charges, infer_schema_length=None)
        connection.register("frame", frame.to_arrow())
        yield connection.sql("select * from frame")


def of(charges: list[Charge], name: str, *wanted: str) -> list[tuple]:
    """The charges of a line, the purchase first, as tuples of the wanted columns."""
    found = [charge for charge in charges if charge["ChargeDescription"] == name]
    found.sort(key=lambda charge: charge["ChargeCategory"])
    return [tuple(_plain(charge[column]) for column in wanted) for charge in found]


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


COSTS = ("ChargeCategory", "BilledCost", "EffectiveCost")


def test_a_month_of_every_kind_of_line_is_conformant(dataset: duckdb.DuckDBPyRelation) -> None:
    assert violations(dataset) == {}


@pytest.mark.parametrize(
    ("spoiled", "rule"),
    [
        ("* replace (cast(null as varchar) as ServiceName)", "ServiceName is not null"),
        ("* replace ('Enterprise' as ServiceSubcategory)", "ServiceSubcategory belongs to its ServiceCategory"),
        ("* replace (ListUnitPrice + 1 as ListUnitPrice)", "ListUnitPrice x PricingQuantity is ListCost"),
        ("* replace (BilledCost as EffectiveCost)", "EffectiveCost of a Purchase is 0"),
        ("* replace ('AWS' as ProviderName)", "BilledCost is 0 where another than the provider is paid"),
        ("* replace ('Used' as CommitmentDiscountStatus)", "CommitmentDiscountStatus is on Usage only"),
        ("* replace (SkuPriceId || random() as SkuId, 'x' as SkuPriceId)", "SkuPriceId has one SkuId"),
    ],
)
def test_the_rules_find_what_is_wrong(dataset: duckdb.DuckDBPyRelation, spoiled: str, rule: str) -> None:
    assert rule in violations(dataset.project(spoiled))


def test_billed_is_the_invoice_and_effective_is_amortized_with_credits(charges: list[Charge]) -> None:
    assert sum(charge["BilledCost"] for charge in charges) == sum(
        Decimal(line["line_item_unblended_cost"]) for line in LINES
    )
    # Plan 1.00, reservation 0.12 used and 0.48 left, block 955.20, ODCR 2 x 55.04, spot 0.40, storage 0.23 + 0.50,
    # tax 12.50, credit -7, refund -2, discount -3, support 29, tracker 100, new thing 0.01. Upfront fees are spread.
    parts = "1 0.12 0.48 955.2 55.04 55.04 0.4 0.23 0.5 12.5 -7 -2 -3 29 100 0.01"
    assert sum(charge["EffectiveCost"] for charge in charges) == sum(map(Decimal, parts.split()))


def test_a_plan_paid_upfront_is_bought_once_and_used_by_the_hour(charges: list[Charge]) -> None:
    wanted = (*COSTS, "ChargeFrequency", "CommitmentDiscountStatus", "CommitmentDiscountQuantity", "ResourceId")
    # FOCUS 1.2, commitment discount purchase scenario 1: 8760 bought, effective cost 0.
    assert of(charges, "plan bought", *wanted) == [("Purchase", 8760, 0, "One-Time", None, 8760, PLAN)]
    # Its hour costs nothing again, so nothing is bought; 1.00 - 0.60 of it is left unused.
    assert of(charges, "plan hour", *wanted) == [("Usage", 0, 0.4, "Usage-Based", "Unused", 0.4, PLAN)]
    assert of(charges, "covered", *wanted) == [("Usage", 0, 0.6, "Usage-Based", "Used", 0.6, "i-0a")]
    assert of(charges, "covered", "ListCost", "ContractedCost", "PricingCategory") == [(1.5, 1.5, "Committed")]
    assert of(charges, "negation", *wanted) == []


def test_a_reservation_is_bought_in_hours_and_what_is_left_of_it_is_usage(charges: list[Charge]) -> None:
    wanted = (*COSTS, "ChargeFrequency", "CommitmentDiscountStatus", "CommitmentDiscountQuantity", "ResourceId")
    # A year has 8760 hours.
    assert of(charges, "reservation bought", *wanted) == [("Purchase", 500, 0, "One-Time", None, 8760, RESERVED)]
    assert of(charges, "reservation month", *wanted) == [
        ("Purchase", 22.32, 0, "Recurring", None, 744, RESERVED),
        ("Usage", 0, 0.48, "Usage-Based", "Unused", 4, RESERVED),
    ]
    assert of(charges, "reserved", *wanted) == [("Usage", 0, 0.12, "Usage-Based", "Used", 1, "i-0b")]
    # Under a reservation the bill states a cost of 0; at contract it is worth what it lists.
    assert of(charges, "reserved", "ListCost", "ContractedCost", "ContractedUnitPrice") == [(0.3, 0.3, 0.3)]
    assert of(charges, "reservation month", "ChargePeriodEnd")[0][0].isoformat() == "2026-08-01T00:00:00"


def test_a_capacity_block_is_bought_and_accrued(charges: list[Charge]) -> None:
    wanted = (*COSTS, "ListCost", "CommitmentDiscountId", "CapacityReservationId", "CapacityReservationStatus")
    assert of(charges, "block", *wanted) == [
        ("Purchase", 955.2, 0, 955.2, None, "cr-0b10c5", None),
        ("Usage", 0, 955.2, 0, None, "cr-0b10c5", "Used"),
    ]
    assert of(charges, "block hour", *wanted) == [("Usage", 0, 0, 0, None, "cr-0b10c5", "Used")]


def test_a_capacity_reservation_shows_what_is_used_of_it(charges: list[Charge]) -> None:
    wanted = ("EffectiveCost", "CapacityReservationId", "CapacityReservationStatus", "ResourceType")
    assert of(charges, "odcr used", *wanted) == [(55.04, "cr-0dc5", "Used", "instance")]
    assert of(charges, "odcr unused", *wanted) == [(55.04, "cr-0dc5", "Unused", "capacity-reservation")]
    # The hours of the reservation as a whole would count both again.
    assert of(charges, "odcr again", *wanted) == []
    assert ODCR in [charge["ResourceId"] for charge in charges]


def test_prices_explain_their_costs(charges: list[Charge]) -> None:
    wanted = ("PricingCategory", "PricingQuantity", "PricingUnit", "ListUnitPrice", "ListCost", "ContractedCost")
    # AWS states no list price of Spot: the contracted one stands in.
    assert of(charges, "spot", *wanted) == [("Dynamic", 1, "Hours", 0.4, 0.4, 0.4)]
    assert of(charges, "storage", *wanted) == [("Standard", 10, "GB-Months", 0.023, 0.23, 0.23)]
    # A rate of 9 does not make 3 requests cost 1: the price is 1 / 3.
    assert of(charges, "tiered", *wanted) == [("Standard", 3, "Requests", 1 / 3, 1, 0.5)]
    assert of(charges, "storage", "SkuId", "SkuPriceId", "SkuMeter") == [
        ("SKU1", "SKU1.TERM.RATE", "USW2-TimedStorage-ByteHrs")
    ]


def test_what_is_no_usage_keeps_its_name_and_has_no_price(charges: list[Charge]) -> None:
    wanted = (*COSTS, "ChargeClass", "PricingQuantity")
    assert of(charges, "tax", *wanted) == [("Tax", 12.5, 12.5, None, None)]
    assert of(charges, "credit", *wanted) == [("Credit", -7, -7, None, None)]
    assert of(charges, "discount", *wanted) == [("Adjustment", -3, -3, None, None)]
    # Money back for a day of June, on the bill of July.
    assert of(charges, "refund", *wanted) == [("Adjustment", -2, -2, "Correction", None)]
    # The fee of the plan counts nothing in the amortized cost, and neither does what comes back of it.
    assert of(charges, "Refund for one-time fee for Savings Plan ID: sp-1", *wanted) == [
        ("Purchase", -100, 0, None, -1)
    ]
    assert of(charges, "pods", *wanted) == []


def test_other_fees_are_paid_and_accrued_too(charges: list[Charge]) -> None:
    assert of(charges, "support", *COSTS) == [("Purchase", 29, 0), ("Usage", 0, 29)]
    wanted = ("ServiceName", "ServiceCategory", "PublisherName", "InvoiceIssuerName", "ProviderName")
    aws = "Amazon Web Services, Inc."
    assert of(charges, "sold by another", *wanted) == [("Tracker", "Other", "Tracker Ltd", aws, aws)] * 2
    assert of(charges, "support", *wanted[:2])[0] == ("AWS Support (Business)", "Management and Governance")
    assert of(charges, "someone's service", *wanted[:2]) == [("AmazonNewThing", "Other")]


def test_every_listed_service_has_a_category_of_the_specification() -> None:
    with (resources.REFERENCE / "ref_service.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            category = row["service_category"]
            allowed = [*SERVICES[category].split("|"), f"Other ({category})"]
            assert row["service_subcategory"] in allowed, row["service"]
