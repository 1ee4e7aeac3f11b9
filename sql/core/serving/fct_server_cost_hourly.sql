-- One row per server, hour, payer, account, region, month and currency: what its part of machines cost, idle included.
-- Idle of a machine that nothing held is shared by what held it in that month, by accelerator-seconds; the part of runs
-- is no server's.
with held as (
    select
        resource_id, cast(date_trunc('month', hour_started_at) as timestamp) as month_at, server_id,
        sum(upper_units - lower_units) as units
    from fct_resource_share_hourly
    where run_id is not null or server_id is not null
    group by resource_id, date_trunc('month', hour_started_at), server_id
),

-- All runs of a machine are one.
part as (
    select
        *, sum(units) over (partition by resource_id, month_at order by server_id is null, server_id
            rows between unbounded preceding and current row) as upper_units,
        sum(units) over (partition by resource_id, month_at) as whole_units
    from held
),

spent as (
    select
        server_id, resource_id, bucket, billing_currency, billing_month, payer_account_id, account_id, region_id,
        cast(date_trunc('hour', coalesce(hour_started_at, cast(usage_date as timestamp))) as timestamp)
            as hour_started_at,
        max(instance_type) as instance_type, max(nullif(accelerator_family, 'none')) as accelerator_family,
        max(evidence) as evidence, count(*) > count(list_cost_usd) as is_unpriced,
        sum(list_cost_usd) as list_cost_usd, known_sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd
    from fct_ledger
    where server_id is not null
        or (bucket = 'idle' and resource_id in (select resource_id from held where server_id is not null))
    group by all
),

own as (
    select
        server_id, hour_started_at, resource_id, bucket, billing_currency, billing_month, payer_account_id, account_id,
        region_id, instance_type, accelerator_family, evidence, is_unpriced, list_cost_usd, effective_cost_usd,
        billed_cost_usd
    from spent
    where server_id is not null

    union all

    select
        part.server_id, hour_started_at, rest.resource_id, bucket, billing_currency, billing_month, payer_account_id,
        account_id, region_id, instance_type, accelerator_family, evidence, is_unpriced,
        piece_usd(list_cost_usd, part.upper_units - part.units, part.upper_units, part.whole_units),
        piece_usd(effective_cost_usd, part.upper_units - part.units, part.upper_units, part.whole_units),
        piece_usd(billed_cost_usd, part.upper_units - part.units, part.upper_units, part.whole_units)
    from spent as rest
    join part on part.resource_id = rest.resource_id and part.server_id is not null
        and part.month_at = date_trunc('month', rest.hour_started_at)
    where rest.server_id is null
)

select
    server_id, hour_started_at, billing_currency, billing_month, payer_account_id, account_id, region_id,
    max(resource_id) as resource_id, max(instance_type) as instance_type,
    max(accelerator_family) as accelerator_family, max(evidence) as evidence,
    case when not bool_or(is_unpriced) then sum(list_cost_usd) end as list_cost_usd,
    known_sum(effective_cost_usd) as effective_cost_usd, sum(billed_cost_usd) as billed_cost_usd,
    known_sum(case when bucket = 'idle' then effective_cost_usd else 0 end) as idle_cost_usd
from own
group by server_id, hour_started_at, billing_currency, billing_month, payer_account_id, account_id, region_id
