-- One row per attempt of a run; an end nobody recorded is the last thing seen of it, and marked so.
with attempt as (
    select *, lead(started_at) over (partition by run_id order by attempt_no, started_at) as next_started_at
    from tracker_attempt
)

select
    run_id,
    attempt_no,
    run_id || '/' || cast(attempt_no as varchar) as attempt_id,
    started_at,
    coalesce(ended_at, greatest(started_at, least(last_seen_at, coalesce(next_started_at, last_seen_at)))) as ended_at,
    ended_at is null as is_end_inferred,
    coalesce(end_reason, 'unknown') as end_reason,
    source_name
from attempt
