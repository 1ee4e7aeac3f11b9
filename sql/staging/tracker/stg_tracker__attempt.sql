-- One row per attempt of a run; an unrecorded end is inferred from its last record, and marked so. Its tokens are those
-- of the whole job.
with attempt as (
    select
        attempt.*, job_tokens(attempt.tokens_seen, run.tokens_unit, run.tokens_unit_count) as job_tokens_seen,
        -- The end of a run ends its last attempt; an abandoned run ended before its status was recorded.
        case when run.status in ('completed', 'failed', 'killed') then run.ended_at end as run_ended_at,
        lead(attempt.started_at) over (partition by attempt.run_id order by attempt.attempt_no, attempt.started_at)
            as next_started_at
    from tracker_attempt as attempt
    left join tracker_run as run on run.run_id = attempt.run_id
)

select
    run_id,
    attempt_no,
    run_id || '/' || cast(attempt_no as varchar) as attempt_id,
    started_at,
    coalesce(ended_at, greatest(started_at, case
        when next_started_at is not null then least(last_seen_at, next_started_at)
        else greatest(last_seen_at, coalesce(run_ended_at, last_seen_at))
    end)) as ended_at,
    ended_at is null as is_end_inferred,
    coalesce(end_reason, 'unknown') as end_reason,
    job_tokens_seen as tokens_seen,
    source_name
from attempt
