-- One row per pre-registration of a comparison and run that it lists or pairs with another, or that an exclusion citing
-- it leaves out; one without a run where there is none. Superseded ones are kept. One that a registration of another
-- workload supersedes stays in force: it speaks for the runs of its own, which may yet come.
select
    made.registration, made.source_file, made.workload_id, made.registered_on,
    made.target_metric, made.target_direction, made.target_value, made.quality_margin, made.planned_run_count,
    made.cost_basis,
    made.evaluation_split, made.failure_rate_from as failure_rate_from_date, made.supersedes,
    later.registration is null as is_in_force,
    made.seal as registration_seal,
    named.run_id, named.pair_no, named.accelerator_family, coalesce(named.is_listed, false) as is_listed,
    made.published_types, named.reason as exclusion_reason, named.excluded_on,
    named.published_types as exclusion_published_types
from proof_registration as made
left join proof_registration as later on later.supersedes = made.registration and later.workload_id = made.workload_id
left join proof_run as named on named.registration = made.registration
