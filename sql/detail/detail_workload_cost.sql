-- One row per workload, currency and instance type: what its billed runs cost together, and per unit of work.
-- Ratios of sums over every billed run, failed ones included; unknown where a run does not report a part of it.
-- A run that never reached its target counts with its whole cost and is shown as censored: its cost to the target is unknown.
-- A job of several run ids counts its target, epochs and tokens up to its last success once, all of them if it failed; unknown while one runs.
with run as (
    select run.* exclude (epoch_completed_count, tokens_seen_count),
        case when coalesce(job.job_run_count, 1) = 1 or run.epoch_unit <> 'dataset_pass' then run.epoch_completed_count
            when bool_or(run.status = 'running') over (partition by job.job_id) then null
            when job.is_last_run then job.job_epoch_count else 0 end as epoch_completed_count,
        case when coalesce(job.job_run_count, 1) = 1 then run.tokens_seen_count
            when bool_or(run.status = 'running') over (partition by job.job_id) then null
            when job.is_last_run then job.job_million_token_count * 1000000 else 0 end as tokens_seen_count,
        target_duration_ms is not null and row_number() over (
        partition by coalesce(job.job_id, run.run_id) order by target_duration_ms nulls last, run.run_id) = 1 as is_success
    from fct_run as run
    left join detail_run_job as job on job.run_id = run.run_id
),

machine as (
    select
        workload_id, billing_currency, accelerator_family, instance_type,
        max(model) as model,
        count(*) as run_count,
        count(*) filter (where status = 'completed') as completed_run_count,
        min(cast(started_at as date)) as first_date,
        max(cast(ended_at as date)) as last_date,
        known_sum(epoch_completed_count) as epoch_completed_count,
        known_sum(checkpoint_durable_count) as checkpoint_durable_count,
        known_sum(tokens_seen_count) as tokens_seen_count,
        known_sum(accelerator_hours) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd,
        known_sum(effective_cost_usd) as effective_cost_usd,
        known_sum(billed_cost_usd) as billed_cost_usd,
        sum(unbilled_hours) as unbilled_hours,
        unbilled_usd(unbilled_hours, unbilled_cost_usd) as unbilled_cost_usd,
        cost_per_epoch_usd(effective_cost_usd) as cost_per_epoch_usd,
        cost_per_epoch_usd(list_cost_usd) as list_cost_per_epoch_usd,
        cost_per_epoch_usd(billed_cost_usd) as billed_cost_per_epoch_usd,
        cost_per_checkpoint_usd(effective_cost_usd) as cost_per_checkpoint_usd,
        cost_per_checkpoint_usd(list_cost_usd) as list_cost_per_checkpoint_usd,
        cost_per_checkpoint_usd(billed_cost_usd) as billed_cost_per_checkpoint_usd,
        case when count(tokens_seen_count) = count(*) then cost_per_million_tokens_usd(effective_cost_usd) end
            as cost_per_million_tokens_usd,
        case when count(tokens_seen_count) = count(*)
            then cost_per_million_tokens_usd(list_cost_usd) end as list_cost_per_million_tokens_usd,
        case when count(tokens_seen_count) = count(*) then cost_per_million_tokens_usd(billed_cost_usd) end
            as billed_cost_per_million_tokens_usd,
        count(*) filter (where status in ('failed', 'killed', 'abandoned')) as failed_run_count,
        count(*) filter (where is_success) as reached_run_count,
        count(*) filter (where target_metric is not null and target_duration_ms is null) as censored_run_count,
        known_sum(case when target_duration_ms is null then 0 else cost_to_target_usd end) as reached_cost_usd,
        known_sum(case when target_metric is not null and target_duration_ms is null
            then if_whole(effective_cost_usd, unbilled_hours > 0) else 0 end) as censored_cost_usd,
        cost_per_reached_target_usd(cost_to_target_usd, effective_cost_usd) as cost_per_reached_target_usd,
        cost_per_reached_target_usd(list_cost_to_target_usd, list_cost_usd) as list_cost_per_reached_target_usd,
        cost_per_reached_target_usd(billed_cost_to_target_usd, billed_cost_usd) as billed_cost_per_reached_target_usd,
        cost_per_reached_target_usd(cost_to_held_target_usd, effective_cost_usd) as cost_per_held_target_usd
    from run
    where is_billed and billing_currency is not null
    group by workload_id, billing_currency, accelerator_family, instance_type
)

select
    workload_id, billing_currency, accelerator_family, instance_type, model, run_count, completed_run_count,
    failed_run_count, first_date, last_date, epoch_completed_count, checkpoint_durable_count, tokens_seen_count, accelerator_hours,
    list_cost_usd, effective_cost_usd, billed_cost_usd, unbilled_hours, unbilled_cost_usd, cost_per_epoch_usd, list_cost_per_epoch_usd,
    billed_cost_per_epoch_usd, cost_per_checkpoint_usd, list_cost_per_checkpoint_usd,
    billed_cost_per_checkpoint_usd, cost_per_million_tokens_usd, list_cost_per_million_tokens_usd,
    billed_cost_per_million_tokens_usd, reached_run_count, censored_run_count, reached_cost_usd, censored_cost_usd,
    cost_per_reached_target_usd, list_cost_per_reached_target_usd, billed_cost_per_reached_target_usd, cost_per_held_target_usd,
    sum(run_count) over workload as workload_run_count,
    case when count(effective_cost_usd) over workload = count(*) over workload
        then sum(effective_cost_usd) over workload end as workload_effective_cost_usd
from machine
window workload as (partition by workload_id, billing_currency)
