-- One row per pre-registration of a comparison and run that it lists or pairs with another, or that an exclusion citing
-- it leaves out; one without a run where there is none. Superseded ones are kept. The newest of a workload is in force:
-- what reads them refuses two of which the later does not supersede the other, at once or through others.
select
    made.registration, made.source_file, made.workload_id, made.registered_on,
    made.target_metric, made.target_direction, made.target_value, made.quality_margin, made.planned_run_count,
    made.cost_basis,
    made.evaluation_split, made.failure_rate_from as failure_rate_from_date, made.supersedes,
    made.registered_on = max(made.registered_on) over (partition by made.workload_id) as is_in_force,
    made.seal as registration_seal,
    named.run_id, named.pair_no, named.accelerator_family, coalesce(named.is_listed, false) as is_listed,
    made.published_types, named.reason as exclusion_reason, named.excluded_on,
    named.published_types as exclusion_published_types
from proof_registration as made
left join proof_run as named on named.registration = made.registration
