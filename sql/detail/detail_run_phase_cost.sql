-- One row per run, phase and currency: what the nodes' seconds in that phase cost; over a run they sum to its compute.
select
    cost.run_id, cost.phase, cost.billing_currency,
    run.workload_id, run.accelerator_family, run.team, run.owner,
    cast(sum(cost.node_ms) as double) / 1000 as node_seconds,
    ratio(sum(cost.node_ms), max(run.billed_node_ms)) as node_time_ratio,
    known_sum(cost.accelerator_hours) as accelerator_hours,
    known_sum(cost.list_cost_usd) as list_cost_usd,
    known_sum(cost.effective_cost_usd) as effective_cost_usd,
    known_sum(cost.billed_cost_usd) as billed_cost_usd
from fct_interval_cost as cost
join fct_run as run on run.run_id = cost.run_id and run.billing_currency = cost.billing_currency
where cost.interval_kind = 'phase'
group by cost.run_id, cost.phase, cost.billing_currency, run.workload_id, run.accelerator_family, run.team, run.owner
