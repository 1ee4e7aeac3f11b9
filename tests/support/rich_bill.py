"""One hour of July 2026 with a line of every kind AWS bills, as rows of the normalized bill."""

from __future__ import annotations

PLAN = "arn:aws:savingsplans::000011112222:savingsplan/sp-1"
RESERVED = "arn:aws:ec2:us-west-2:000033334444:reserved-instances/ri-1"
BLOCK = "arn:aws:ec2:us-west-2:000033334444:capacity-reservation/cr-0b10c5"
ODCR = "arn:aws:ec2:us-west-2:000033334444:capacity-reservation/cr-0dc5"
BOX, JULY = "USW2-BoxUsage:p5.48xlarge", "2026-07"

_HOUR = {
    "line_item_usage_start_date": "2026-07-14 10:00:00",
    "line_item_usage_end_date": "2026-07-14 11:00:00",
    "line_item_usage_amount": "1",
    "bill_invoicing_entity": "Amazon Web Services, Inc.",
    "product_region_code": "us-west-2",
    "pricing_unit": "Hrs",
}
_MONTH = {"line_item_usage_start_date": "2026-07-01 00:00:00", "line_item_usage_end_date": "2026-07-31 23:59:59"}
_NO_USAGE = {"product_region_code": "", "pricing_unit": "", "line_item_usage_amount": "1"}


def _line(name: str, charge: str, cost: str, **more: str) -> dict[str, str]:
    own = {
        "line_item_line_item_description": name,
        "line_item_line_item_type": charge,
        "line_item_unblended_cost": cost,
    }
    # A blank of the bill is null in the normalized one.
    return {key: value for key, value in {**_HOUR, **own, **more}.items() if value}


def _plan(name: str, charge: str, cost: str, **more: str) -> dict[str, str]:
    return _line(name, charge, cost, savings_plan_savings_plan_a_r_n=PLAN, **more)


def _fee(name: str, cost: str, product: str, **more: str) -> dict[str, str]:
    return _line(name, "Fee", cost, line_item_product_code=product, **{**_NO_USAGE, **more})


def _box(name: str, usage: str, cost: str, **more: str) -> dict[str, str]:
    return _line(name, "Usage", cost, line_item_usage_type=usage, **more)


# The description of a line is its name in the tests.
LINES = [
    # An All Upfront plan of 1.00 an hour, of which 0.60 is used; a usage line of 1.50 on demand.
    _plan("plan bought", "SavingsPlanUpfrontFee", "8760", line_item_product_code="ComputeSavingsPlans", **_NO_USAGE),
    _plan("plan hour", "SavingsPlanRecurringFee", "0", line_item_product_code="ComputeSavingsPlans", **_NO_USAGE,
          savings_plan_total_commitment_to_date="1", savings_plan_used_commitment="0.6"),
    _plan("covered", "SavingsPlanCoveredUsage", "1.5", line_item_usage_type=BOX, line_item_resource_id="i-0a",
          savings_plan_savings_plan_effective_cost="0.6", pricing_public_on_demand_cost="1.5",
          pricing_public_on_demand_rate="1.5", line_item_unblended_rate="1.5"),
    _plan("negation", "SavingsPlanNegation", "-1.5", line_item_usage_type=BOX),
    # A Partial Upfront reservation: 744 hours of July, 4 of them unused, worth 0.12 of fee each.
    _fee("reservation bought", "500", "AmazonEC2", reservation_reservation_a_r_n=RESERVED,
         pricing_lease_contract_length="1yr"),
    _line("reservation month", "RIFee", "22.32", reservation_reservation_a_r_n=RESERVED,
          line_item_usage_type="USW2-HeavyUsage:m5.large", reservation_unused_recurring_fee="0.12",
          reservation_unused_amortized_upfront_fee_for_billing_period="0.36", reservation_unused_quantity="4",
          **{**_MONTH, "line_item_usage_amount": "744"}),
    _line("reserved", "DiscountedUsage", "0", line_item_usage_type="USW2-BoxUsage:m5.large",
          reservation_reservation_a_r_n=RESERVED, reservation_effective_cost="0.12",
          pricing_public_on_demand_cost="0.3", line_item_resource_id="i-0b", line_item_unblended_rate="0"),
    # A Capacity Block, its hour, and an on-demand reservation used, unused and counted again.
    _fee("block", "955.2", "AmazonEC2", line_item_usage_type="USW2-CapacityBlockFee:p5.48xlarge",
         reservation_reservation_a_r_n=BLOCK, product_region_code="us-west-2"),
    _box("block hour", BOX, "0", line_item_operation="RunInstances:CB", line_item_resource_id="i-0c",
         capacity_reservation_capacity_reservation_arn=BLOCK),
    _box("odcr used", BOX, "55.04", capacity_reservation_capacity_reservation_arn=ODCR,
         pricing_public_on_demand_cost="55.04", line_item_resource_id="i-0d"),
    _box("odcr unused", "USW2-UnusedBox:p5.48xlarge", "55.04", pricing_public_on_demand_cost="55.04",
         line_item_resource_id=ODCR),
    _box("odcr again", "USW2-Reservation:p5.48xlarge", "0", line_item_resource_id=ODCR),
    # Spot without a list price; usage whose rate explains its cost, and whose rate does not.
    _box("spot", "USW2-SpotUsage:g5.xlarge", "0.4", pricing_term="Spot", line_item_resource_id="i-0e"),
    _box("storage", "USW2-TimedStorage-ByteHrs", "0.23", line_item_product_code="AmazonS3", pricing_unit="GB-Mo",
         line_item_usage_amount="10", pricing_public_on_demand_cost="0.23", pricing_public_on_demand_rate="0.023",
         line_item_unblended_rate="0.023", line_item_resource_id="bucket", pricing_rate_code="SKU1.TERM.RATE",
         product_sku="SKU1"),
    _box("tiered", "USW2-Requests-Tier1", "0.5", line_item_product_code="AmazonS3", pricing_unit="Requests",
         line_item_usage_amount="3", pricing_public_on_demand_cost="1", pricing_public_on_demand_rate="9"),
    _box("pods", BOX, "0", line_item_operation="EKSPod-EC2", line_item_resource_id="arn:aws:eks:us-west-2:1:pod/x"),
    # What is no usage.
    _line("tax", "Tax", "12.5", **_NO_USAGE),
    _line("credit", "Credit", "-7", line_item_usage_type=BOX, **_NO_USAGE),
    _line("refund", "Refund", "-2", line_item_usage_type=BOX, line_item_usage_start_date="2026-06-03 00:00:00",
          line_item_usage_end_date="2026-06-04 00:00:00", line_item_usage_amount="1"),
    _line("refund of the plan", "Refund", "-100", line_item_product_code="ComputeSavingsPlans", **_NO_USAGE)
    | {"line_item_line_item_description": "Refund for one-time fee for Savings Plan ID: sp-1"},
    _line("discount", "EdpDiscount", "-3", line_item_usage_type=BOX, **_NO_USAGE),
    _fee("support", "29", "AWSSupportBusiness"),
    _fee("sold by another", "100", "4ktc9wq2", bill_billing_entity="AWS Marketplace", product_product_name="Tracker",
         line_item_legal_entity="Tracker Ltd"),
    _box("someone's service", "USW2-Something", "0.01", line_item_product_code="AmazonNewThing"),
]  # fmt: skip
