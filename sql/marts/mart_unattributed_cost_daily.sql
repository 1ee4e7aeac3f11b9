-- One row per day × resource whose accelerator spend no run explains, with the best guess at its owner.
select
    usage_date, payer_account_id, account_id, billing_currency,
    coalesce(resource_id, 'no resource id') as resource_id,
    coalesce(instance_type, 'unknown') as instance_type,
    accelerator_family, region_id,
    max(tag_run_id) as tagged_run_id,
    max(tag_owner) as tagged_owner,
    max(tag_team) as tagged_team,
    case
        when resource_id is null then 'the bill names no resource: switch on resource ids in the export'
        when max(tag_run_id) is not null then 'the tag names a run nobody recorded: record its run events'
        when max(tag_owner) is not null or max(tag_team) is not null then 'no run names this resource: ask the tagged owner'
        else 'no run and no tag names this resource'
    end as missing_evidence,
    sum(accelerator_hours) as accelerator_hours,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from fct_ledger_daily
where bucket = 'unattributed'
group by usage_date, payer_account_id, account_id, billing_currency, resource_id, instance_type, accelerator_family, region_id
