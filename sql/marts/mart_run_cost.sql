-- One row per run: what it really cost, and what one epoch, checkpoint and million tokens of it cost.
with kept as (
    select run_id, billing_currency, sum(retention_cost_usd) as retention_cost_usd
    from fct_checkpoint_retention
    group by run_id, billing_currency
),

run as (
    select run.*, kept.retention_cost_usd
    from fct_run as run
    left join kept on kept.run_id = run.run_id and kept.billing_currency = run.billing_currency
)

select
    run_id, workload_id, billing_currency, accelerator_family, instance_type, resource_count, attempt_count, status, purpose, team, owner, model,
    started_at, ended_at, is_end_inferred, is_billed,
    accelerator_hours, epoch_completed_count, epoch_unit, epoch_unit_size, checkpoint_durable_count, tokens_seen_count, tokens_unit,
    list_cost_usd, effective_cost_usd, billed_cost_usd, estimated_cost_usd,
    cost_per_epoch_usd(effective_cost_usd) as cost_per_epoch_usd,
    cost_per_epoch_usd(list_cost_usd) as list_cost_per_epoch_usd,
    cost_per_epoch_usd(billed_cost_usd) as billed_cost_per_epoch_usd,
    cost_per_checkpoint_usd(effective_cost_usd) as cost_per_checkpoint_usd,
    cost_per_checkpoint_usd(list_cost_usd) as list_cost_per_checkpoint_usd,
    cost_per_checkpoint_usd(billed_cost_usd) as billed_cost_per_checkpoint_usd,
    cost_per_million_tokens_usd(effective_cost_usd) as cost_per_million_tokens_usd,
    cost_per_million_tokens_usd(list_cost_usd) as list_cost_per_million_tokens_usd,
    cost_per_million_tokens_usd(billed_cost_usd) as billed_cost_per_million_tokens_usd,
    cost_to_target_usd, list_cost_to_target_usd, billed_cost_to_target_usd,
    cost_to_held_target_usd, list_cost_to_held_target_usd, billed_cost_to_held_target_usd,
    wasted_cost_usd, lost_work_cost_usd, replay_cost_usd, restart_cost_usd, compile_cost_usd, failed_run_cost_usd, idle_hold_cost_usd,
    ratio(wasted_cost_usd, effective_cost_usd) as wasted_ratio,
    compile_shared_usd, effective_cost_usd + compile_shared_usd as compile_amortized_cost_usd,
    retention_cost_usd,
    lineage_cost_usd, is_lineage_complete, trial_count, sweep_cost_usd,
    goodput_ratio(productive_node_ms, billed_node_ms) as goodput_ratio
from run
group by all
