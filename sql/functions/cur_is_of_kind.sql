-- Whether a report line is of a kind (stg_aws__cur_line_kind) by all columns that a kind has but the product of Bedrock:
-- nothing less is the same kind.
-- args: line, kind
kind.source_name = line.source_name
and kind.bill_billing_period_start_date is not distinct from line.bill_billing_period_start_date
and kind.bill_payer_account_id is not distinct from line.bill_payer_account_id
and kind.bill_invoice_id is not distinct from line.bill_invoice_id
and kind.bill_billing_entity is not distinct from line.bill_billing_entity
and kind.bill_invoicing_entity is not distinct from line.bill_invoicing_entity
and kind.billing_currency is not distinct from line.line_item_currency_code
and kind.line_item_line_item_type is not distinct from line.line_item_line_item_type
and kind.line_item_line_item_description is not distinct from line.line_item_line_item_description
and kind.line_item_product_code is not distinct from line.line_item_product_code
and kind.line_item_usage_type is not distinct from line.line_item_usage_type
and kind.line_item_operation is not distinct from line.line_item_operation
and kind.pricing_term is not distinct from line.pricing_term
and kind.product_instance_type is not distinct from line.product_instance_type
and kind.product_region_code is not distinct from line.product_region_code
and kind.reservation_reservation_a_r_n is not distinct from line.reservation_reservation_a_r_n
and kind.capacity_reservation_capacity_reservation_arn
    is not distinct from line.capacity_reservation_capacity_reservation_arn
and kind.capacity_reservation_capacity_reservation_status
    is not distinct from line.capacity_reservation_capacity_reservation_status
and kind.capacity_reservation_capacity_reservation_type
    is not distinct from line.capacity_reservation_capacity_reservation_type
and kind.is_free = cur_is_free(line.line_item_product_code, line.line_item_unblended_cost,
    line.pricing_public_on_demand_cost)
and kind.is_of_training_plan = cur_is_of_training_plan(line.line_item_product_code, line.line_item_resource_id)
