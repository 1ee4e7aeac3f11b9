-- One row per billed run × unit of work it measured: hours of instances, goodput and cost of one unit, on the three bases.
-- A run that reached its target counts up to there; null where its hours are unknown.
with billed as (
    select * from fct_run where is_billed
),

reached as (
    select run_id, max(ended_ms) as reached_ms
    from fct_run_interval
    where interval_kind = 'target' and interval_key = '1'
    group by run_id
),

-- How far training had come when it reached the target: steps, which are the same work on any hardware.
convergence as (
    select reached.run_id, max(evaluation.step) as step_count
    from reached
    join stg_tracker__evaluation as evaluation
        on evaluation.run_id = reached.run_id and unix_ms(evaluation.evaluated_at) = reached.reached_ms
    group by reached.run_id
),

unit as (
    select run_id, 'cost_to_target' as unit_measure, cast(1 as decimal(20, 6)) as unit_count,
        target_accelerator_hours as accelerator_hours, list_cost_to_target_usd as list_cost_usd,
        cost_to_target_usd as effective_cost_usd, billed_cost_to_target_usd as billed_cost_usd
    from billed
    where target_duration_ms is not null

    union all

    -- Blocks are each run's own: only passes over the dataset are compared by the epoch.
    select run_id, 'cost_per_epoch', cast(epoch_completed_count as decimal(20, 6)), if_whole(accelerator_hours, unbilled_hours > 0),
        if_whole(list_cost_usd, unbilled_hours > 0), if_whole(effective_cost_usd, unbilled_hours > 0),
        if_whole(billed_cost_usd, unbilled_hours > 0)
    from billed
    where epoch_unit = 'dataset_pass' and epoch_completed_count > 0

    union all

    select run_id, 'cost_per_million_tokens', ratio(tokens_seen_count, 1000000), if_whole(accelerator_hours, unbilled_hours > 0),
        if_whole(list_cost_usd, unbilled_hours > 0), if_whole(effective_cost_usd, unbilled_hours > 0),
        if_whole(billed_cost_usd, unbilled_hours > 0)
    from billed
    where tokens_seen_count > 0
),

measured as (
    select
        run.run_id, run.workload_id, run.billing_currency, run.accelerator_family, run.instance_type, cost.region_id, run.status,
        run.ended_at, unit.unit_measure, unit.unit_count,
        case when unit.unit_measure = 'cost_to_target' then convergence.step_count end as step_count,
        ratio(case when unit.accelerator_hours > 0 then unit.accelerator_hours end, run.accelerator_count) as instance_hours,
        unit.list_cost_usd, unit.effective_cost_usd, unit.billed_cost_usd, run.productive_node_ms, run.billed_node_ms
    from unit
    join billed as run on run.run_id = unit.run_id
    join fct_run_cost as cost on cost.run_id = run.run_id
    left join convergence on convergence.run_id = run.run_id
)

select
    run_id, workload_id, billing_currency, accelerator_family, instance_type, region_id, status, ended_at, unit_measure, unit_count,
    step_count, instance_hours,
    -- A million tokens may take seconds of an instance, so this is not rounded to six places.
    cast(instance_hours as double) / nullif(cast(unit_count as double), 0) as unit_instance_hours,
    list_cost_usd, effective_cost_usd, billed_cost_usd,
    usd_per(list_cost_usd, unit_count) as list_unit_cost_usd,
    usd_per(effective_cost_usd, unit_count) as effective_unit_cost_usd,
    usd_per(billed_cost_usd, unit_count) as billed_unit_cost_usd,
    productive_node_ms, billed_node_ms,
    goodput_ratio(productive_node_ms, billed_node_ms) as goodput_ratio
from measured
group by all
