-- One row per checkpoint that was saved; its tokens are those of the whole job.
select
    save.run_id, save.attempt_no, save.checkpoint_id, save.step, save.uri, save.save_started_at, save.durable_at,
    save.stall_seconds, save.bytes,
    coalesce(save.is_resumable, true) as is_resumable,
    coalesce(save.is_complete, true) as is_complete,
    job_tokens(save.tokens_seen, run.tokens_unit, run.tokens_unit_count) as tokens_seen
from tracker_checkpoint as save
left join tracker_run as run on run.run_id = save.run_id
where save.durable_at is not null
