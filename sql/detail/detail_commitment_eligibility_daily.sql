-- One row per day × payer × account × region × currency × family × reason: what usage commitments may cover or not, and why.
-- partition: billing_period
select
    charge.billing_period, charge.usage_date, charge.payer_account_id, charge.account_id, charge.region_id, charge.billing_currency,
    commitment_family(charge.accelerator_family) as accelerator_family, charge.commitment_eligibility,
    can_be_covered(charge.commitment_eligibility) as is_eligible,
    coalesce(rule.reason, '') as reason,
    sum(charge.list_cost_usd) as list_cost_usd,
    sum(charge.effective_cost_usd) as effective_cost_usd,
    cast(sum(charge.line_count) as bigint) as line_count
from fct_charge as charge
left join ref_commitment_eligibility as rule on rule.commitment_eligibility = charge.commitment_eligibility
where charge.commitment_eligibility is not null
group by all
