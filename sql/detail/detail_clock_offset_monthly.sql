-- One row per month, run, attempt, resource and direction in which a run's clock lies outside the time the bill has: claim clamped.
select clock.billing_period, clock.run_id, clock.attempt_no, clock.resource_id, clock.offset_direction, clock.evidence,
    run.team, run.owner, clock.offset_seconds, clock.clamped_stay_count
from fct_clock_offset_monthly as clock
left join dim_run as run on run.run_id = clock.run_id
