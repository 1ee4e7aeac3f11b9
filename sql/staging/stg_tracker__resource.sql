-- One row per stay of a billed resource in an attempt; an open stay ends with its attempt.
select
    resource.run_id,
    resource.attempt_no,
    resource.resource_id,
    resource.joined_at,
    greatest(resource.joined_at, coalesce(resource.left_at, attempt.ended_at, resource.joined_at)) as left_at,
    resource.left_at is null as is_left_inferred,
    resource.instance_type,
    resource.account_id,
    resource.region_id,
    accelerator.accelerator_count,
    coalesce(resource.accelerators_used, accelerator.accelerator_count) as accelerators_used,
    resource.reservation_id as capacity_reservation_id,
    resource.evidence,
    resource.source_name
from tracker_resource as resource
left join stg_tracker__attempt as attempt
    on attempt.run_id = resource.run_id and attempt.attempt_no = resource.attempt_no
left join ref_instance_type as accelerator
    on accelerator.instance_type = replace(resource.instance_type, 'ml.', '')
