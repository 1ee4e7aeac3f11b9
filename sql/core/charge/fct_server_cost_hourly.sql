-- One row per server, hour, payer, account, region, month and currency: what its machine cost, idle included.
-- Idle of a machine that nothing held is shared by what held it that month, by accelerator-seconds; the part of runs
-- is no server's. Unknown where the machine costs nothing on the bill, as on a dedicated host, or is in a block of
-- unknown window.
-- stored: no
with part as (
    -- All runs of a machine are one.
    select
        resource_id, server_id, date_trunc('month', hour_started_at) as month_at,
        sum(upper_units - lower_units) as units,
        sum(sum(upper_units - lower_units)) over (partition by resource_id, date_trunc('month', hour_started_at)
            order by server_id is null, server_id rows between unbounded preceding and current row) as upper_units,
        sum(sum(upper_units - lower_units)) over (partition by resource_id, date_trunc('month', hour_started_at))
            as whole_units
    from fct_resource_share_hourly
    where run_id is not null or server_id is not null
    group by resource_id, date_trunc('month', hour_started_at), server_id
),

unsure as (
    select distinct resource_id, true as is_unsure
    from fct_capacity_block_piece
    where is_window_unknown
),

spent as (
    select
        server_id, cast(date_trunc('hour', coalesce(hour_started_at, cast(usage_date as timestamp))) as timestamp)
            as hour_started_at, resource_id, bucket, billing_currency, billing_month, payer_account_id, account_id,
        region_id, max(instance_type) as instance_type, max(nullif(accelerator_family, 'none')) as accelerator_family,
        max(evidence) as evidence, count(*) > count(list_cost_usd) as is_unpriced,
        bool_or(case when piece_kind in ('instance_hour', 'block_hour')
            then effective_cost_usd <> 0 and not (market = 'capacity_block' and is_unsure is not null) end) as has_cost,
        sum(list_cost_usd) as list_cost_usd, known_sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd
    from fct_ledger
    left join unsure using (resource_id)
    where server_id is not null
        or (bucket = 'idle' and resource_id in (select resource_id from part where server_id is not null))
    group by all
),

own as (
    select * from spent where server_id is not null

    union all

    select
        part.server_id, hour_started_at, rest.resource_id, bucket, billing_currency, billing_month, payer_account_id,
        account_id, region_id, instance_type, accelerator_family, evidence, is_unpriced, has_cost,
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
    row_number() over (partition by server_id, hour_started_at order by max(instance_type) is null, billing_month,
        payer_account_id, account_id, region_id, billing_currency) as row_no,
    max(resource_id) as resource_id, max(max(instance_type)) over hour as instance_type,
    max(max(accelerator_family)) over hour as accelerator_family, max(evidence) as evidence,
    case when bool_or(bool_or(has_cost)) over hour is distinct from false and not bool_or(is_unpriced)
        then sum(list_cost_usd) end as list_cost_usd,
    case when bool_or(bool_or(has_cost)) over hour is distinct from false
        then known_sum(effective_cost_usd) end as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd,
    case when bool_or(bool_or(has_cost)) over hour is distinct from false
        then known_sum(case when bucket = 'idle' then effective_cost_usd else 0 end) end as idle_cost_usd
from own
group by server_id, hour_started_at, billing_currency, billing_month, payer_account_id, account_id, region_id
window hour as (partition by server_id, hour_started_at)
