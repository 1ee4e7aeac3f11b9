-- One row per pre-registration of a comparison, superseded ones kept.
select
    told.registration, told.source_file, told.workload_id, told.registered_on,
    told.target_metric, told.target_direction, told.target_value, told.quality_margin, told.planned_run_count, told.cost_basis,
    told.supersedes,
    later.registration is null as is_in_force,
    told.seal as registration_seal
from proof_registration as told
left join proof_registration as later on later.supersedes = told.registration
