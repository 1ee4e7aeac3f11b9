-- One row per stay of a run or a server, clipped to the month: an attempt, and what it held of billed machines and
-- storage, or had held before; clipped once more to the time before the month of which the month's bill has usage.
-- partition: billing_period
-- A run that ends today changes the months it ran in and the next, and no other month is built again.
with machine as (
    select
        stay.run_id, stay.attempt_no, stay.resource_id,
        stay.resource_id like 'any %' as is_any_machine, stay.joined_at,
        closed_at(stay.joined_at, stay.left_at, attempt.ended_at) as left_at,
        stay.instance_type, stay.account_id, stay.region_id,
        coalesce(stay.accelerators_used, listed.accelerator_count) as accelerators_used,
        coalesce(capacity_reservation_id(stay.reservation_id), stay.reservation_id) as capacity_reservation_id,
        stay.evidence
    from tracker_resource as stay
    left join stg_tracker__attempt as attempt
        on attempt.run_id = stay.run_id and attempt.attempt_no = stay.attempt_no
    left join ref_instance_type as listed on listed.instance_type = replace(stay.instance_type, 'ml.', '')
    where storage_id(stay.resource_id) is null
),

-- An attempt with its machines: what lives on after it is kept and no longer used.
used as (
    select
        attempt.run_id, attempt.attempt_no, least(attempt.started_at, min(machine.joined_at)) as started_at,
        greatest(attempt.ended_at, max(machine.left_at)) as ended_at
    from stg_tracker__attempt as attempt
    left join machine on machine.run_id = attempt.run_id and machine.attempt_no = attempt.attempt_no
    group by attempt.run_id, attempt.attempt_no, attempt.started_at, attempt.ended_at
),

storage as (
    select
        storage.run_id, storage.attempt_no, storage_id(storage.resource_id) as storage_id,
        greatest(storage.joined_at, used.started_at) as joined_at,
        least(coalesce(storage.left_at, used.ended_at), used.ended_at) as left_at, storage.evidence
    from tracker_resource as storage
    join used on used.run_id = storage.run_id and used.attempt_no = storage.attempt_no
    where storage_id(storage.resource_id) is not null
),

-- A server in a pod of EKS is on the machine that AWS splits for it.
served as (
    select
        traffic.server_id, coalesce(pod.resource_id, traffic.resource_id) as resource_id, traffic.started_at,
        traffic.ended_at, traffic.instance_type, traffic.account_id, traffic.region_id,
        least(traffic.accelerators_used, pod.accelerator_count) as accelerators_used, traffic.evidence, traffic.bucket
    from stg_serving__traffic as traffic
    left join (
        select pod_id, max(resource_id) as resource_id, max(accelerator_count) as accelerator_count
        from stg_aws__pod_machine
        group by pod_id
    ) as pod on pod.pod_id = traffic.resource_id
    where traffic.server_id is not null and traffic.resource_id is not null
),

stay as (
    select 'attempt' as stay_kind, run_id, attempt_no, cast(null as varchar) as resource_id, started_at, ended_at,
        false as is_any_machine, cast(null as varchar) as instance_type, cast(null as varchar) as account_id,
        cast(null as varchar) as region_id, cast(null as bigint) as accelerators_used,
        cast(null as varchar) as capacity_reservation_id, cast(null as varchar) as evidence,
        cast(null as varchar) as server_id, 'run' as bucket
    from stg_tracker__attempt

    union all

    select 'machine', run_id, attempt_no, resource_id, joined_at, left_at, is_any_machine, instance_type, account_id,
        region_id, accelerators_used, capacity_reservation_id, evidence, null, 'run'
    from machine

    union all

    select 'machine', null, null, resource_id, started_at, ended_at, false, instance_type, account_id, region_id,
        accelerators_used, null, evidence, server_id, bucket
    from served

    union all

    select 'storage', run_id, attempt_no, storage_id, joined_at, left_at, false, null, null, null, null, null, evidence,
        null, 'run'
    from storage
    where left_at > joined_at

    union all

    -- For a month after a run left it a machine may still be up, held by no other run.
    select 'earlier', run_id, attempt_no, resource_id, min(left_at), max(left_at) + interval 31 day, false, null, null,
        null, null, null, max(evidence), null, 'run'
    from machine
    group by run_id, attempt_no, resource_id

    union all

    select 'earlier', null, null, resource_id, max(ended_at), max(ended_at) + interval 31 day, false, null, null, null,
        null, null, max(evidence), server_id, 'idle' from served group by resource_id, server_id

    union all

    select 'earlier', run_id, attempt_no, null, ended_at, ended_at + interval 31 day, false, null, null, null, null,
        null, null, null, 'run'
    from stg_tracker__attempt
)

select
    span.billing_period, stay.stay_kind, stay.run_id, stay.attempt_no, stay.resource_id,
    unix_ms(greatest(stay.started_at, span.started_at)) as started_ms,
    unix_ms(least(stay.ended_at, span.ended_at)) as ended_ms,
    stay.is_any_machine, stay.instance_type, stay.account_id, stay.region_id, stay.accelerators_used,
    stay.capacity_reservation_id, stay.evidence, stay.server_id, stay.bucket,
    -- A tag in another spelling names the run if no other run has one.
    min(stay.run_id) over (partition by folded(stay.run_id)) = max(stay.run_id) over (partition by folded(stay.run_id))
        as has_one_spelling,
    team_name(run.team, policy.team_spelling) as team, run.owner
from stay
cross join stg_aws__usage_span as span
cross join policy
left join tracker_run as run on run.run_id = stay.run_id
where stay.ended_at > span.started_at
    and case when stay.stay_kind = 'earlier' then stay.started_at <= span.started_at and not span.is_late
        else stay.started_at < span.ended_at end
