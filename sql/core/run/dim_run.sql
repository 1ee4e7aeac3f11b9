-- One row per run, with the workload it belongs to and the hardware it says it used.
-- A workload is what must be equal before two runs may be compared (design 5).
with hardware as (
    select
        resource.run_id,
        case when count(distinct resource.accelerator_family) = 1 then max(resource.accelerator_family) else 'mixed' end
            as accelerator_family,
        case when count(distinct resource.instance_type) = 1 then max(resource.instance_type) else 'mixed' end
            as instance_type,
        count(distinct resource.resource_id) as resource_count,
        min(resource.joined_at) as first_joined_at,
        max(resource.left_at) as last_left_at
    from stg_tracker__resource as resource
    group by resource.run_id
),

attempt as (
    select run_id, min(started_at) as first_started_at, max(ended_at) as last_ended_at
    from stg_tracker__attempt
    group by run_id
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
    coalesce(hardware.accelerator_family, 'none') as accelerator_family,
    coalesce(hardware.instance_type, 'unknown') as instance_type,
    coalesce(hardware.resource_count, 0) as resource_count,
    run.model, run.dataset, run.dataset_tokens, run.seq_len, run.global_batch_samples, run.precision,
    run.code_revision, run.target_metric, run.target_value, run.target_direction, run.target_passes,
    run.purpose, run.experiment, run.team, run.owner, run.parent_run_id, run.compile_run_id,
    run.status, run.is_status_inferred, run.started_at, run.ended_at, run.is_end_inferred, run.attempt_count,
    -- A node may join before the run says it started, and leave after it says it ended.
    least(run.started_at, coalesce(hardware.first_joined_at, run.started_at),
        coalesce(attempt.first_started_at, run.started_at)) as first_seen_at,
    greatest(run.ended_at, coalesce(hardware.last_left_at, run.ended_at),
        coalesce(attempt.last_ended_at, run.ended_at)) as last_seen_at,
    run.source_name
from stg_tracker__run as run
left join hardware on hardware.run_id = run.run_id
left join attempt on attempt.run_id = run.run_id
