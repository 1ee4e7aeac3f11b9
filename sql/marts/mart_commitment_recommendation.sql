-- One row per payer × currency × offer of a commitment: how much of it history proves, and what it would have done.
select
    payer_account_id, billing_currency, commitment_kind, purchase_term, payment_option, region_id, instance_family,
    week_count, eligible_list_cost_usd, unrated_list_cost_usd, unrated_usage_types, rate_basis, best_commitment_per_hour_usd,
    commitment_per_hour_usd, simulated_coverage_ratio, simulated_utilization_ratio, simulated_savings_usd, worst_week_savings_usd,
    next_dollar_value_usd, upfront_cost_usd, tranche_per_hour_usd, expiring_per_hour_usd, next_expiry_at,
    back_test_commitment_per_hour_usd, back_test_savings_usd, back_test_best_savings_usd, back_test_regret_usd, advice, advice_reason
from fct_commitment_recommendation
