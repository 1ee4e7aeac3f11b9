-- One row per run, attempt and resource whose claim begins before the resource's billed time or ends after it: the clocks differ.
-- partition: billing_period
-- The claim is clamped to what is billed (fct_resource_share_hourly); this says by how much. One that meets no billed time at all is
-- in fct_claim_gap_monthly alone, and a job is billed for its runs' time as AWS counts it.
with met as (
    select
        claim.billing_period, claim.run_id, claim.attempt_no, claim.resource_id, claim.evidence, claim.started_ms, claim.ended_ms,
        min(hour.window_started_ms) as billed_from_ms, max(hour.window_ended_ms) as billed_until_ms
    from fct_resource_claim_monthly as claim
    join fct_resource_hourly as hour
        on hour.resource_id = claim.resource_id
        and hour.window_started_ms < claim.ended_ms
        and hour.window_ended_ms > claim.started_ms
    where not hour.is_job and claim.evidence not in ('tag', 'type_match')
    group by claim.billing_period, claim.run_id, claim.attempt_no, claim.resource_id, claim.evidence,
        claim.started_ms, claim.ended_ms
),

outside as (
    select billing_period, run_id, attempt_no, resource_id, evidence, 'before_first_billed_second' as offset_direction,
        billed_from_ms - started_ms as offset_ms
    from met
    where billed_from_ms > started_ms

    union all

    select billing_period, run_id, attempt_no, resource_id, evidence, 'after_last_billed_second',
        ended_ms - billed_until_ms
    from met
    where ended_ms > billed_until_ms
)

select
    billing_period, run_id, attempt_no, resource_id, offset_direction, max(evidence) as evidence,
    cast(max(offset_ms) as double) / 1000 as offset_seconds,
    cast(count(*) as bigint) as clamped_stay_count
from outside
group by billing_period, run_id, attempt_no, resource_id, offset_direction
