-- One row per billing month, currency, dimension and value of it: its costs, their share, change and running total.
-- The dimension `total` is the whole bill; choose one dimension, for each of them adds up to it.
with line as (
    select
        ledger.billing_month, ledger.billing_currency, ledger.bucket, named.bucket_group, ledger.accelerator_family,
        case when ledger.bucket = 'run' then ledger.accelerator_family else 'no run' end as run_accelerator_family,
        ledger.account_id, ledger.service, ledger.accelerator_hours, ledger.list_cost_usd, ledger.effective_cost_usd,
        ledger.billed_cost_usd
    from mart_cost_ledger_daily as ledger
    left join ref_bucket as named on named.bucket = ledger.bucket
),

summed as (
    select
        billing_month, billing_currency,
        case
            when grouping(bucket) = 0 then 'bucket'
            when grouping(bucket_group) = 0 then 'bucket_group'
            when grouping(accelerator_family) = 0 then 'accelerator_family'
            when grouping(run_accelerator_family) = 0 then 'run_accelerator_family'
            when grouping(account_id) = 0 then 'account'
            when grouping(service) = 0 then 'service'
            else 'total'
        end as dimension,
        coalesce(bucket, bucket_group, accelerator_family, run_accelerator_family, account_id, service, 'all') as dimension_value,
        sum(accelerator_hours) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd,
        true as is_on_bill
    from line
    group by grouping sets (
        (billing_month, billing_currency),
        (billing_month, billing_currency, bucket),
        (billing_month, billing_currency, bucket_group),
        (billing_month, billing_currency, accelerator_family),
        (billing_month, billing_currency, run_accelerator_family),
        (billing_month, billing_currency, account_id),
        (billing_month, billing_currency, service)
    )
),

-- A value that a month lacks cost nothing in it; a bucket that no month has cost nothing at all.
wanted as (
    select month.billing_month, month.billing_currency, known.dimension, known.dimension_value
    from (select distinct billing_month, billing_currency from summed) as month
    join (
        select distinct billing_currency, dimension, dimension_value from summed
        union
        select currency.billing_currency, 'bucket', ref_bucket.bucket
        from (select distinct billing_currency from summed) as currency cross join ref_bucket
        union
        select currency.billing_currency, 'bucket_group', ref_bucket.bucket_group
        from (select distinct billing_currency from summed) as currency cross join ref_bucket
    ) as known on known.billing_currency = month.billing_currency
),

monthly as (
    select
        wanted.billing_month, wanted.billing_currency, wanted.dimension, wanted.dimension_value,
        case when summed.is_on_bill then summed.accelerator_hours else 0 end as accelerator_hours,
        case when summed.is_on_bill then summed.list_cost_usd else 0 end as list_cost_usd,
        coalesce(summed.effective_cost_usd, 0) as effective_cost_usd,
        coalesce(summed.billed_cost_usd, 0) as billed_cost_usd
    from wanted
    left join summed
        on summed.billing_month = wanted.billing_month and summed.billing_currency = wanted.billing_currency
        and summed.dimension = wanted.dimension and summed.dimension_value = wanted.dimension_value
),

running as (
    select
        *,
        lag(effective_cost_usd) over (partition by billing_currency, dimension, dimension_value order by billing_month) as previous_effective_cost_usd,
        sum(accelerator_hours) over (partition by billing_currency, dimension, dimension_value order by billing_month) as running_accelerator_hours,
        case when count(list_cost_usd) over (partition by billing_currency, dimension, dimension_value order by billing_month) = count(*) over (partition by billing_currency, dimension, dimension_value order by billing_month)
            then sum(list_cost_usd) over (partition by billing_currency, dimension, dimension_value order by billing_month) end as running_list_cost_usd,
        sum(effective_cost_usd) over (partition by billing_currency, dimension, dimension_value order by billing_month) as running_effective_cost_usd,
        sum(billed_cost_usd) over (partition by billing_currency, dimension, dimension_value order by billing_month) as running_billed_cost_usd
    from monthly
)

select
    running.billing_month, running.billing_currency, running.dimension, running.dimension_value,
    running.accelerator_hours, running.list_cost_usd, running.effective_cost_usd, running.billed_cost_usd,
    -- Credits may make the whole, or a part of it, less than nothing: then a share means nothing.
    case when whole.effective_cost_usd > 0 then ratio(running.effective_cost_usd, whole.effective_cost_usd) end
        as effective_share_ratio,
    running.effective_cost_usd - running.previous_effective_cost_usd as monthly_change_usd,
    running.running_accelerator_hours, running.running_list_cost_usd, running.running_effective_cost_usd,
    running.running_billed_cost_usd,
    case when whole.running_effective_cost_usd > 0
        then ratio(running.running_effective_cost_usd, whole.running_effective_cost_usd) end as running_share_ratio,
    running.billing_month = max(running.billing_month) over (partition by running.billing_currency) as is_newest_month
from running
join running as whole
    on whole.billing_month = running.billing_month and whole.billing_currency = running.billing_currency
    and whole.dimension = 'total'
