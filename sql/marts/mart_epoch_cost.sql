-- One row per completed epoch of a run: the cost of its retained working time alone, without start-up and lost work.
select
    cost.run_id,
    cast(cost.interval_key as bigint) as epoch_index,
    cost.billing_currency,
    run.workload_id, run.accelerator_family, run.instance_type,
    cast(cost.duration_ms as double) / 1000 as duration_seconds,
    if_whole(cost.accelerator_hours, cost.is_partial) as accelerator_hours,
    if_whole(cost.list_cost_usd, cost.is_partial) as list_cost_usd,
    if_whole(cost.effective_cost_usd, cost.is_partial) as effective_cost_usd,
    if_whole(cost.billed_cost_usd, cost.is_partial) as billed_cost_usd
from fct_interval_cost as cost
join fct_run as run on run.run_id = cost.run_id
where cost.interval_kind = 'epoch'
