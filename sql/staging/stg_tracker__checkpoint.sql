-- One row per checkpoint that was saved.
select
    run_id, attempt_no, checkpoint_id, step, uri, save_started_at, durable_at, stall_seconds, bytes,
    coalesce(is_resumable, true) as is_resumable,
    coalesce(is_complete, true) as is_complete,
    tokens_seen, source_name
from tracker_checkpoint
where durable_at is not null
