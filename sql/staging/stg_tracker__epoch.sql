-- One row per epoch completed in an attempt.
select
    run_id, attempt_no, epoch_index, started_at, completed_at, step, tokens_seen, samples_seen,
    coalesce(fraction, 1.0) as fraction, source_name
from tracker_epoch
where completed_at is not null
