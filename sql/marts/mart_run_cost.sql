-- One row per run: what it really cost, and what one epoch, checkpoint and million tokens of it cost.
with kept as (
    select run_id, billing_currency, known_sum(retention_cost_usd) as retention_cost_usd
    from fct_checkpoint_retention
    group by run_id, billing_currency
),

-- Hours on Spot; list cost only where AWS gives a public price (facts aws-billing 3.4).
spot as (
    select
        run_id, billing_currency,
        sum(effective_cost_usd) as spot_cost_usd,
        sum(case when list_cost_usd is not null then effective_cost_usd else 0 end) as spot_priced_cost_usd,
        sum(list_cost_usd) as spot_list_cost_usd
    from fct_ledger_piece
    where piece_kind = 'instance_hour' and market = 'spot' and run_id is not null
    group by run_id, billing_currency
),

interrupted as (
    select run_id, cast(count(*) as bigint) as spot_interruption_count
    from stg_tracker__attempt
    where end_reason like '%spot%'
    group by run_id
),

run as (
    select
        run.*, kept.retention_cost_usd, spot.spot_cost_usd, spot.spot_list_cost_usd,
        spot.spot_cost_usd - spot.spot_priced_cost_usd as spot_unpriced_cost_usd,
        spot.spot_list_cost_usd - spot.spot_priced_cost_usd as spot_savings_usd,
        case when spot.run_id is not null then coalesce(interrupted.spot_interruption_count, 0) end as spot_interruption_count,
        -- A run without a Spot interruption lost nothing to one.
        case when spot.run_id is null then null
            when interrupted.run_id is null then 0
            else run.lost_work_cost_usd + run.replay_cost_usd + run.restart_cost_usd end as spot_interruption_cost_usd,
        -- Epochs and tokens that several runs of one job count, nodes at once or on from the run before, are no single run's.
        job.job_run_count > 1
            and coalesce(sum(run.epoch_completed_count) over of_job > job.job_epoch_count, true) as shares_epochs,
        job.job_run_count > 1
            and coalesce(sum(run.tokens_seen_count) over of_job > job.job_million_token_count * 1000001, true) as shares_tokens
    from fct_run as run
    left join detail_run_job as job on job.run_id = run.run_id
    left join spot on spot.run_id = run.run_id and spot.billing_currency = run.billing_currency
    left join interrupted on interrupted.run_id = run.run_id
    left join kept on kept.run_id = run.run_id and kept.billing_currency = run.billing_currency
    window of_job as (partition by job.job_id)
)

select
    run_id, workload_id, billing_currency, accelerator_family, instance_type, resource_count, attempt_count, status, purpose, team, owner, model,
    started_at, ended_at, is_end_inferred, is_billed,
    accelerator_hours, epoch_completed_count, epoch_unit, epoch_unit_size, checkpoint_durable_count, tokens_seen_count, tokens_unit,
    list_cost_usd, effective_cost_usd, billed_cost_usd, estimated_cost_usd, unbilled_hours, unbilled_cost_usd,
    cost_per_epoch_usd(if_whole(effective_cost_usd, shares_epochs)) as cost_per_epoch_usd,
    cost_per_epoch_usd(if_whole(list_cost_usd, shares_epochs)) as list_cost_per_epoch_usd,
    cost_per_epoch_usd(if_whole(billed_cost_usd, shares_epochs)) as billed_cost_per_epoch_usd,
    cost_per_checkpoint_usd(effective_cost_usd) as cost_per_checkpoint_usd,
    cost_per_checkpoint_usd(list_cost_usd) as list_cost_per_checkpoint_usd,
    cost_per_checkpoint_usd(billed_cost_usd) as billed_cost_per_checkpoint_usd,
    cost_per_million_tokens_usd(if_whole(effective_cost_usd, shares_tokens)) as cost_per_million_tokens_usd,
    cost_per_million_tokens_usd(if_whole(list_cost_usd, shares_tokens)) as list_cost_per_million_tokens_usd,
    cost_per_million_tokens_usd(if_whole(billed_cost_usd, shares_tokens)) as billed_cost_per_million_tokens_usd,
    cost_to_target_usd, list_cost_to_target_usd, billed_cost_to_target_usd,
    cost_to_held_target_usd, list_cost_to_held_target_usd, billed_cost_to_held_target_usd,
    wasted_cost_usd, lost_work_cost_usd, replay_cost_usd, restart_cost_usd, compile_cost_usd, failed_run_cost_usd, idle_hold_cost_usd,
    ratio(wasted_cost_usd, if_whole(effective_cost_usd, unbilled_hours > 0)) as wasted_ratio,
    compile_shared_usd, effective_cost_usd + compile_shared_usd as compile_amortized_cost_usd,
    retention_cost_usd,
    spot_cost_usd, spot_unpriced_cost_usd, spot_list_cost_usd, spot_savings_usd, spot_interruption_count,
    spot_interruption_cost_usd, spot_savings_usd - spot_interruption_cost_usd as net_spot_savings_usd,
    lineage_cost_usd, is_lineage_complete, trial_count, sweep_cost_usd,
    goodput_ratio(productive_node_ms, billed_node_ms) as goodput_ratio
from run
group by all
