-- One row per resource, billing currency and month of use whose accelerator spend no run explains; and per resource over all months.
with day as (
    select date_trunc('month', usage_date) as usage_month, *
    from mart_unattributed_cost_daily
),

resource as (
    select
        usage_month, billing_currency, account_id, region_id, resource_id, instance_type, accelerator_family,
        max(tagged_run_id) as tagged_run_id,
        max(tagged_owner) as tagged_owner,
        max(tagged_team) as tagged_team,
        max(likely_team) as likely_team,
        max(missing_evidence) as missing_evidence,
        min(usage_date) as first_date,
        max(usage_date) as last_date,
        known_sum(accelerator_hours) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd,
        known_sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd
    from day
    group by grouping sets (
        (billing_currency, account_id, region_id, resource_id, instance_type, accelerator_family),
        (usage_month, billing_currency, account_id, region_id, resource_id, instance_type, accelerator_family)
    )
)

select
    usage_month, billing_currency, account_id, region_id, resource_id, instance_type, accelerator_family, tagged_run_id,
    tagged_owner, tagged_team, likely_team, missing_evidence, first_date, last_date, accelerator_hours,
    list_cost_usd, effective_cost_usd, billed_cost_usd,
    count(*) over reason as reason_resource_count,
    case when count(accelerator_hours) over reason = count(*) over reason then sum(accelerator_hours) over reason end
        as reason_accelerator_hours,
    case when count(effective_cost_usd) over reason = count(*) over reason
        then sum(effective_cost_usd) over reason end as reason_effective_cost_usd
from resource
window reason as (partition by usage_month, billing_currency, missing_evidence)
