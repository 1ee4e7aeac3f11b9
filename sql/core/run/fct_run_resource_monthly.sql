-- One row per stay of a run on a billed resource, clipped to the month.
-- partition: billing_period
select
    month.billing_period,
    stay.run_id,
    stay.attempt_no,
    stay.resource_id,
    unix_ms(greatest(stay.joined_at, month.started_at)) as started_ms,
    unix_ms(least(stay.left_at, month.ended_at)) as ended_ms,
    stay.accelerators_used,
    stay.capacity_reservation_id,
    stay.evidence
from stg_tracker__resource as stay
cross join this_month as month
where stay.joined_at < month.ended_at and stay.left_at > month.started_at
