-- One row per delivered month × day × payer × currency × family × eligibility × commitment: usage that commitments cover or could cover.
-- partition: billing_period
select
    billing_period, usage_date, payer_account_id, billing_currency, accelerator_family, commitment_eligibility, covering_kind,
    commitment_discount_id,
    sum(list_cost_usd) as list_cost_usd,
    sum(amortised_cost_usd) as amortised_cost_usd
from fct_commitment_use_hourly
group by all
