-- One row per stay of a run on what storage and network are billed by: a volume, a file system, an instance; clipped to the month.
-- partition: billing_period
select
    month.billing_period, stay.run_id, stay.attempt_no, stay.storage_id as attached_id,
    unix_ms(greatest(stay.joined_at, month.started_at)) as started_ms,
    unix_ms(least(stay.left_at, month.ended_at)) as ended_ms,
    stay.evidence
from stg_tracker__storage as stay
cross join this_month as month
where stay.joined_at < month.ended_at and stay.left_at > month.started_at

union all

-- Bytes are the instance's; whose they were, the stays on it say.
select billing_period, run_id, attempt_no, resource_id, started_ms, ended_ms, evidence
from fct_run_resource_monthly
where resource_id like 'i-%' and ended_ms > started_ms
