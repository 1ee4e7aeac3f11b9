-- One row per hour × payer × region × currency × family × commitment: usage that some kind may cover, and what covered it.
-- partition: billing_period
-- Unlike the coverage of one kind, rows add up: every line is in one of them, under `none` where nothing covered it.
select
    billing_period, usage_date, hour_started_at, payer_account_id, region_id, billing_currency, accelerator_family,
    coalesce(covering_kind, 'none') as commitment_kind,
    coalesce(commitment_discount_id, '') as commitment_id,
    sum(coalesce(list_cost_usd, 0)) as eligible_list_cost_usd,
    sum(case when covering_kind is not null then coalesce(list_cost_usd, 0) else 0 end) as covered_list_cost_usd,
    sum(case when covering_kind is not null then amortised_cost_usd else 0 end) as used_cost_usd,
    sum(case when covering_kind is null then effective_cost_usd else 0 end) as on_demand_cost_usd,
    sum(coalesce(instance_hours, 0)) as eligible_hours,
    sum(case when covering_kind is not null then coalesce(instance_hours, 0) else 0 end) as covered_hours,
    cast(sum(unpriced_line_count) as bigint) as unpriced_line_count
from fct_commitment_use_hourly
group by billing_period, usage_date, hour_started_at, payer_account_id, region_id, billing_currency, accelerator_family,
    coalesce(covering_kind, 'none'), coalesce(commitment_discount_id, '')
