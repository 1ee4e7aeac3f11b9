-- One row per day × payer × currency × commitment: what it cost, what used it, and what that saved.
select
    period_date as usage_date, payer_account_id, billing_currency, commitment_discount_id as commitment_id, commitment_kind, account_id, region_id,
    instance_family, payment_option, purchase_term, started_at, ended_at, commitment_cost_usd, used_cost_usd, unused_cost_usd,
    utilization_ratio, covered_hours, covered_list_cost_usd, net_savings_usd, break_even_utilization_ratio, effective_rate_ratio,
    lost_savings_reason, days_to_expiry, is_expired
from fct_commitment_utilization
where period_grain = 'day'
