-- One row per stay of a run, clipped to the month: an attempt, and what it held of billed machines and storage, or had held before.
-- partition: billing_period
-- A run that ends today changes the months it ran in and the next, and no other month is built again.
with stay as (
    select 'attempt' as stay_kind, run_id, attempt_no, cast(null as varchar) as resource_id, started_at, ended_at,
        false as is_any_machine, cast(null as varchar) as instance_type, cast(null as varchar) as account_id,
        cast(null as varchar) as region_id, cast(null as bigint) as accelerators_used,
        cast(null as varchar) as capacity_reservation_id, cast(null as varchar) as evidence
    from stg_tracker__attempt

    union all

    select 'machine', run_id, attempt_no, resource_id, joined_at, left_at, is_any_machine, instance_type, account_id, region_id,
        accelerators_used, capacity_reservation_id, evidence
    from stg_tracker__resource

    union all

    select 'storage', run_id, attempt_no, storage_id, joined_at, left_at, false, null, null, null, null, null, evidence
    from stg_tracker__storage

    union all

    -- For a month after a run left it a machine may still be up, held by nobody else.
    select 'earlier', run_id, attempt_no, resource_id, left_at, left_at + interval 31 day, false, null, null, null, null, null, evidence
    from stg_tracker__resource

    union all

    select 'earlier', run_id, attempt_no, null, ended_at, ended_at + interval 31 day, false, null, null, null, null, null, null
    from stg_tracker__attempt
)

select
    month.billing_period, stay.stay_kind, stay.run_id, stay.attempt_no, stay.resource_id,
    unix_ms(greatest(stay.started_at, month.started_at)) as started_ms,
    unix_ms(least(stay.ended_at, month.ended_at)) as ended_ms,
    stay.is_any_machine, stay.instance_type, stay.account_id, stay.region_id, stay.accelerators_used, stay.capacity_reservation_id, stay.evidence,
    -- A tag in another spelling names the run if no other run has one.
    min(stay.run_id) over (partition by folded(stay.run_id)) = max(stay.run_id) over (partition by folded(stay.run_id))
        as has_one_spelling
from stay
cross join this_month as month
where stay.ended_at > month.started_at
    and case when stay.stay_kind = 'earlier' then stay.started_at <= month.started_at else stay.started_at < month.ended_at end
