-- One row per delivered month × day × payer × currency × kind of commitment × accelerator family: what it covered of what it can cover.
-- partition: billing_period
select
    billing_period, usage_date, payer_account_id, billing_currency, commitment_kind, accelerator_family,
    sum(eligible_list_cost_usd) as eligible_list_cost_usd,
    sum(covered_list_cost_usd) as covered_list_cost_usd,
    sum(other_covered_list_cost_usd) as other_covered_list_cost_usd,
    sum(on_demand_cost_usd) as on_demand_cost_usd,
    sum(eligible_hours) as eligible_hours,
    sum(covered_hours) as covered_hours,
    sum(other_covered_hours) as other_covered_hours,
    sum(eligible_normalized_units) as eligible_normalized_units,
    sum(covered_normalized_units) as covered_normalized_units,
    cast(sum(unpriced_line_count) as bigint) as unpriced_line_count
from fct_commitment_coverage_hourly
group by billing_period, usage_date, payer_account_id, billing_currency, commitment_kind, accelerator_family
