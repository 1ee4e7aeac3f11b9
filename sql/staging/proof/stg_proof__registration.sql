-- One row per pre-registration of a comparison, superseded ones kept.
select
    made.registration, made.source_file, made.workload_id, made.registered_on,
    made.target_metric, made.target_direction, made.target_value, made.quality_margin, made.planned_run_count, made.cost_basis,
    made.evaluation_split, made.failure_rate_from as failure_rate_from_date, made.supersedes,
    later.registration is null as is_in_force,
    made.seal as registration_seal
from proof_registration as made
left join proof_registration as later on later.supersedes = made.registration
