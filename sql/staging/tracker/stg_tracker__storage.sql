-- One row per stay of a volume or a file system in an attempt: from when it was attached or mounted until it was let go.
with machine as (
    select resource.run_id, resource.attempt_no, min(resource.joined_at) as first_joined_at,
        max(greatest(resource.joined_at, coalesce(resource.left_at, attempt.ended_at, resource.joined_at))) as last_left_at
    from tracker_resource as resource
    left join stg_tracker__attempt as attempt on attempt.run_id = resource.run_id and attempt.attempt_no = resource.attempt_no
    where storage_id(resource.resource_id) is null
    group by resource.run_id, resource.attempt_no
),

-- What lives on after its attempt is kept and no longer used.
attempt as (
    select
        attempt.run_id, attempt.attempt_no,
        least(attempt.started_at, coalesce(machine.first_joined_at, attempt.started_at)) as started_at,
        greatest(attempt.ended_at, coalesce(machine.last_left_at, attempt.ended_at)) as ended_at
    from stg_tracker__attempt as attempt
    left join machine on machine.run_id = attempt.run_id and machine.attempt_no = attempt.attempt_no
),

stay as (
    select
        storage.run_id, storage.attempt_no, storage_id(storage.resource_id) as storage_id,
        greatest(storage.joined_at, attempt.started_at) as joined_at,
        least(coalesce(storage.left_at, attempt.ended_at), attempt.ended_at) as left_at,
        storage.left_at is null as is_left_inferred,
        storage.evidence, storage.source_name
    from tracker_resource as storage
    join attempt on attempt.run_id = storage.run_id and attempt.attempt_no = storage.attempt_no
    where storage_id(storage.resource_id) is not null
)

select run_id, attempt_no, storage_id, joined_at, left_at, is_left_inferred, evidence, source_name
from stay
where left_at > joined_at
