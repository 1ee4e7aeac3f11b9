-- One row per day × payer × account × region × currency × family × eligibility × commitment: usage, and what
-- commitments cover of it.
-- partition: billing_period
-- Each line of usage is in one row, so rows add up, and what can be covered adds up to the same as the hours. Where no
-- commitment covered it the kind is `none`; where none can, `reason` shows why, and the sums of eligible and covered
-- usage are zero.
with fee as (
    select distinct payer_account_id, billing_currency, commitment_discount_id, commitment_kind
    from stg_aws__commitment_fee
),

use as (
    select
        charge.*, coalesce(rule.reason, '') as reason,
        can_be_covered(charge.commitment_eligibility) as is_eligible,
        case when can_be_covered(charge.commitment_eligibility)
            then covering_kind(charge.effective_rule, fee.commitment_kind, charge.commitment_eligibility) end
            as covering_kind
    from fct_charge as charge
    left join fee using (payer_account_id, billing_currency, commitment_discount_id)
    left join ref_commitment_eligibility as rule on rule.commitment_eligibility = charge.commitment_eligibility
    where charge.commitment_eligibility is not null
)

select
    billing_period, usage_date, payer_account_id, account_id, region_id, billing_currency,
    commitment_family(accelerator_family) as accelerator_family, commitment_eligibility,
    coalesce(covering_kind, 'none') as commitment_kind,
    case when covering_kind is not null then coalesce(commitment_discount_id, '') else '' end as commitment_id,
    is_eligible, reason,
    sum(list_cost_usd) as list_cost_usd,
    known_sum(effective_cost_usd) as effective_cost_usd,
    cast(sum(line_count) as bigint) as line_count,
    sum(case when is_eligible then coalesce(list_cost_usd, 0) else 0 end) as eligible_list_cost_usd,
    sum(case when covering_kind is not null then coalesce(list_cost_usd, 0) else 0 end) as covered_list_cost_usd,
    known_sum(case when covering_kind is not null then amortized_cost_usd else 0 end) as used_cost_usd,
    known_sum(case when is_eligible and covering_kind is null then effective_cost_usd else 0 end) as on_demand_cost_usd,
    sum(case when is_eligible then coalesce(instance_hours, 0) else 0 end) as eligible_hours,
    sum(case when covering_kind is not null then coalesce(instance_hours, 0) else 0 end) as covered_hours,
    cast(sum(case when is_eligible and is_unpriced then line_count else 0 end) as bigint) as unpriced_line_count
from use
group by all
