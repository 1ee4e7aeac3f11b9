-- One row per day × payer × account × region × currency × family × reason: what usage commitments may cover or not, and why.
select
    usage_date, payer_account_id, account_id, region_id, billing_currency, accelerator_family, commitment_eligibility, is_eligible,
    reason,
    sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    cast(sum(line_count) as bigint) as line_count
from fct_commitment_eligibility_daily
group by all
