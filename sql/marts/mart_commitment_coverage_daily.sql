-- One row per day × payer × currency × kind of commitment × accelerator family: how much of what it can cover it
-- covered, at list price.
-- partition: billing_period
-- Kinds overlap: what is on demand is eligible for each kind that could cover it. Families do not:
-- all_families_coverage_ratio sums them.
with day as (
    select
        billing_period, usage_date, payer_account_id, billing_currency, commitment_kind, accelerator_family,
        sum(eligible_list_cost_usd) as eligible_list_cost_usd,
        sum(covered_list_cost_usd) as covered_list_cost_usd,
        coverage_ratio(covered_list_cost_usd, eligible_list_cost_usd, unpriced_line_count) as coverage_ratio,
        sum(other_covered_list_cost_usd) as other_covered_list_cost_usd,
        known_sum(on_demand_cost_usd) as on_demand_cost_usd,
        sum(eligible_hours) as eligible_hours,
        sum(covered_hours) as covered_hours,
        sum(other_covered_hours) as other_covered_hours,
        sum(eligible_normalized_units) as eligible_normalized_units,
        sum(covered_normalized_units) as covered_normalized_units,
        cast(sum(unpriced_line_count) as bigint) as unpriced_line_count
    from detail_commitment_coverage_hourly
    group by billing_period, usage_date, payer_account_id, billing_currency, commitment_kind, accelerator_family
),

together as (
    select
        billing_period, usage_date, payer_account_id, billing_currency, commitment_kind,
        coverage_ratio(covered_list_cost_usd, eligible_list_cost_usd, unpriced_line_count) as all_families_coverage_ratio
    from day
    group by billing_period, usage_date, payer_account_id, billing_currency, commitment_kind
)

select
    day.billing_period, day.usage_date, day.payer_account_id, day.billing_currency, day.commitment_kind,
    day.accelerator_family, day.eligible_list_cost_usd, day.covered_list_cost_usd, day.coverage_ratio,
    together.all_families_coverage_ratio,
    day.other_covered_list_cost_usd,
    case when day.unpriced_line_count = 0
        then ratio(day.covered_list_cost_usd, day.eligible_list_cost_usd + day.other_covered_list_cost_usd) end
        as coverage_with_other_kinds_ratio,
    day.on_demand_cost_usd, day.eligible_hours, day.covered_hours, day.other_covered_hours,
    ratio(day.covered_hours, day.eligible_hours) as hours_coverage_ratio,
    ratio(day.covered_hours, day.eligible_hours + day.other_covered_hours) as hours_coverage_with_other_kinds_ratio,
    day.eligible_normalized_units, day.covered_normalized_units,
    ratio(day.covered_normalized_units, day.eligible_normalized_units) as normalized_coverage_ratio,
    day.unpriced_line_count
from day
join together using (billing_period, usage_date, payer_account_id, billing_currency, commitment_kind)
