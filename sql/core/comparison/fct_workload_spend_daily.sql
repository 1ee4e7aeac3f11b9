-- One row per workload × day of use × currency × family of its run × machine × way it was bought: accelerator time and cost.
with spent as (
    select
        run.workload_id, ledger.usage_date, ledger.billing_currency, run.accelerator_family,
        coalesce(ledger.instance_type, '') as instance_type, coalesce(ledger.market, '') as market,
        ledger.accelerator_hours, ledger.effective_cost_usd
    from fct_ledger as ledger
    join fct_run_cost as run on run.run_id = ledger.run_id
    where ledger.bucket = 'run'
)

select
    workload_id, usage_date, billing_currency, accelerator_family, instance_type, market,
    sum(accelerator_hours) as accelerator_hours,
    sum(effective_cost_usd) as effective_cost_usd
from spent
group by workload_id, usage_date, billing_currency, accelerator_family, instance_type, market
