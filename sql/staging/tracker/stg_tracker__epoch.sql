-- One row per epoch completed in an attempt; its tokens and samples are those of the whole job.
select
    epoch.run_id, epoch.attempt_no, epoch.epoch_index, epoch.started_at, epoch.completed_at, epoch.step,
    job_tokens(epoch.tokens_seen, run.tokens_unit, run.tokens_unit_count) as tokens_seen,
    job_tokens(epoch.samples_seen, run.tokens_unit, run.tokens_unit_count) as samples_seen,
    coalesce(epoch.fraction, 1.0) as fraction
from tracker_epoch as epoch
left join tracker_run as run on run.run_id = epoch.run_id
where epoch.completed_at is not null
