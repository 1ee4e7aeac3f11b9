-- One row per line of a delivered FOCUS export, in our terms, with its cost on the three bases.
-- partition: billing_period
-- stored: no
-- The only SQL that knows FOCUS columns and their values (facts aws-billing 1.4, docs/decisions/0006).
with line as (
    select
        *,
        -- FOCUS 1.2 has no x_UsageType; there the SKU's meter shows it.
        coalesce(x_usage_type, sku_meter) as usage_type,
        coalesce(x_product_code, x_service_code, service_name, '') as service, coalesce(x_operation, '') as operation,
        -- Elsewhere, and in what runs record, an instance goes by its id alone, a HyperPod node too.
        coalesce(nullif(regexp_extract(resource_id, '^arn:.*:(instance|volume|cluster/[^/]+)/((i|vol)-[^/]+)$', 2), ''),
            resource_id) as bare_id,
        charge_category is not distinct from 'Usage' and charge_class is distinct from 'Correction' as is_usage,
        focus_billing_entity(line) as billing_entity, not is_other_provider(focus_billing_entity(line)) as is_aws,
        focus_commitment_id(line) as commitment_id
    from aws_focus_line_item as line
),

typed as (
    select *,
        usage_kind_of(usage_type) as usage_kind,
        focus_instance_type(line) as instance_type,
        case when commitment_id is null then null when focus_is_savings_plan(commitment_discount_category,
            commitment_discount_type, commitment_id) then 'savings_plan' else 'reservation' end as commitment
    from line
),

kinded as (
    select
        line.*,
        coalesce(kind.line_class, case
            -- Where the meter is no usage type, hours of an instance are known by what they are.
            when coalesce(line.usage_kind, '') = '' and bare_id like 'i-%' and instance_type is not null
                and lower(pricing_unit) in ('hours', 'hour', 'hrs') then 'instance'
        end) as kind_class,
        cur_effective_rule(listed.effective_rule, x_line_item_type) as listed_rule,
        case when x_line_item_type like '%Discount' then 'Discount' else listed.charge_category end as listed_category
    from typed as line
    left join ref_usage_kind as kind on kind.usage_kind = line.usage_kind
    left join ref_line_item_type as listed on listed.line_item_type = x_line_item_type
),

classed as (
    select *,
        case when kind_class is not null then replace(instance_type, 'ml.', '') end as catalog_type,
        focus_line_class(line, kind_class, is_usage) as line_class
    from kinded as line
),

ruled as (
    select
        *,
        -- Our own export names the refunds and discounts among purchases and adjustments.
        case when listed_rule in ('refund', 'discount') then listed_rule
            else focus_effective_rule(charge_category, charge_class, charge_frequency, line_class, is_usage, commitment,
                commitment_discount_status, is_aws) end as effective_rule,
        bill_charge_category(line, service, listed_category) as our_category
    from classed as line
),

-- Bills that name the programs a line is eligible for name them on each such line.
eligible_bill as (
    select distinct source_name, billing_period, billing_account_id, true as names_programs
    from aws_focus_line_item
    where commitment_program_eligibility_details is not null
),

bought as (
    select -- FOCUS may consume in another unit than it prices, such as seconds or single tokens.
        *, coalesce(case when lower(consumed_unit) <> lower(pricing_unit) and lower(consumed_unit) not like 'h%r%'
            then pricing_quantity end, consumed_quantity, pricing_quantity, 0) as quantity,
        market(operation like '%:CB' or focus_is_plan_time(line), pricing_category = 'Dynamic'
            or usage_kind in ('SpotUsage', 'TrSpt'), effective_rule) as market,
        focus_bedrock_meter_id(line) as bedrock_meter_id
    from ruled as line
)

select
    source_name, delivery_id, source_file, source_row, billing_period,
    billing_month_of(billing_period_start, billing_period) as billing_month,
    billing_account_id as payer_account_id, coalesce(sub_account_id, billing_account_id) as account_id,
    coalesce(invoice_id, '') as invoice_id, coalesce(invoice_issuer_name, '') as invoice_issuer, billing_currency,
    billing_entity, charge_category as charge_type,
    coalesce(charge_category in ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'), false) as is_known_charge_type,
    our_category as charge_category, effective_rule, serving_class(line_class, our_category, bedrock_meter_id, line.usage_type) as line_class,
    -- Our own export fills an empty one.
    nullif(charge_description, case when x_line_item_type is not null then coalesce(x_usage_type, x_line_item_type) end)
        as charge_description,
    line.service, line.usage_type, coalesce(region_id, '') as region_id, bare_id as resource_id,
    line.instance_type, family_of(accelerator.accelerator_family, catalog_type) as accelerator_family,
    accelerator_count_of(accelerator.accelerator_count, accelerator.accelerator_family, catalog_type)
        as accelerator_count, market,
    capacity_reservation_id(concat_ws(' ', capacity_reservation_id, resource_id, commitment_id))
        as capacity_reservation_id,
    charge_period_start as usage_started_at, charge_period_end as usage_ended_at,
    cast(charge_period_start as date) as usage_date, quantity as usage_quantity,
    cast(null as decimal(20, 10)) as normalized_units, commitment_id as commitment_discount_id,
    case when is_aws then focus_commitment_eligibility(commitment_program_eligibility_details, names_programs,
        commitment_eligibility(our_category, effective_rule, line_class, market, line.service, line.usage_type,
            line.instance_type, policy.assumed_eligible)) end as commitment_eligibility,
    bedrock_meter_id, is_shared_usage(listed.shared_reason, line.usage_type) as is_shared_usage,
    cast(case when x_line_item_type is not null then x_list_cost else
        focus_list_cost(effective_rule, line_class, is_usage, market, pricing_category, list_cost) end
        as decimal(20, 10)) as list_cost_usd,
    -- What differs where there is no commitment is a discount.
    cast(coalesce(x_amortized_cost, case when is_plan_fee_refund(effective_rule, charge_description) then 0
        when is_commitment(effective_rule) or effective_rule = 'upfront_fee' or (effective_rule = 'fee' and not is_aws)
            or (effective_rule = 'refund' and commitment_id is not null) then effective_cost else billed_cost end, 0)
        as decimal(20, 10)) as amortized_cost_usd,
    cast(focus_effective_cost(effective_rule, line_class, market, charge_description, x_line_item_type is not null,
        billed_cost, effective_cost) as decimal(20, 10)) as effective_cost_usd,
    cast(coalesce(billed_cost, 0) as decimal(20, 10)) as billed_cost_usd,
    -- Other clouds may share the export.
    case when is_aws then tag_run_id end as tag_run_id, tag_owner, tag_team
from bought as line
left join eligible_bill using (source_name, billing_period, billing_account_id)
left join ref_instance_type as accelerator on accelerator.instance_type = line.catalog_type
left join (select service, shared_reason from ref_service) as listed on listed.service = line.service
cross join policy
