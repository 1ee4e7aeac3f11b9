-- One row per hour × payer × region × currency × kind of commitment × accelerator family: how much it covered of what
-- it can cover.
-- partition: billing_period
-- At list price (facts aws-billing 3.1). Usage that another kind covers is not in the denominator but in columns of its
-- own, because AWS does not document how Cost Explorer counts it. Kinds overlap: what is on demand is eligible for each
-- kind that could cover it.
with eligible as (
    select commitment_eligibility, kind.commitment_kind
    from ref_commitment_eligibility as rule
    cross join (values ('compute_savings_plan'), ('ec2_instance_savings_plan'), ('sagemaker_savings_plan'),
        ('reserved_instance')) as kind(commitment_kind)
    where case kind.commitment_kind when 'compute_savings_plan' then rule.compute_savings_plan
        when 'ec2_instance_savings_plan' then rule.ec2_instance_savings_plan
        when 'sagemaker_savings_plan' then rule.sagemaker_savings_plan else rule.reserved_instance end = 'yes'
),

-- Summed over instance types and commitments before each row repeats for every kind that could cover it.
use as (
    select
        billing_period, usage_date, hour_started_at, payer_account_id, region_id, billing_currency, accelerator_family,
        commitment_eligibility, commitment_kind as covering_kind,
        sum(eligible_list_cost_usd) as list_cost_usd,
        known_sum(on_demand_cost_usd) as on_demand_cost_usd,
        sum(eligible_hours) as instance_hours,
        sum(eligible_normalized_units) as normalized_units,
        sum(unpriced_line_count) as unpriced_line_count
    from detail_commitment_use_hourly
    group by all
),

of_kind as (
    select
        use.*, eligible.commitment_kind,
        case when use.covering_kind = 'none' then 'on_demand'
            when use.covering_kind = eligible.commitment_kind then 'covered' else 'other' end as part
    from use
    join eligible on eligible.commitment_eligibility = use.commitment_eligibility
),

part as (
    select *,
        case when part <> 'other' then list_cost_usd else 0 end as eligible_list_cost_usd,
        case when part = 'covered' then list_cost_usd else 0 end as covered_list_cost_usd
    from of_kind
)

select
    billing_period, usage_date, hour_started_at, payer_account_id, region_id, billing_currency, commitment_kind,
    accelerator_family,
    sum(eligible_list_cost_usd) as eligible_list_cost_usd,
    sum(covered_list_cost_usd) as covered_list_cost_usd,
    coverage_ratio(covered_list_cost_usd, eligible_list_cost_usd, unpriced_line_count) as coverage_ratio,
    sum(case when part = 'other' then list_cost_usd else 0 end) as other_covered_list_cost_usd,
    known_sum(on_demand_cost_usd) as on_demand_cost_usd,
    sum(case when part <> 'other' then instance_hours else 0 end) as eligible_hours,
    sum(case when part = 'covered' then instance_hours else 0 end) as covered_hours,
    sum(case when part = 'other' then instance_hours else 0 end) as other_covered_hours,
    sum(case when part <> 'other' then normalized_units end) as eligible_normalized_units,
    sum(case when part = 'covered' then normalized_units
        when part = 'on_demand' and normalized_units is not null then 0 end) as covered_normalized_units,
    cast(sum(unpriced_line_count) as bigint) as unpriced_line_count
from part
group by billing_period, usage_date, hour_started_at, payer_account_id, region_id, billing_currency, commitment_kind,
    accelerator_family
