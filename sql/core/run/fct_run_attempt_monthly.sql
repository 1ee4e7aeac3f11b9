-- One row per attempt of a run, clipped to the month.
-- partition: billing_period
select
    month.billing_period,
    attempt.run_id,
    attempt.attempt_no,
    unix_ms(greatest(attempt.started_at, month.started_at)) as started_ms,
    unix_ms(least(attempt.ended_at, month.ended_at)) as ended_ms
from stg_tracker__attempt as attempt
cross join this_month as month
where attempt.started_at < month.ended_at and attempt.ended_at > month.started_at
