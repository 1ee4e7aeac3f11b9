-- One row per billing month, currency, account, resource, instance type and team: accelerator spend, and the days on which
-- the machine was billed around the clock.
with day as (
    select
        ledger.billing_month, ledger.billing_currency, ledger.account_id,
        coalesce(ledger.resource_id, 'no resource id') as resource_id, ledger.instance_type, ledger.accelerator_family,
        ledger.team, ledger.usage_date,
        max(ledger.region_id) as region_id, max(coalesce(ledger.run_id, ledger.tag_run_id)) as tagged_run_id,
        -- Of what is not one machine, such as an endpoint, the bill does not show how long each was up.
        case when is_instance_id(max(ledger.resource_id)) then sum(sum(ledger.accelerator_hours)) over machine_day
            / max(nullif(listed.accelerator_count, 0)) end as machine_hours,
        sum(ledger.accelerator_hours) as accelerator_hours,
        known_sum(ledger.list_cost_usd) as list_cost_usd,
        known_sum(ledger.effective_cost_usd) as effective_cost_usd,
        sum(ledger.billed_cost_usd) as billed_cost_usd
    from fct_ledger as ledger
    left join ref_instance_type as listed on listed.instance_type = ledger.instance_type
    where ledger.accelerator_family <> 'none'
    group by ledger.billing_month, ledger.billing_currency, ledger.account_id, ledger.resource_id, ledger.instance_type,
        ledger.accelerator_family, ledger.team, ledger.usage_date
    window machine_day as (partition by ledger.billing_currency, ledger.resource_id, ledger.usage_date)
)

select
    billing_month, billing_currency, account_id, max(region_id) as region_id, resource_id, instance_type, accelerator_family,
    team, max(tagged_run_id) as tagged_run_id, min(usage_date) as first_date, max(usage_date) as last_date,
    case when count(machine_hours) = count(*) then count(*) filter (where machine_hours >= 24) end as full_day_count,
    sum(accelerator_hours) as accelerator_hours,
    known_sum(list_cost_usd) as list_cost_usd,
    known_sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from day
group by billing_month, billing_currency, account_id, resource_id, instance_type, accelerator_family, team
