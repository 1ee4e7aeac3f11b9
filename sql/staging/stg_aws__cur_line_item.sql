-- One row per line of a delivered cost and usage report, in FOCUS terms, with its cost on the three bases.
-- partition: billing_period
-- stored: no
-- The only SQL that knows the report's column names and line-item types (facts aws-billing 2).
with line as (
    select
        *,
        cast(coalesce(bill_billing_period_start_date, cast(billing_period || '-01' as timestamp)) as date) as billing_month,
        coalesce(bill_invoice_id, '') as invoice_id,
        usage_kind_of(line_item_usage_type) as usage_kind,
        coalesce(product_instance_type, instance_type_of(line_item_usage_type)) as instance_type
    from aws_cur_line_item
),

-- Only what bills instance time has an instance type worth looking up; the join below then has one plain key.
kinded as (
    select line.*, kind.line_class as kind_class,
        case when kind.usage_kind is not null then replace(line.instance_type, 'ml.', '') end as catalogue_type
    from line
    left join ref_usage_kind as kind on kind.usage_kind = line.usage_kind
),

payer as (
    select billing_month, payer_account_id, invoice_id, billing_currency,
        sum(net_value_count) over (partition by billing_month, payer_account_id) > 0 as has_net_costs,
        abs(savings_plan_offset_usd) < 0.005 as is_negation_complete
    from stg_aws__invoice_total
),

classified as (
    select
        line.*, payer.has_net_costs, payer.is_negation_complete,
        rule.line_item_type is not null as is_known_charge_type,
        -- A type nobody has classified counts as billed; a name that ends in Discount says what it is.
        coalesce(rule.effective_rule,
            case when line_item_line_item_type like '%Discount' then 'discount' else 'as_billed' end) as effective_rule,
        coalesce(rule.list_rule, 'none') as list_rule,
        case
            when line_item_product_code like '%Support%' and coalesce(bill_billing_entity, 'AWS') = 'AWS' then 'Support'
            when line_item_line_item_type like '%Discount' then 'Discount'
            else coalesce(rule.charge_category, 'Usage')
        end as charge_category,
        case
            when line_item_operation in ('EKSPod-EC2', 'ECSTask-EC2') then 'split_child'
            -- Only usage has hours: a negation, a tax or a credit may name the same usage type.
            when kind_class <> 'block_fee' and (rule.charge_category is distinct from 'Usage' or rule.effective_rule = 'zero') then 'other'
            else coalesce(kind_class, 'other')
        end as line_class,
        coalesce(accelerator.accelerator_family,
            case when is_accelerator_name(catalogue_type) then 'unknown' else 'none' end) as accelerator_family,
        accelerator.accelerator_count
    from kinded as line
    left join payer
        on payer.billing_month = line.billing_month
        and payer.payer_account_id = line.bill_payer_account_id
        and payer.invoice_id = line.invoice_id
        and payer.billing_currency = line.line_item_currency_code
    left join ref_line_item_type as rule on rule.line_item_type = line.line_item_line_item_type
    left join ref_instance_type as accelerator on accelerator.instance_type = line.catalogue_type
),

costed as (
    select *, cur_list_cost() as list_cost, cur_effective_cost() as effective_cost, cur_billed_cost() as billed_cost
    from classified
)

select
    source_name, delivery_id, source_file, source_row, billing_period, billing_month,
    bill_payer_account_id as payer_account_id, line_item_usage_account_id as account_id, invoice_id,
    line_item_currency_code as billing_currency,
    line_item_line_item_type as charge_type, is_known_charge_type, charge_category, effective_rule, line_class,
    line_item_product_code as service, line_item_usage_type as usage_type, coalesce(product_region_code, '') as region_id,
    line_item_resource_id as resource_id,
    instance_type, accelerator_family, coalesce(accelerator_count, 0) as accelerator_count,
    case
        when line_item_operation like '%:CB' then 'capacity_block'
        when pricing_term = 'Spot' or usage_kind in ('SpotUsage', 'TrSpt') then 'spot'
        when effective_rule = 'savings_plan' then 'savings_plan'
        when effective_rule = 'reservation' then 'reserved'
        else 'on_demand'
    end as market,
    nullif(regexp_extract(coalesce(capacity_reservation_capacity_reservation_arn, reservation_reservation_a_r_n,
        line_item_resource_id), '(cr-[0-9a-z]+)', 1), '') as capacity_reservation_id,
    line_item_usage_start_date as usage_started_at, line_item_usage_end_date as usage_ended_at, cast(line_item_usage_start_date as date) as usage_date,
    coalesce(line_item_usage_amount, 0) as usage_quantity,
    case when line_item_product_code like 'AmazonBedrock%' or (bill_billing_entity = 'AWS Marketplace' and product_product_name like '%Bedrock%')
        then million_tokens(pricing_unit, coalesce(line_item_usage_amount, 0), line_item_line_item_description) end as million_tokens,
    cast(list_cost as decimal(20, 10)) as list_cost_usd,
    cast(effective_cost as decimal(20, 10)) as effective_cost_usd, cast(billed_cost as decimal(20, 10)) as billed_cost_usd,
    tag_run_id, tag_owner, tag_team
from costed
