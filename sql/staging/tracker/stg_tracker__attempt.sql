-- One row per attempt of a run; an unrecorded end is inferred, and marked so: from its last record, or while its instances stay on
-- the bill, from that. Its tokens are those of the whole job.
with attempt as (
    select
        attempt.*, job_tokens(attempt.tokens_seen, run.tokens_unit, run.tokens_unit_count) as job_tokens_seen,
        -- The end of a run ends its last attempt; an abandoned run ended before its status was recorded.
        case when run.status not in ('abandoned', 'unknown', 'running') then run.ended_at end as run_ended_at,
        run.ended_at is null and coalesce(run.status, 'unknown') in ('running', 'unknown') as is_open_run,
        lead(attempt.started_at) over (partition by attempt.run_id order by attempt.attempt_no, attempt.started_at)
            as next_started_at
    from tracker_attempt as attempt
    left join tracker_run as run on run.run_id = attempt.run_id
),

open_stay as (
    select attempt.run_id, attempt.attempt_no, attempt.last_seen_at, resource.resource_id, resource.accelerators_used
    from attempt
    join tracker_resource as resource on resource.run_id = attempt.run_id and resource.attempt_no = attempt.attempt_no
    where attempt.is_open_run and attempt.ended_at is null and attempt.end_reason is null and attempt.next_started_at is null
        and resource.left_at is null
),

billed as (
    select
        *, max(ended_at) over (partition by payer_account_id) as bill_ended_at,
        -- A stretch may continue in the next month.
        coalesce(lead(started_at) over (partition by payer_account_id, resource_id order by started_at) > ended_at, true) as is_end
    from stg_aws__billed_stretch
),

-- Until an instance that was up at the last record is switched off, or a job ends.
still_up as (
    select
        stay.run_id, stay.attempt_no, stay.resource_id, min(billed.ended_at) filter (where billed.is_end) as ended_at,
        min(billed.ended_at) filter (where billed.is_end) > max(billed.bill_ended_at) - interval 1 hour as is_up
    from open_stay as stay
    join billed on coalesce(job_name(billed.resource_id), billed.resource_id) = coalesce(job_name(stay.resource_id), stay.resource_id)
        and (billed.resource_id = stay.resource_id or job_name(stay.resource_id) is null)
        -- Records may be newer than the bill.
        and billed.ended_at > least(stay.last_seen_at, billed.bill_ended_at - interval 1 hour)
    group by stay.run_id, stay.attempt_no, stay.resource_id
    having min(billed.started_at) <= max(stay.last_seen_at)
),

-- Another run on the instance shows that this one is over, unless both are open and share it, each with accelerators
-- of its own.
taken as (
    select stay.run_id, stay.attempt_no, min(greatest(stay.last_seen_at, other.joined_at)) as taken_at
    from open_stay as stay
    join tracker_resource as other on other.resource_id = stay.resource_id and other.run_id <> stay.run_id
    left join open_stay as shared on shared.run_id = other.run_id and shared.accelerators_used is not null
        and shared.resource_id = case when stay.accelerators_used is not null and other.joined_at <= stay.last_seen_at
            then other.resource_id end
    left join tracker_attempt as holder on holder.run_id = other.run_id and holder.attempt_no = other.attempt_no
    where greatest(other.joined_at, coalesce(other.left_at, holder.ended_at, holder.last_seen_at, other.joined_at)) > stay.last_seen_at
        and shared.run_id is null
    group by stay.run_id, stay.attempt_no
),

held as (
    select
        still_up.run_id, still_up.attempt_no,
        least(max(still_up.ended_at), coalesce(min(taken.taken_at), max(still_up.ended_at))) as ended_at,
        max(case when still_up.is_up then 1 else 0 end) = 1 and min(taken.taken_at) is null as is_running
    from still_up
    left join taken on taken.run_id = still_up.run_id and taken.attempt_no = still_up.attempt_no
    group by still_up.run_id, still_up.attempt_no
)

select
    attempt.run_id,
    attempt.attempt_no,
    attempt.started_at,
    coalesce(attempt.ended_at, greatest(attempt.started_at, case
        when attempt.next_started_at is not null then least(attempt.last_seen_at, attempt.next_started_at)
        else greatest(attempt.last_seen_at, coalesce(attempt.run_ended_at, held.ended_at, attempt.last_seen_at))
    end)) as ended_at,
    greatest(attempt.last_seen_at, coalesce(attempt.run_ended_at, attempt.last_seen_at)) as last_seen_at,
    attempt.ended_at is null as is_end_inferred,
    coalesce(held.is_running, false) as is_running,
    coalesce(attempt.end_reason, 'unknown') as end_reason,
    attempt.job_tokens_seen as tokens_seen
from attempt
left join held on held.run_id = attempt.run_id and held.attempt_no = attempt.attempt_no
