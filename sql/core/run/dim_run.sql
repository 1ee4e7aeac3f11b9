-- One row per run as recorded: its workload, its times, and the epochs, checkpoints and tokens it completed.
-- A workload is what must be equal before two runs may be compared (design 5).
with stay as (
    select
        resource.run_id,
        case when count(distinct resource.region_id) = 1 then max(resource.region_id) end as region_id,
        min(resource.joined_at) as first_joined_at,
        max(resource.left_at) as last_left_at
    from stg_tracker__resource as resource
    group by resource.run_id
),

attempt as (
    select run_id, min(started_at) as first_started_at, max(ended_at) as last_ended_at,
        max(tokens_seen) as attempt_tokens_seen_count
    from stg_tracker__attempt
    group by run_id
),

-- An epoch repeated after a restart counts once, with the largest part of it that was completed.
epoch as (
    select run_id, epoch_index, cast(max(fraction) as decimal(20, 6)) as fraction, max(tokens_seen) as tokens_seen,
        max(samples_seen) as samples_seen
    from stg_tracker__epoch
    group by run_id, epoch_index
),

epochs as (
    select run_id, sum(fraction) as epoch_completed_count, max(tokens_seen) as epoch_tokens_seen_count,
        max(samples_seen) as epoch_samples_seen_count
    from epoch
    group by run_id
),

saved as (
    select run_id, max(tokens_seen) as checkpoint_tokens_seen_count,
        count(distinct checkpoint_id) filter (where is_resumable and is_complete) as checkpoint_durable_count
    from stg_tracker__checkpoint
    group by run_id
),

unmeasured as (
    select run_id, count(*) as evaluation_unmeasured_count
    from stg_tracker__evaluation
    where value is null
    group by run_id
),

compiled as (
    select distinct run_id from stg_tracker__phase where phase = 'compile'
),

progress as (
    select
        run.run_id, epochs.epoch_completed_count, epochs.epoch_tokens_seen_count, epochs.epoch_samples_seen_count,
        saved.checkpoint_durable_count,
        -- Epochs and checkpoints both record the tokens seen so far; heartbeats count where no epoch does.
        greatest(epochs.epoch_tokens_seen_count, saved.checkpoint_tokens_seen_count,
            case when epochs.epoch_tokens_seen_count is null then attempt.attempt_tokens_seen_count end) as tokens_seen_count,
        coalesce(unmeasured.evaluation_unmeasured_count, 0) as evaluation_unmeasured_count,
        saved.run_id is not null or source_records(run.source_system, 'checkpoint') as is_checkpoint_recorded,
        compiled.run_id is not null or run.purpose = 'compile_only' or source_records(run.source_system, 'compile')
            as is_compile_recorded
    from stg_tracker__run as run
    left join epochs on epochs.run_id = run.run_id
    left join saved on saved.run_id = run.run_id
    left join attempt on attempt.run_id = run.run_id
    left join unmeasured on unmeasured.run_id = run.run_id
    left join compiled on compiled.run_id = run.run_id
)

select
    run.run_id,
    coalesce(run.declared_workload_id, coalesce(run.model, '?') || ' / ' || coalesce(run.dataset, '?')
        || ' / seq ' || coalesce(cast(run.seq_len as varchar), '?')
        || ' / batch ' || coalesce(cast(run.global_batch_samples as varchar), '?')
        || ' / ' || coalesce(run.precision, 'any precision')
        || ' / ' || case when run.target_metric is null then 'no target' else run.target_metric
            || case when run.target_direction = 'max' then ' >= ' else ' <= ' end || cast(run.target_value as varchar)
            || coalesce(' ' || cast(run.target_passes as varchar) || ' times in a row', '') end)
        as workload_id,
    stay.region_id,
    run.model, run.dataset, run.dataset_tokens, run.seq_len, run.global_batch_samples, run.precision,
    run.code_revision, run.target_metric, run.target_value, run.target_direction, run.target_passes,
    run.purpose, team_name(run.team, policy.team_spelling) as team, run.owner, run.parent_run_id, run.compile_run_id,
    run.status, run.started_at, run.ended_at, run.is_end_inferred, run.attempt_count,
    -- A node may join before the recorded start of the run, and leave after its recorded end.
    least(run.started_at, coalesce(stay.first_joined_at, run.started_at),
        coalesce(attempt.first_started_at, run.started_at)) as first_seen_at,
    greatest(run.ended_at, coalesce(stay.last_left_at, run.ended_at),
        coalesce(attempt.last_ended_at, run.ended_at)) as last_seen_at,
    run.epoch_unit, run.epoch_unit_size, run.tokens_unit,
    -- Where a run records no epoch, its tokens are counted in epochs. A training that completed has some, recorded or not.
    coalesce(progress.epoch_completed_count, ratio(progress.tokens_seen_count, case run.epoch_unit
        when 'dataset_pass' then run.dataset_tokens when 'token_block' then run.epoch_unit_size end),
        case when source_records(run.source_system, 'epoch') and (run.status <> 'completed'
            or run.purpose in ('compile_only', 'eval_only', 'benchmark')) then 0 end) as epoch_completed_count,
    coalesce(progress.checkpoint_durable_count, case when progress.is_checkpoint_recorded then 0 end)
        as checkpoint_durable_count,
    progress.is_checkpoint_recorded, progress.is_compile_recorded,
    progress.tokens_seen_count, progress.epoch_tokens_seen_count, progress.epoch_samples_seen_count,
    progress.evaluation_unmeasured_count,
    run.source_name
from stg_tracker__run as run
cross join policy
join progress on progress.run_id = run.run_id
left join stay on stay.run_id = run.run_id
left join attempt on attempt.run_id = run.run_id
