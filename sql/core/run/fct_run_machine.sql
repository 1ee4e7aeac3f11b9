-- One row per machine of a run and type of it: the recorded type, or the billed one where the records leave it out.
-- A machine without accelerators that a tag alone names is a helper of those that have them, and not listed.
with billed as (
    select distinct run_id, resource_id, instance_type
    from fct_ledger_piece
    where bucket = 'run' and piece_kind = 'instance_hour' and evidence <> 'type_match'
),

-- A job is recorded by its ARN or by its name.
named as (
    select *, resource_id as recorded_id from billed
    union
    select *, job_name(resource_id) from billed
),

machine as (
    select stay.run_id, stay.resource_id, stay.is_any_machine,
        coalesce(stay.instance_type, named.instance_type, 'unknown') as instance_type, true as is_recorded
    from stg_tracker__resource as stay
    left join named on named.run_id = stay.run_id and named.recorded_id = stay.resource_id

    union

    select billed.run_id, billed.resource_id, false, billed.instance_type, false
    from billed
    anti join (select named.run_id, named.resource_id from named
        join stg_tracker__resource as stay on stay.run_id = named.run_id and stay.resource_id = named.recorded_id) as recorded
        on recorded.run_id = billed.run_id and recorded.resource_id = billed.resource_id
),

typed as (
    select machine.*, listed.accelerator_count,
        case when machine.instance_type = 'unknown' then 'unknown'
            else family_of(listed.accelerator_family, replace(machine.instance_type, 'ml.', '')) end as accelerator_family
    from machine
    left join ref_instance_type as listed on listed.instance_type = replace(machine.instance_type, 'ml.', '')
),

ranked as (
    select *, rank() over (partition by run_id
        order by case when is_recorded or accelerator_family <> 'none' then 0 else 1 end) as rank_no
    from typed
)

select run_id, resource_id, is_any_machine, instance_type, accelerator_family, accelerator_count
from ranked
where rank_no = 1
