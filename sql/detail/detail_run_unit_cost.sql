-- One row per billed run × unit of work it measured: hours of instances, goodput and cost of one unit, on the three bases.
select
    run_id, workload_id, billing_currency, accelerator_family, instance_type, status, ended_at, unit_measure, unit_count, step_count,
    instance_hours,
    -- Not to six places: a million tokens may take seconds of an instance.
    cast(instance_hours as double) / nullif(cast(unit_count as double), 0) as unit_instance_hours,
    ratio(list_cost_usd, unit_count) as list_unit_cost_usd,
    ratio(effective_cost_usd, unit_count) as effective_unit_cost_usd,
    ratio(billed_cost_usd, unit_count) as billed_unit_cost_usd,
    goodput_ratio(productive_node_ms, billed_node_ms) as goodput_ratio
from fct_run_unit
group by all
