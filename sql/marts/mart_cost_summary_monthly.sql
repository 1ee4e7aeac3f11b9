-- One row per billing month, currency, dimension and value of it: its costs, their share, change and running total.
-- Choose one dimension, for each adds up to `total`, the whole bill. Commitment fees whose use the bill does not show
-- are in no effective cost, but in `unallocated_fee_usd`; sums without a part that the bill does not show are partial.
with cost as (
    select billing_month, billing_currency, bucket, accelerator_family, account_id, service, instance_type, team,
        case when bucket = 'run' then run_id end as run_id,
        -- Accelerators are those of AWS: another provider's are apart in detail_charge_monthly.
        case when is_other_provider(billing_entity) then 'other provider'
            when accelerator_family = 'none' then 'no accelerator' end as other_use,
        coalesce(run_id, tag_run_id) is not null as has_run, bool_or(effective_cost_usd is null) as is_cost_partial,
        sum(accelerator_hours) as accelerator_hours, known_sum(list_cost_usd) as list_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd, sum(billed_cost_usd) as billed_cost_usd
    from fct_ledger
    group by all
),

line as (
    select cost.billing_month, cost.billing_currency, cost.bucket, named.bucket_group,
        coalesce(nullif(cost.other_use, 'no accelerator'), cost.accelerator_family) as accelerator_family,
        -- Storage and network of a run are spend on the accelerators of that run.
        case when cost.bucket = 'run' then coalesce(max(nullif(cost.accelerator_family, 'none'))
            over (partition by cost.billing_currency, cost.run_id), 'none') else 'no run' end as run_accelerator_family,
        cost.account_id, cost.service, coalesce(cost.other_use, 'accelerator') as accelerator,
        case when cost.bucket = 'other' then cost.service else 'not other' end as other_service,
        coalesce(cost.other_use, cost.instance_type, 'no instance type') as accelerator_instance_type,
        coalesce(cost.other_use, cost.account_id) as accelerator_account,
        coalesce(cost.other_use, cost.team, 'no team') as accelerator_team,
        coalesce(cost.other_use, case when cost.has_run then 'run or run tag' else 'no run' end) as accelerator_run,
        cost.accelerator_hours, cost.list_cost_usd, cost.effective_cost_usd, cost.billed_cost_usd,
        fee.unallocated_fee_usd, cost.is_cost_partial or coalesce(fee.unallocated_fee_usd, 0) > 0 as is_cost_partial
    from cost
    left join ref_bucket as named on named.bucket = cost.bucket
    left join (select distinct billing_month, currency, month_unallocated_fee_usd as unallocated_fee_usd
            from detail_billing_month) as fee
        on fee.billing_month = case when cost.bucket = 'commitment_unused' then cost.billing_month end
        and fee.currency = cost.billing_currency
),

summed as (
    select billing_month, billing_currency,
        case when grouping(bucket) = 0 then 'bucket' when grouping(bucket_group) = 0 then 'bucket_group'
            when grouping(accelerator_family) = 0 then 'accelerator_family'
            when grouping(run_accelerator_family) = 0 then 'run_accelerator_family'
            when grouping(account_id) = 0 then 'account' when grouping(service) = 0 then 'service'
            when grouping(other_service) = 0 then 'other_service' when grouping(accelerator) = 0 then 'accelerator'
            when grouping(accelerator_instance_type) = 0 then 'accelerator_instance_type'
            when grouping(accelerator_account) = 0 then 'accelerator_account'
            when grouping(accelerator_team) = 0 then 'accelerator_team'
            when grouping(accelerator_run) = 0 then 'accelerator_run' else 'total' end as dimension,
        coalesce(bucket, bucket_group, accelerator_family, run_accelerator_family, account_id, service, other_service,
            accelerator, accelerator_instance_type, accelerator_account, accelerator_team, accelerator_run, 'all')
            as dimension_value,
        sum(accelerator_hours) as accelerator_hours, known_sum(list_cost_usd) as list_cost_usd,
        nullif(sum(effective_cost_usd), case when bool_or(is_cost_partial) then 0 end) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd, max(unallocated_fee_usd) as unallocated_fee_usd,
        bool_or(is_cost_partial) as is_cost_partial,
        sum(effective_cost_usd) <> 0 or sum(billed_cost_usd) <> 0 or bool_or(is_cost_partial) as has_cost
    from line
    group by billing_month, billing_currency, grouping sets ((), (bucket), (bucket_group), (accelerator_family),
        (run_accelerator_family), (account_id), (service), (other_service), (accelerator), (accelerator_instance_type),
        (accelerator_account), (accelerator_team), (accelerator_run))
),

-- A value that a month lacks cost nothing in it; but while no recorded run is on the bill, what runs used is unknown.
wanted as (
    select month.billing_month, month.billing_currency, known.dimension, known.dimension_value,
        run_count > 0 or dimension not like 'bucket%' or dimension_value not in ('run', 'idle') as is_known
    from (select distinct billing_month, billing_currency from summed) as month join (
        select distinct billing_currency, dimension, dimension_value from summed
        union select summed.billing_currency, 'bucket', ref_bucket.bucket from summed cross join ref_bucket
        union select summed.billing_currency, 'bucket_group', ref_bucket.bucket_group from summed cross join ref_bucket
    ) as known on known.billing_currency = month.billing_currency
    cross join (select count(*) as run_count from dim_run where run_id in (select run_id from cost)) as recorded
),

monthly as (
    select wanted.billing_month, wanted.billing_currency, wanted.dimension, wanted.dimension_value,
        case when is_known and has_cost is null then 0 when is_known or has_cost then accelerator_hours end
            as accelerator_hours,
        case when is_known and has_cost is null then 0 when is_known or has_cost then list_cost_usd end
            as list_cost_usd,
        case when is_known and has_cost is null then 0 when is_known or has_cost then effective_cost_usd end
            as effective_cost_usd,
        case when is_known and has_cost is null then 0 when is_known or has_cost then billed_cost_usd end
            as billed_cost_usd,
        coalesce(unallocated_fee_usd, 0) as unallocated_fee_usd, is_cost_partial is true as is_cost_partial
    from wanted
    left join summed on summed.billing_month = wanted.billing_month and summed.dimension = wanted.dimension
        and summed.billing_currency = wanted.billing_currency and summed.dimension_value = wanted.dimension_value
),

running as (
    select *, lag(effective_cost_usd) over running as previous_effective_cost_usd,
        lag(is_cost_partial) over running as is_previous_cost_partial,
        sum(accelerator_hours) over running as running_accelerator_hours,
        sum(billed_cost_usd) over running as running_billed_cost_usd,
        case when count(list_cost_usd) over running = count(*) over running then sum(list_cost_usd) over running end
            as running_list_cost_usd, bool_or(is_cost_partial) over running as is_running_cost_partial,
        nullif(sum(effective_cost_usd) over running, case when bool_or(is_cost_partial) over running then 0 end)
            as running_effective_cost_usd
    from monthly
    window running as (partition by billing_currency, dimension, dimension_value order by billing_month)
)

select
    running.billing_month, running.billing_currency, running.dimension, running.dimension_value, running.is_cost_partial,
    running.accelerator_hours, running.list_cost_usd, running.effective_cost_usd, running.billed_cost_usd,
    -- Credits may make the whole, or a part of it, less than nothing: then a share means nothing. Of a partial cost
    -- neither share nor change is known.
    case when whole.effective_cost_usd > 0 and not whole.is_cost_partial
        then ratio(running.effective_cost_usd, whole.effective_cost_usd) end as effective_share_ratio,
    case when not (running.is_cost_partial or running.is_previous_cost_partial)
        then running.effective_cost_usd - running.previous_effective_cost_usd end as monthly_change_usd,
    running.running_accelerator_hours, running.running_list_cost_usd, running.running_effective_cost_usd,
    running.running_billed_cost_usd, running.unallocated_fee_usd, running.is_running_cost_partial,
    case when whole.running_effective_cost_usd > 0 and not whole.is_running_cost_partial
        then ratio(running.running_effective_cost_usd, whole.running_effective_cost_usd) end as running_share_ratio,
    running.billing_month = max(running.billing_month) over (partition by running.billing_currency) as is_newest_month
from running join running as whole on whole.billing_month = running.billing_month
    and whole.billing_currency = running.billing_currency and whole.dimension = 'total'
