-- One row per phase of an attempt; an open phase ends where the next one starts, or with its attempt.
with phase as (
    select *, lead(started_at) over (partition by run_id, attempt_no order by started_at, phase) as next_started_at
    from tracker_phase
)

select
    phase.run_id,
    phase.attempt_no,
    phase.phase,
    phase.started_at,
    greatest(phase.started_at, coalesce(phase.ended_at, phase.next_started_at, attempt.ended_at, phase.started_at))
        as ended_at,
    phase.ended_at is null as is_end_inferred
from phase
left join stg_tracker__attempt as attempt using (run_id, attempt_no)
