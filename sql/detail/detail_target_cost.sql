-- One row per workload with a target, accelerator family and currency: what reaching it costs, failed runs and seeds included.
-- A run that never reached it counts with its whole cost and is shown as censored: its cost to the target is unknown.
select
    workload_id, accelerator_family, billing_currency,
    count(*) as run_count,
    count(cost_to_target_usd) as reached_run_count,
    count(*) - count(cost_to_target_usd) as censored_run_count,
    sum(case when status in ('failed', 'killed', 'abandoned') then 1 else 0 end) as failed_run_count,
    coalesce(sum(cost_to_target_usd), 0) as reached_cost_usd,
    coalesce(sum(effective_cost_usd) filter (where cost_to_target_usd is null), 0) as censored_cost_usd,
    cost_per_reached_target_usd(cost_to_target_usd, effective_cost_usd) as cost_per_reached_target_usd,
    cost_per_reached_target_usd(list_cost_to_target_usd, list_cost_usd) as list_cost_per_reached_target_usd,
    cost_per_reached_target_usd(billed_cost_to_target_usd, billed_cost_usd) as billed_cost_per_reached_target_usd,
    cost_per_reached_target_usd(cost_to_held_target_usd, effective_cost_usd) as cost_per_held_target_usd
from fct_run
where target_metric is not null and is_billed
group by workload_id, accelerator_family, billing_currency
