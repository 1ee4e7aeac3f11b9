-- One row per resource, hour and stay of a run or a server on it: what it claims of the hour.
-- partition: billing_period
-- Units are accelerator-milliseconds (milliseconds where there is no accelerator).
with stay as (
    select
        hour.billing_period, hour.resource_id, hour.hour_ms, hour.billed_units, hour.capacity_count, hour.accelerator_family, hour.is_job,
        claim.run_id, claim.attempt_no, claim.server_id, claim.bucket, claim.evidence,
        greatest(claim.started_ms, hour.window_started_ms) as started_ms,
        least(claim.ended_ms, hour.window_ended_ms) as ended_ms,
        -- A job or a cluster bills several machines' hours in one; ten seconds are rounding.
        hour.capacity_count * greatest((hour.billed_ms + 3590000) // 3600000, 1) as whole_count,
        case when hour.accelerator_family <> 'unknown' then claim.accelerators_used end as recorded_count
    from fct_resource_hourly as hour
    join fct_resource_claim_monthly as claim
        on claim.is_claim
        and claim.resource_id = hour.resource_id
        and claim.started_ms < hour.window_ended_ms
        and claim.ended_ms > hour.window_started_ms
),

-- is_recorded is a key of the join below: with keys alone it is a hash join, which does not compare all pairs of stays.
recorded as (
    select resource_id, hour_ms, started_ms, ended_ms, not is_estimated(evidence) as is_recorded
    from stay
    where not is_estimated(evidence)
)

-- A run's own record beats a tag or a guess for the same time: a node keeps its tag when it is used again.
-- A run's stays lie side by side, so that one stay recorded as two touching ones is cut at the same places.
select
    stay.billing_period, stay.resource_id, stay.hour_ms,
    row_number() over (partition by stay.resource_id, stay.hour_ms order by coalesce(stay.run_id, stay.server_id),
        stay.run_id is null, stay.attempt_no, stay.started_ms, stay.ended_ms) as share_no,
    stay.bucket, stay.run_id, stay.attempt_no, stay.server_id, stay.evidence, stay.started_ms, stay.ended_ms,
    coalesce(stay.recorded_count, stay.whole_count) as used_count, stay.whole_count, stay.capacity_count,
    stay.accelerator_family, stay.is_job, stay.billed_units,
    (stay.ended_ms - stay.started_ms) * coalesce(stay.recorded_count, stay.whole_count) as claimed_units
from stay
anti join recorded as better
    on better.is_recorded = is_estimated(stay.evidence)
    and better.resource_id = stay.resource_id
    and better.hour_ms = stay.hour_ms
    and better.started_ms < stay.ended_ms
    and better.ended_ms > stay.started_ms
