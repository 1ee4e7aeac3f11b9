-- One row per combination of what lines of a delivered report bill, without who used when how much: their sums.
-- partition: billing_period, source_name
-- Millions of lines share some thousand combinations. Read off the lines once, they show what each is
-- (stg_aws__cur_line_kind) and what the invoices come to (stg_aws__invoice_total).
with combination as (
    select
        billing_period, bill_billing_period_start_date, bill_payer_account_id, bill_invoice_id, bill_billing_entity,
        bill_invoicing_entity, line_item_currency_code as billing_currency, line_item_line_item_type,
        line_item_line_item_description, line_item_product_code, line_item_usage_type, line_item_operation, pricing_term,
        product_instance_type, product_region_code, reservation_reservation_a_r_n,
        capacity_reservation_capacity_reservation_arn, capacity_reservation_capacity_reservation_status,
        capacity_reservation_capacity_reservation_type,
        cur_is_free(line_item_product_code, line_item_unblended_cost, pricing_public_on_demand_cost) as is_free,
        cur_is_of_training_plan(line_item_product_code, line_item_resource_id) as is_of_training_plan,
        bedrock_product(line_item_product_code, bill_billing_entity, product_product_name) as bedrock_product,
        bedrock_unit(line_item_product_code, bill_billing_entity, product_product_name, pricing_unit) as bedrock_unit,
        max(source_name) as source_name,
        max(delivery_id) as delivery_id,
        count(*) as line_count,
        count(nullif(line_item_unblended_cost, 0)) as charged_line_count,
        count(*) filter (where line_item_unblended_cost is null) as line_without_cost_count,
        -- Their list cost is not in the bill's currency, so it is not taken (cur_list_cost).
        count(*) filter (where pricing_currency <> line_item_currency_code and pricing_public_on_demand_cost <> 0)
            as line_priced_in_other_currency_count,
        coalesce(sum(line_item_unblended_cost), 0) as billed_cost_usd,
        coalesce(sum(coalesce(line_item_net_unblended_cost, line_item_unblended_cost)), 0) as net_billed_cost_usd,
        coalesce(sum(discount_total_discount), 0) as in_line_discount_usd,
        coalesce(sum(savings_plan_amortized_upfront_commitment_for_billing_period), 0)
            + coalesce(sum(reservation_amortized_upfront_fee_for_billing_period), 0) as amortized_upfront_usd,
        -- Net columns are filled only for a payer with discounts; decided per payer and month (facts 2.3).
        -- What a commitment covers has its own.
        count(case line_item_line_item_type when 'SavingsPlanCoveredUsage'
                then savings_plan_net_savings_plan_effective_cost when 'DiscountedUsage' then reservation_net_effective_cost
            else coalesce(line_item_net_unblended_cost, savings_plan_net_savings_plan_effective_cost,
                savings_plan_net_amortized_upfront_commitment_for_billing_period, reservation_net_effective_cost,
                reservation_net_unused_amortized_upfront_fee_for_billing_period, reservation_net_unused_recurring_fee) end)
            as net_value_count,
        -- What a fee leaves unused; an export may lack the columns.
        count(coalesce(nullif(savings_plan_total_commitment_to_date, 0), reservation_unused_recurring_fee,
            reservation_unused_amortized_upfront_fee_for_billing_period)) as commitment_value_count,
        max(line_item_usage_start_date) as newest_usage_at,
        -- Monthly charges lie over the whole month from its first day on.
        max(line_item_usage_end_date) filter (
            where date_diff('hour', line_item_usage_start_date, line_item_usage_end_date) <= 24) as usage_until_at
    from aws_cur_line_item
    group by all
)

select
    billing_period, bill_billing_period_start_date, bill_payer_account_id, bill_invoice_id, bill_billing_entity,
    bill_invoicing_entity, billing_currency, line_item_line_item_type, line_item_line_item_description,
    line_item_product_code, line_item_usage_type, line_item_operation, pricing_term, product_instance_type,
    product_region_code, reservation_reservation_a_r_n, capacity_reservation_capacity_reservation_arn,
    capacity_reservation_capacity_reservation_status, capacity_reservation_capacity_reservation_type, is_free,
    is_of_training_plan, bedrock_product, bedrock_unit, source_name, delivery_id, line_count, charged_line_count,
    line_without_cost_count, line_priced_in_other_currency_count, billed_cost_usd, net_billed_cost_usd,
    in_line_discount_usd, amortized_upfront_usd, net_value_count, commitment_value_count, newest_usage_at,
    usage_until_at,
    -- A line finds its combination without the product and unit of Bedrock, unless several differ in those alone.
    count(*) over (partition by bill_billing_period_start_date, bill_payer_account_id, bill_invoice_id,
        bill_billing_entity, bill_invoicing_entity, billing_currency, line_item_line_item_type, line_item_line_item_description,
        line_item_product_code, line_item_usage_type, line_item_operation, pricing_term, product_instance_type,
        product_region_code, reservation_reservation_a_r_n, capacity_reservation_capacity_reservation_arn,
        capacity_reservation_capacity_reservation_status, capacity_reservation_capacity_reservation_type, is_free,
        is_of_training_plan) > 1 as is_known_by_product
from combination
