-- One row per workload × day of use × currency × machine × way it was bought: accelerator time and cost of its runs.
select
    run.workload_id, ledger.usage_date, ledger.billing_currency, ledger.accelerator_family, ledger.instance_type, ledger.market,
    sum(ledger.accelerator_hours) as accelerator_hours,
    sum(ledger.effective_cost_usd) as effective_cost_usd
from fct_ledger_daily as ledger
join dim_run as run on run.run_id = ledger.run_id
where ledger.bucket = 'run'
group by run.workload_id, ledger.usage_date, ledger.billing_currency, ledger.accelerator_family, ledger.instance_type, ledger.market
