-- One row per durable checkpoint of a run: the full cost of the time since the one before, and of its own stall.
select
    cost.run_id,
    cost.interval_key as checkpoint_id,
    cost.billing_currency,
    run.workload_id, run.accelerator_family, run.instance_type,
    checkpoint.attempt_no, checkpoint.step, checkpoint.durable_at, checkpoint.bytes as checkpoint_bytes,
    checkpoint.stall_seconds,
    cast(cost.duration_ms as double) / 1000 as duration_seconds,
    if_whole(cost.accelerator_hours, cost.is_partial) as accelerator_hours,
    if_whole(cost.list_cost_usd, cost.is_partial) as list_cost_usd,
    if_whole(cost.effective_cost_usd, cost.is_partial) as effective_cost_usd,
    if_whole(cost.billed_cost_usd, cost.is_partial) as billed_cost_usd,
    -- The stall at the average rate of its interval.
    usd_per(cast(if_whole(cost.effective_cost_usd, cost.is_partial) as double) * checkpoint.stall_seconds * 1000, cost.duration_ms) as stall_cost_usd,
    retention.retention_cost_usd,
    usd_per(cast(if_whole(cost.effective_cost_usd, cost.is_partial) as double) * checkpoint.stall_seconds * 1000, cost.duration_ms)
        + retention.retention_cost_usd as marginal_cost_usd
from fct_interval_cost as cost
join stg_tracker__checkpoint as checkpoint
    on checkpoint.run_id = cost.run_id and checkpoint.checkpoint_id = cost.interval_key
join fct_run as run on run.run_id = cost.run_id
left join fct_checkpoint_retention as retention
    on retention.run_id = cost.run_id and retention.checkpoint_id = cost.interval_key
    and retention.billing_currency = cost.billing_currency
where cost.interval_kind = 'checkpoint'
