-- One row per line of a delivered cost and usage report, with what FOCUS requires of it and its cost.
-- partition: billing_period
-- stored: no
-- Nothing but the FOCUS export reads this: the ledger needs none of these columns and does not pay for them.
with line as (
    select
        line.*, bill.line_item_unblended_cost, bill.bill_billing_entity, bill.bill_payer_account_name,
        bill.line_item_usage_account_name, bill.bill_invoicing_entity, bill.line_item_legal_entity,
        bill.line_item_line_item_description, bill.line_item_operation, bill.line_item_availability_zone,
        bill.line_item_unblended_rate, bill.pricing_lease_contract_length, bill.pricing_public_on_demand_rate,
        bill.pricing_rate_code, bill.pricing_unit, bill.product_product_family, bill.product_product_name,
        bill.product_servicecode, bill.product_sku, bill.capacity_reservation_capacity_reservation_status,
        bill.reservation_reservation_a_r_n, bill.reservation_unused_quantity, bill.savings_plan_savings_plan_a_r_n,
        bill.savings_plan_savings_plan_effective_cost, bill.savings_plan_total_commitment_to_date,
        bill.savings_plan_used_commitment, bill.tag_json,
        case
            when line.effective_rule in ('savings_plan', 'savings_plan_unused')
                or line.charge_type = 'SavingsPlanUpfrontFee' then 'Spend'
            when line.effective_rule in ('reservation', 'reservation_unused') then 'Usage'
            when line.effective_rule = 'fee' and line.line_class <> 'block_fee'
                and bill.reservation_reservation_a_r_n is not null then 'Usage'
        end as commitment_category,
        bill.bill_billing_entity is distinct from 'AWS' and bill.bill_billing_entity is not null as is_resold
    from stg_aws__line_item as line
    join aws_cur_line_item as bill using (source_name, source_file, source_row)
)

select
    line.source_name, line.source_file, line.source_row, line.billing_period, line.billing_month, line.payer_account_id,
    line.account_id, line.invoice_id, line.billing_currency, line.charge_type, line.effective_rule, line.line_class,
    line.service, line.usage_type, line.region_id, line.resource_id, line.instance_type, line.market,
    line.capacity_reservation_id, line.usage_started_at, line.usage_ended_at, line.usage_quantity,
    line.list_cost_usd, line.amortized_cost_usd, line.effective_cost_usd, line.billed_cost_usd,
    line.line_item_unblended_cost as unblended_cost_usd,
    line.bill_payer_account_name as payer_account_name,
    line.line_item_usage_account_name as account_name,
    line.bill_invoicing_entity as invoice_issuer,
    line.line_item_legal_entity as publisher_name,
    nullif(trim(line.line_item_line_item_description), '') as charge_description,
    line.line_item_operation as operation,
    line.line_item_availability_zone as availability_zone,
    -- The location of a line may be that of a transfer, so the name of its region is taken from our list.
    coalesce(region.region_name, line.region_id) as region_name,
    line.product_product_family as product_family,
    coalesce(line.product_servicecode, line.service) as service_code,
    -- A product that others sell is known by its name, one of AWS that our list lacks by its code.
    coalesce(case when line.is_resold then nullif(trim(line.product_product_name), '') end, service.service_name,
        line.service) as service_name,
    coalesce(service.service_category, case when line.is_resold and line.product_product_name like '%Bedrock%'
        then 'AI and Machine Learning' end, 'Other') as service_category,
    coalesce(service.service_subcategory, case when line.is_resold and line.product_product_name like '%Bedrock%'
        then 'Generative AI' end, 'Other (Other)') as service_subcategory,
    focus_unit(line.pricing_unit) as unit, line.pricing_unit as billed_unit, line.billing_entity,
    try_cast(line.pricing_public_on_demand_rate as decimal(20, 10)) as list_rate_usd,
    try_cast(line.line_item_unblended_rate as decimal(20, 10)) as billed_rate_usd,
    -- A rate code begins with its SKU; where the bill names neither, service and meter stand for both.
    coalesce(line.pricing_rate_code, line.product_sku,
        line.service || ':' || coalesce(line.usage_type, line.charge_type)) as sku_price_id,
    coalesce(nullif(split_part(line.pricing_rate_code, '.', 1), ''), line.product_sku,
        line.service || ':' || coalesce(line.usage_type, line.charge_type)) as sku_id,
    line.capacity_reservation_capacity_reservation_status as capacity_reservation_status,
    line.commitment_category,
    case line.commitment_category
        when 'Spend' then line.savings_plan_savings_plan_a_r_n
        when 'Usage' then line.reservation_reservation_a_r_n
    end as commitment_id,
    -- A Savings Plan is bought and used in money, a reservation in hours; one bought at once in those of its term.
    case
        when line.effective_rule = 'savings_plan' then line.savings_plan_savings_plan_effective_cost
        when line.commitment_category = 'Spend' then line.line_item_unblended_cost
        when line.effective_rule = 'fee' and line.pricing_lease_contract_length like '1%'
            then line.usage_quantity * 8760
        when line.effective_rule = 'fee' and line.pricing_lease_contract_length like '3%'
            then line.usage_quantity * 26280
        else line.usage_quantity
    end as commitment_quantity,
    case line.effective_rule
        when 'savings_plan_unused' then line.savings_plan_total_commitment_to_date - line.savings_plan_used_commitment
        when 'reservation_unused' then line.reservation_unused_quantity
    end as unused_commitment_quantity,
    focus_charge_category(line.charge_type, line.effective_rule, line.line_class, line.effective_cost_usd)
        as focus_category,
    line.tag_json
from line
left join ref_service as service on service.service = line.service
left join ref_region as region on region.region_id = line.region_id
