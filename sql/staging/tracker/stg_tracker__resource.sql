-- One row per stay of a billed resource in an attempt; an open stay ends with its attempt.
select
    resource.run_id,
    resource.attempt_no,
    resource.resource_id,
    -- A run without a machine id records its instance type: any such machine of its account matches.
    resource.resource_id like 'any %' as is_any_machine,
    resource.joined_at,
    closed_at(resource.joined_at, resource.left_at, attempt.ended_at) as left_at,
    resource.instance_type,
    resource.account_id,
    resource.region_id,
    family_of(accelerator.accelerator_family, replace(resource.instance_type, 'ml.', '')) as accelerator_family,
    accelerator.accelerator_count,
    coalesce(resource.accelerators_used, accelerator.accelerator_count) as accelerators_used,
    coalesce(capacity_reservation_id(resource.reservation_id), resource.reservation_id) as capacity_reservation_id,
    resource.evidence
from tracker_resource as resource
left join stg_tracker__attempt as attempt using (run_id, attempt_no)
left join ref_instance_type as accelerator
    on accelerator.instance_type = replace(resource.instance_type, 'ml.', '')
-- Volumes and file systems are in stg_tracker__stay_monthly.
where storage_id(resource.resource_id) is null
