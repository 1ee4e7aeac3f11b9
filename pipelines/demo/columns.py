"""The columns of the generated exports: CUR 2.0 with resources, capacity reservations and split costs."""

from __future__ import annotations

import pyarrow as pa

_TEXT, _NUMBER, _TIME = pa.string(), pa.float64(), pa.timestamp("ms")
MAP = pa.map_(pa.string(), pa.string())
EXPORT_TYPES = {_TEXT: "string", _NUMBER: "double", _TIME: "timestamp", MAP: "map"}

_TIMES = (
    "bill_billing_period_end_date",
    "bill_billing_period_start_date",
    "line_item_usage_end_date",
    "line_item_usage_start_date",
)
_MAPS = ("cost_category", "product", "resource_tags")
_NUMBERS = (
    "line_item_blended_cost",
    "line_item_net_unblended_cost",
    "line_item_unblended_cost",
    "line_item_usage_amount",
    "pricing_public_on_demand_cost",
    "reservation_amortized_upfront_cost_for_usage",
    "reservation_amortized_upfront_fee_for_billing_period",
    "reservation_effective_cost",
    "reservation_net_effective_cost",
    "reservation_net_unused_amortized_upfront_fee_for_billing_period",
    "reservation_net_unused_recurring_fee",
    "reservation_recurring_fee_for_usage",
    "reservation_unused_amortized_upfront_fee_for_billing_period",
    "reservation_unused_quantity",
    "reservation_unused_recurring_fee",
    "savings_plan_amortized_upfront_commitment_for_billing_period",
    "savings_plan_net_amortized_upfront_commitment_for_billing_period",
    "savings_plan_net_recurring_commitment_for_billing_period",
    "savings_plan_net_savings_plan_effective_cost",
    "savings_plan_recurring_commitment_for_billing_period",
    "savings_plan_savings_plan_effective_cost",
    "savings_plan_savings_plan_rate",
    "savings_plan_total_commitment_to_date",
    "savings_plan_used_commitment",
    "split_line_item_actual_usage",
    "split_line_item_reserved_usage",
    "split_line_item_split_cost",
    "split_line_item_split_usage",
    "split_line_item_split_usage_ratio",
    "split_line_item_unused_cost",
)
_TEXTS = (
    "bill_bill_type",
    "bill_billing_entity",
    "bill_invoice_id",
    "bill_invoicing_entity",
    "bill_payer_account_id",
    "bill_payer_account_name",
    "capacity_reservation_capacity_reservation_arn",
    "capacity_reservation_capacity_reservation_status",
    "capacity_reservation_capacity_reservation_type",
    "identity_line_item_id",
    "identity_time_interval",
    "line_item_availability_zone",
    "line_item_currency_code",
    "line_item_legal_entity",
    "line_item_line_item_description",
    "line_item_line_item_type",
    "line_item_operation",
    "line_item_product_code",
    "line_item_resource_id",
    "line_item_tax_type",
    "line_item_unblended_rate",
    "line_item_usage_account_id",
    "line_item_usage_account_name",
    "line_item_usage_type",
    "pricing_currency",
    "pricing_public_on_demand_rate",
    "pricing_purchase_option",
    "pricing_term",
    "pricing_unit",
    "product_instance_family",
    "product_instance_type",
    "product_product_family",
    "product_region_code",
    "product_servicecode",
    "reservation_end_time",
    "reservation_number_of_reservations",
    "reservation_reservation_a_r_n",
    "reservation_start_time",
    "reservation_total_reserved_units",
    "savings_plan_end_time",
    "savings_plan_offering_type",
    "savings_plan_payment_option",
    "savings_plan_purchase_term",
    "savings_plan_savings_plan_a_r_n",
    "savings_plan_start_time",
    "split_line_item_parent_resource_id",
)

SCHEMA = pa.schema(
    sorted(
        [
            *((name, _TEXT) for name in _TEXTS),
            *((name, _NUMBER) for name in _NUMBERS),
            *((name, _TIME) for name in _TIMES),
            *((name, MAP) for name in _MAPS),
        ]
    )
)

# AWS writes some blanks as empty strings and some as nulls; both mean nothing.
BLANK_AS_EMPTY = {
    "bill_invoice_id",
    "line_item_availability_zone",
    "line_item_operation",
    "line_item_resource_id",
    "line_item_usage_type",
    "pricing_term",
    "product_instance_type",
    "reservation_reservation_a_r_n",
}
