-- One row per hour × payer × region × currency × kind of commitment × accelerator family × eligibility × what covers it.
-- partition: billing_period
-- stored: no
-- At list price (facts aws-billing 3.1). What another kind covers leaves the denominator, and stands beside it: how Cost Explorer counts
-- it is unverified, so both are told.
with eligible as (
    select commitment_eligibility, kind.commitment_kind
    from ref_commitment_eligibility as rule
    cross join (values ('compute_savings_plan'), ('ec2_instance_savings_plan'), ('sagemaker_savings_plan'), ('reserved_instance'))
        as kind(commitment_kind)
    where case kind.commitment_kind when 'compute_savings_plan' then rule.compute_savings_plan
        when 'ec2_instance_savings_plan' then rule.ec2_instance_savings_plan
        when 'sagemaker_savings_plan' then rule.sagemaker_savings_plan else rule.reserved_instance end = 'yes'
),

-- Summed over instance types and commitments before it stands once for each kind that could cover it.
use as (
    select
        billing_period, billing_month, usage_date, hour_started_at, payer_account_id, region_id, billing_currency,
        accelerator_family, commitment_eligibility, covering_kind,
        coalesce(sum(list_cost_usd), 0) as list_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        coalesce(sum(instance_hours), 0) as instance_hours,
        sum(normalized_units) as normalized_units,
        sum(unpriced_line_count) as unpriced_line_count
    from fct_commitment_use_hourly
    group by all
),

kinded as (
    select use.*, eligible.commitment_kind,
        case when use.covering_kind is null then 'open' when use.covering_kind = eligible.commitment_kind then 'covered' else 'other' end as part
    from use
    join eligible on eligible.commitment_eligibility = use.commitment_eligibility
)

select
    billing_period, billing_month, usage_date, hour_started_at, payer_account_id, region_id, billing_currency, commitment_kind,
    accelerator_family, commitment_eligibility, covering_kind,
    case when part <> 'other' then list_cost_usd else 0 end as eligible_list_cost_usd,
    case when part = 'covered' then list_cost_usd else 0 end as covered_list_cost_usd,
    case when part = 'other' then list_cost_usd else 0 end as other_covered_list_cost_usd,
    case when part = 'open' then effective_cost_usd else 0 end as on_demand_cost_usd,
    case when part <> 'other' then instance_hours else 0 end as eligible_hours,
    case when part = 'covered' then instance_hours else 0 end as covered_hours,
    case when part = 'other' then instance_hours else 0 end as other_covered_hours,
    case when part <> 'other' then normalized_units end as eligible_normalized_units,
    case when part = 'covered' then normalized_units when part = 'open' and normalized_units is not null then 0 end
        as covered_normalized_units,
    unpriced_line_count
from kinded
