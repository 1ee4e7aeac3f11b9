-- One row per combination of what lines of a delivered report bill: what it is by our rules.
-- partition: billing_period, source_name
-- A line finds its own by all of the columns (cur_is_of_kind). Only this SQL knows the line-item types (facts 2).
with line as (
    select
        *, billing_month_of(bill_billing_period_start_date, billing_period) as billing_month,
        coalesce(bill_invoice_id, '') as invoice_id, usage_kind_of(line_item_usage_type) as usage_kind
    from stg_aws__cur_combination
),

-- Only what bills instance time has an instance type worth looking up; the joins below then have one plain key.
kinded as (
    select line.*, kind.line_class as kind_class,
        cur_instance_type(product_instance_type, kind.usage_kind, line_item_usage_type, line_item_line_item_description)
            as named_instance_type,
        -- No prefix is us-east-1 (facts 4.1).
        case when kind.usage_kind is not null and product_region_code is null
            then coalesce(nullif(regexp_extract(line_item_usage_type, '^([A-Z]+[0-9]?)-', 1), ''), 'USE1') end
            as region_prefix
    from line
    left join ref_usage_kind as kind on kind.usage_kind = line.usage_kind
),

catalogd as (
    select *, cur_catalog_type(kind_class, line_item_usage_type, named_instance_type) as catalog_type
    from kinded
),

-- A dedicated host is billed by machine family; the hours are those of the instances on it.
accelerator as (
    select instance_type, accelerator_family, accelerator_count from ref_instance_type
    union all
    select distinct split_part(instance_type, '.', 1), accelerator_family, 0
    from ref_instance_type
    where instance_type like '%.%'
),

payer as (
    select
        billing_month, bill_payer_account_id as payer_account_id, invoice_id, billing_currency,
        sum(sum(net_value_count)) over (partition by billing_month, bill_payer_account_id) > 0 as has_net_costs,
        -- Covered usage and its negation cancel on each invoice (facts 2.4, identity 3).
        abs(sum(case when rule.effective_rule in ('savings_plan', 'zero') then billed_cost_usd else 0 end)) < 0.005
            as is_negation_complete
    from line
    left join ref_line_item_type as rule on rule.line_item_type = line.line_item_line_item_type
    group by billing_month, bill_payer_account_id, invoice_id, billing_currency
),

classified as (
    select
        line.*, payer.has_net_costs, payer.is_negation_complete,
        rule.line_item_type is not null as is_known_charge_type,
        cur_effective_rule(rule.effective_rule, line_item_line_item_type) as effective_rule,
        -- A reservation's upfront fee is a commitment's purchase (decision 6); any other fee has no list price.
        case when rule.effective_rule = 'fee' and line.reservation_reservation_a_r_n is not null
            and cur_line_class(line, rule) <> 'block_fee' then 'zero' else coalesce(rule.list_rule, 'none') end as list_rule,
        case
            when line_item_line_item_type like '%Discount' then 'Discount'
            -- Tax on support is tax, and a credit on it a credit.
            when line_item_product_code like '%Support%' and coalesce(bill_billing_entity, 'AWS') = 'AWS'
                and coalesce(rule.charge_category, 'Usage') in ('Usage', 'Purchase') then 'Support'
            else coalesce(rule.charge_category, 'Usage')
        end as charge_category,
        cur_line_class(line, rule) as line_class,
        market(cur_is_block_time(line, accelerator), pricing_term = 'Spot' or usage_kind in ('SpotUsage', 'TrSpt'),
            cur_effective_rule(rule.effective_rule, line_item_line_item_type)) as market,
        coalesce(named_instance_type, nullif(catalog_type, '')) as instance_type,
        family_of(accelerator.accelerator_family, catalog_type) as accelerator_family,
        accelerator_count_of(accelerator.accelerator_count, accelerator.accelerator_family, catalog_type)
            as accelerator_count, region.region_id as prefix_region_id,
        is_shared_usage(listed.shared_reason, line_item_usage_type) as is_shared_usage,
        bedrock_meter_id(line.bedrock_product, line_item_product_code, line_item_usage_type, bedrock_unit,
            line_item_line_item_description) as bedrock_meter_id
    from catalogd as line
    left join ref_region as region on region.usage_type_prefix = line.region_prefix
    left join payer
        on payer.billing_month = line.billing_month and payer.payer_account_id = line.bill_payer_account_id
        and payer.invoice_id = line.invoice_id and payer.billing_currency = line.billing_currency
    left join ref_line_item_type as rule on rule.line_item_type = line.line_item_line_item_type
    left join accelerator on accelerator.instance_type = line.catalog_type
    left join ref_service as listed on listed.service = line.line_item_product_code
),

kind as (
    select
        *, policy.savings_plan_unused = 'scaled' as is_unused_scaled,
        kept_description(effective_rule, line_item_line_item_description) as kept_description,
        coalesce(product_region_code, prefix_region_id, '') as region_id,
        commitment_eligibility(charge_category, effective_rule, line_class, market, line_item_product_code,
            line_item_usage_type, instance_type, policy.assumed_eligible) as commitment_eligibility,
        case when line_class in ('instance', 'capacity_unused', 'capacity_marker', 'block_fee') -- not an instance's own id
            then coalesce(capacity_reservation_id(capacity_reservation_capacity_reservation_arn),
                capacity_reservation_id(reservation_reservation_a_r_n)) end as capacity_reservation_id,
        case when effective_rule in ('reservation', 'reservation_unused') then reservation_reservation_a_r_n end
            as commitment_reservation_id
    from classified
    cross join policy
)

select
    source_name, billing_period, bill_billing_period_start_date, bill_payer_account_id, bill_invoice_id, bill_billing_entity,
    bill_invoicing_entity, billing_currency, line_item_line_item_type, line_item_line_item_description,
    line_item_product_code, line_item_usage_type, line_item_operation, pricing_term, product_instance_type,
    product_region_code, reservation_reservation_a_r_n, capacity_reservation_capacity_reservation_arn,
    capacity_reservation_capacity_reservation_status, capacity_reservation_capacity_reservation_type, is_free,
    is_of_training_plan, bedrock_product, bedrock_unit, billing_month, invoice_id, has_net_costs, is_negation_complete, is_unused_scaled,
    is_known_charge_type, effective_rule, list_rule, charge_category, usage_kind,
    serving_class(line_class, charge_category, bedrock_meter_id, line_item_usage_type) as line_class, is_shared_usage,
    bedrock_meter_id, instance_type, accelerator_family, accelerator_count, region_id, market, commitment_eligibility,
    capacity_reservation_id, commitment_reservation_id, kept_description,
    -- Kinds that differ in no attribute of a charge are one (stg_aws__charge_kind).
    cast(dense_rank() over (order by bill_payer_account_id, billing_month, invoice_id, bill_billing_entity,
        bill_invoicing_entity, billing_currency, charge_category, line_item_line_item_type, is_known_charge_type,
        effective_rule, line_item_product_code, region_id, accelerator_family, market, kept_description,
        commitment_eligibility, bedrock_meter_id) as varchar) as charge_kind_id, is_known_by_product
from kind
