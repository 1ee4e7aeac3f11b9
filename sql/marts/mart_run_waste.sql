-- One row per run, currency and cause of spend that bought no lasting progress. Evaluation, and what no record shows to
-- be kept or lost (unknown), are listed with is_waste false.
-- A second has one cause, so the wasted rows of a run sum to its wasted_cost_usd.
with named as (
    select *, case when waste_cause <> 'none' then waste_cause else phase end as cause,
        waste_cause not in ('none', 'unknown') as is_waste
    from fct_interval_cost
    where interval_kind = 'phase' and (waste_cause <> 'none' or phase = 'evaluation')
)

select
    named.run_id, named.billing_currency, named.cause, named.is_waste,
    run.workload_id, run.accelerator_family, run.team, run.owner, run.status,
    cast(sum(named.node_ms) as double) / 1000 as node_seconds,
    known_sum(named.accelerator_hours) as accelerator_hours,
    known_sum(named.list_cost_usd) as list_cost_usd,
    known_sum(named.effective_cost_usd) as effective_cost_usd,
    known_sum(named.billed_cost_usd) as billed_cost_usd,
    -- Of what the run cost, storage and network included.
    ratio(known_sum(named.effective_cost_usd), max(if_whole(run.effective_cost_usd, run.unbilled_hours > 0))) as cost_ratio
from named
join fct_run as run on run.run_id = named.run_id and run.billing_currency = named.billing_currency
group by named.run_id, named.billing_currency, named.cause, named.is_waste,
    run.workload_id, run.accelerator_family, run.team, run.owner, run.status
