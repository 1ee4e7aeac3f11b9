-- One row per billed run × unit of work it measured: what was done of it, in how many hours of instances, at which cost.
-- A run that reached its target counts up to there; what hours cannot be told of is null.
with target as (
    select run_id, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_interval_cost
    where interval_kind = 'target' and interval_key = '1'
),

reached as (
    select run_id, max(ended_ms) as reached_ms
    from fct_run_interval
    where interval_kind = 'target' and interval_key = '1'
    group by run_id
),

-- How far training had come when it reached the target: steps, which are the same work on either side of a workload.
convergence as (
    select reached.run_id, max(evaluation.step) as step_count
    from reached
    join stg_tracker__evaluation as evaluation
        on evaluation.run_id = reached.run_id and unix_ms(evaluation.evaluated_at) = reached.reached_ms
    group by reached.run_id
),

billed as (
    select * from fct_run where is_billed
),

place as (
    select run_id, case when count(distinct region_id) = 1 then max(region_id) end as region_id
    from stg_tracker__resource
    group by run_id
),

unit as (
    select run.run_id, 'cost_to_target' as unit_measure, cast(1 as decimal(20, 6)) as unit_count, convergence.step_count,
        target.accelerator_hours, target.list_cost_usd, target.effective_cost_usd, target.billed_cost_usd
    from billed as run
    join target on target.run_id = run.run_id
    left join convergence on convergence.run_id = run.run_id

    union all

    -- Blocks are each run's own: only passes over the dataset are compared by the epoch.
    select run_id, 'cost_per_epoch', cast(epoch_completed_count as decimal(20, 6)), null, accelerator_hours,
        list_cost_usd, effective_cost_usd, billed_cost_usd
    from billed
    where epoch_unit = 'dataset_pass' and epoch_completed_count > 0

    union all

    select run_id, 'cost_per_million_tokens', ratio(tokens_seen_count, 1000000), null, accelerator_hours,
        list_cost_usd, effective_cost_usd, billed_cost_usd
    from billed
    where tokens_seen_count > 0
)

select
    run.run_id, run.workload_id, run.billing_currency, run.accelerator_family, run.instance_type, place.region_id, run.status, run.ended_at,
    unit.unit_measure, unit.unit_count, unit.step_count,
    ratio(nullif(unit.accelerator_hours, 0), machine.accelerator_count) as instance_hours,
    unit.list_cost_usd, unit.effective_cost_usd, unit.billed_cost_usd,
    run.productive_node_ms, run.billed_node_ms
from unit
join billed as run on run.run_id = unit.run_id
left join place on place.run_id = run.run_id
left join ref_instance_type as machine on machine.instance_type = replace(run.instance_type, 'ml.', '')
