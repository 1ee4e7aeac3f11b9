-- One row per month, run, attempt, resource and direction in which a run's clock lies outside the time the bill has: claim clamped.
-- partition: billing_period
-- The claim is clamped to what is billed (fct_resource_share_hourly); this shows by how much. One that meets no billed time at all is
-- in detail_claim_gap_monthly alone, and a job is billed for its runs' time as AWS counts it.
with met as (
    select
        claim.billing_period, claim.run_id, claim.attempt_no, claim.resource_id, claim.evidence, claim.started_ms, claim.ended_ms,
        min(hour.window_started_ms) as billed_from_ms, max(hour.window_ended_ms) as billed_until_ms
    from fct_resource_claim_monthly as claim
    join fct_resource_hourly as hour
        on hour.resource_id = claim.resource_id
        and hour.window_started_ms < claim.ended_ms
        and hour.window_ended_ms > claim.started_ms
    where not hour.is_job and claim.run_id is not null and not is_estimated(claim.evidence)
        and not is_before_month(claim.billing_period, claim.ended_ms)
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
),

-- Of the month alone: a run of today leaves the rows of other months as they are.
run as (
    select run_id, max(team) as team, max(owner) as owner from stg_tracker__stay_monthly group by run_id
)

select
    clock.billing_period, clock.run_id, clock.attempt_no, clock.resource_id, clock.offset_direction, max(clock.evidence) as evidence,
    run.team, run.owner, cast(max(clock.offset_ms) as double) / 1000 as offset_seconds,
    cast(count(*) as bigint) as clamped_stay_count
from outside as clock
left join run on run.run_id = clock.run_id
group by clock.billing_period, clock.run_id, clock.attempt_no, clock.resource_id, clock.offset_direction, run.team, run.owner
