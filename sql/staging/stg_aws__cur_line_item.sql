-- One row per line of a delivered cost and usage report, in FOCUS terms, with its cost on the three bases.
-- partition: billing_period
-- stored: no
-- The only SQL that knows the report's column names and line-item types (facts aws-billing 2).
with line as (
    select
        *,
        cast(coalesce(bill_billing_period_start_date, cast(billing_period || '-01' as timestamp)) as date) as billing_month,
        coalesce(bill_invoice_id, '') as invoice_id,
        usage_kind_of(line_item_usage_type) as usage_kind
    from aws_cur_line_item
),

-- Only what bills instance time has an instance type worth looking up; the joins below then have one plain key.
kinded as (
    select line.*, kind.line_class as kind_class,
        cur_instance_type() as instance_type,
        -- No prefix is us-east-1 (facts 4.1).
        case when kind.usage_kind is not null and product_region_code is null then
            coalesce(nullif(regexp_extract(line_item_usage_type, '^([A-Z]+[0-9]?)-', 1), ''), 'none') end as region_prefix
    from line
    left join ref_usage_kind as kind on kind.usage_kind = line.usage_kind
),

catalogued as (
    select *, cur_catalogue_type() as catalogue_type
    from kinded
),

-- A dedicated host is billed by machine family; the hours are those of the instances on it.
accelerator as (
    select instance_type, accelerator_family, accelerator_count from ref_instance_type
    union all
    select distinct split_part(instance_type, '.', 1), accelerator_family, 0 from ref_instance_type where instance_type like '%.%'
),

invoice as (
    select billing_month, payer_account_id, invoice_id, billing_currency,
        sum(net_value_count) as net_value_count, sum(savings_plan_offset_usd) as savings_plan_offset_usd
    from stg_aws__invoice_total
    group by billing_month, payer_account_id, invoice_id, billing_currency
),

payer as (
    select billing_month, payer_account_id, invoice_id, billing_currency,
        sum(net_value_count) over (partition by billing_month, payer_account_id) > 0 as has_net_costs,
        abs(savings_plan_offset_usd) < 0.005 as is_negation_complete,
        policy.savings_plan_unused = 'scaled' as is_unused_scaled
    from invoice
    cross join policy
),

classified as (
    select
        line.*, payer.has_net_costs, payer.is_negation_complete, payer.is_unused_scaled,
        rule.line_item_type is not null as is_known_charge_type,
        cur_effective_rule(rule.effective_rule, line_item_line_item_type) as effective_rule,
        coalesce(rule.list_rule, 'none') as list_rule,
        case
            when line_item_product_code like '%Support%' and coalesce(bill_billing_entity, 'AWS') = 'AWS' then 'Support'
            when line_item_line_item_type like '%Discount' then 'Discount'
            else coalesce(rule.charge_category, 'Usage')
        end as charge_category,
        cur_line_class() as line_class,
        cur_is_block_time() as is_block_time,
        family_of(accelerator.accelerator_family, catalogue_type) as accelerator_family,
        accelerator.accelerator_count, region.region_id as prefix_region_id
    from catalogued as line
    left join ref_region_prefix as region on region.region_prefix = line.region_prefix
    left join payer
        on payer.billing_month = line.billing_month
        and payer.payer_account_id = line.bill_payer_account_id
        and payer.invoice_id = line.invoice_id
        and payer.billing_currency = line.line_item_currency_code
    left join ref_line_item_type as rule on rule.line_item_type = line.line_item_line_item_type
    left join accelerator on accelerator.instance_type = line.catalogue_type
),

costed as (
    select *, cur_list_cost() as list_cost, cur_amortised_cost(false) as amortised_cost, cur_effective_cost() as effective_cost,
        cur_billed_cost() as billed_cost
    from classified
)

select
    source_name, delivery_id, source_file, source_row, billing_period, billing_month,
    bill_payer_account_id as payer_account_id, line_item_usage_account_id as account_id, invoice_id,
    coalesce(bill_billing_entity, '') as billing_entity, coalesce(bill_invoicing_entity, '') as invoice_issuer,
    line_item_currency_code as billing_currency,
    line_item_line_item_type as charge_type, is_known_charge_type, charge_category, effective_rule, line_class,
    line_item_line_item_description as charge_description,
    line_item_product_code as service, line_item_usage_type as usage_type,
    coalesce(product_region_code, prefix_region_id, '') as region_id,
    -- A HyperPod node is known to its runs by its instance id.
    coalesce(case when usage_kind in ('Cluster', 'ReservedCluster') then
        nullif(regexp_extract(line_item_resource_id, '(i-[0-9a-f]+)$', 1), '') end, line_item_resource_id) as resource_id,
    coalesce(instance_type, nullif(catalogue_type, '')) as instance_type, accelerator_family, coalesce(accelerator_count, 0) as accelerator_count,
    case
        when is_block_time then 'capacity_block'
        when pricing_term = 'Spot' or usage_kind in ('SpotUsage', 'TrSpt') then 'spot'
        when effective_rule = 'savings_plan' then 'savings_plan'
        when effective_rule = 'reservation' then 'reserved'
        else 'on_demand'
    end as market,
    -- An instance's own id names no reservation.
    case when line_class in ('instance', 'capacity_unused', 'capacity_marker', 'block_fee') then coalesce(
        capacity_reservation_id(capacity_reservation_capacity_reservation_arn),
        capacity_reservation_id(reservation_reservation_a_r_n),
        case when line_class <> 'instance' then capacity_reservation_id(line_item_resource_id) end) end as capacity_reservation_id,
    line_item_usage_start_date as usage_started_at, line_item_usage_end_date as usage_ended_at, cast(line_item_usage_start_date as date) as usage_date,
    coalesce(line_item_usage_amount, 0) as usage_quantity, line_item_normalized_usage_amount as normalized_units,
    coalesce(savings_plan_savings_plan_a_r_n, case when effective_rule in ('reservation', 'reservation_unused') then reservation_reservation_a_r_n end) as commitment_discount_id,
    case when line_item_product_code like 'AmazonBedrock%' or (bill_billing_entity = 'AWS Marketplace' and product_product_name like '%Bedrock%')
        then million_tokens(pricing_unit, coalesce(line_item_usage_amount, 0), line_item_line_item_description) end as million_tokens,
    cast(list_cost as decimal(20, 10)) as list_cost_usd,
    cast(amortised_cost as decimal(20, 10)) as amortised_cost_usd,
    cast(effective_cost as decimal(20, 10)) as effective_cost_usd, cast(billed_cost as decimal(20, 10)) as billed_cost_usd,
    tag_run_id, tag_owner, tag_team
from costed
