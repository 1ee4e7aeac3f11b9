-- One row per training run as recorded, its open ends closed by its attempts and marked so.
with attempt as (
    select
        run_id, count(*) as attempt_count, min(started_at) as first_started_at, max(ended_at) as last_ended_at,
        max_by(end_reason, attempt_no) as last_end_reason, max_by(is_running, attempt_no) as is_running
    from stg_tracker__attempt
    group by run_id
)

select
    run.run_id,
    run.model, run.dataset, run.dataset_tokens, run.seq_len, run.global_batch_samples,
    run.precision, run.code_revision,
    -- What an epoch and a token are is stored with every figure of them; the default is the common meaning.
    coalesce(run.epoch_unit, 'dataset_pass') as epoch_unit, run.epoch_unit_size,
    coalesce(run.tokens_unit, 'job') as tokens_unit, run.tokens_unit_count,
    coalesce(run.params_active, run.params_total) as params_active, run.n_layers, run.n_heads, run.head_dim,
    run.target_metric, run.target_value, run.target_direction, run.target_passes,
    coalesce(run.purpose, 'unknown') as purpose,
    run.team, run.owner, run.parent_run_id, run.base_checkpoint_id, run.compile_run_id,
    run.workload_id as declared_workload_id,
    case when attempt.is_running then 'running' when run.status = 'unrecognized' then 'unknown'
        else coalesce(run.status, case when attempt.last_end_reason = 'completed' then 'completed' else 'unknown' end) end as status,
    coalesce(run.started_at, attempt.first_started_at, run.last_seen_at) as started_at,
    coalesce(run.ended_at, attempt.last_ended_at, run.last_seen_at) as ended_at,
    run.ended_at is null as is_end_inferred,
    coalesce(attempt.attempt_count, 0) as attempt_count,
    run.source_name, run.source_system
from tracker_run as run
left join attempt on attempt.run_id = run.run_id
