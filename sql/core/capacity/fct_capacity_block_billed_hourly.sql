-- One row per Capacity Block or training plan, hour and resource on the bill, used or not, with the window that is inferred.
-- A window is inferred where [[reservations]] has none and just one fits the fee: blocks end at 11:30 UTC, whole days after
-- the first 11:30 that follows their start, and cost the block price of the day they were bought (standards-2026 4). They
-- start at 11:30 or within an hour; where the bill has their unused hours too, with its first hour.
with declared as (
    select resource_id, max(capacity_reservation_id) as block_id
    from stg_tracker__stay_monthly
    where capacity_reservation_id is not null
    group by resource_id
),

-- Where neither the bill nor the run names the block: the only one of that type that the account bought.
only_block as (
    select account_id, instance_type, max(block_id) as block_id
    from fct_capacity_block_fee
    where charge_category <> 'Refund'
    group by account_id, instance_type
    having count(distinct block_id) = 1
),

billed as (
    select
        coalesce(line.capacity_reservation_id, declared.block_id, only_block.block_id) as block_id,
        line.usage_started_at as hour_started_at,
        line.resource_id,
        line.line_class = 'capacity_unused' as is_unused,
        cast(round(sum(line.usage_quantity) * 3600000) as bigint) as use_ms
    from fct_charge as line
    left join declared on declared.resource_id = line.resource_id
    left join only_block on only_block.account_id = line.account_id and only_block.instance_type = line.instance_type
    where line.source_row is not null and line.market = 'capacity_block' and line.line_class in ('instance', 'capacity_unused')
    group by 1, 2, 3, 4
),

hour as (
    select block_id, hour_started_at, sum(use_ms) as hour_ms, bool_or(is_unused) as has_unused
    from billed
    group by block_id, hour_started_at
),

seen as (
    select block_id, min(unix_ms(hour_started_at)) as first_ms, max(unix_ms(hour_started_at)) as last_ms,
        min_by(hour_ms, hour_started_at) as first_hour_ms, bool_or(has_unused) as has_unused,
        (max(hour_ms) + 3599999) // 3600000 as instance_count
    from hour
    group by block_id
),

fee as (
    select block_id, max(replace(instance_type, 'ml.', '')) as instance_type, sum(billed_cost_usd) as fee_usd,
        min(usage_started_at) as bought_at
    from fct_capacity_block_fee
    where billing_currency = 'USD'
    group by block_id, billing_currency
    having count(*) filter (where charge_category = 'Refund') = 0
),

price as (
    select fee.block_id, max_by(price.price_per_hour_usd, price.from_date) as price_usd
    from fee
    join ref_list_price as price
        on price.instance_type = fee.instance_type and price.offer = 'capacity_block'
        and price.from_date <= cast(fee.bought_at as date)
    group by fee.block_id
),

-- Without unused hours, the bill shows neither how many instances there are nor whether the block began before its use.
sized as (
    select block_id, first_ms, last_ms, first_hour_ms, has_unused, instance_count
    from seen
    where has_unused
    union all
    select block_id, first_ms, last_ms, first_hour_ms, has_unused, cast(power.instance_count as bigint)
    from seen
    cross join (select unnest([1, 2, 4, 8, 16, 32, 64]) as instance_count) as power
    where not has_unused and power.instance_count >= seen.instance_count
),

-- 11:30 UTC is 41,400,000 ms into a day of 86,400,000.
begun as (
    select *, first_ms + 3600000 - least(first_hour_ms // instance_count, 3600000) as started_ms from sized
    union
    select *, last_half_past_eleven(first_ms + 3599999) from sized where not has_unused
),

candidate as (
    select begun.block_id, begun.started_ms, begun.instance_count,
        last_half_past_eleven(begun.started_ms) + cast(day.day_count as bigint) * 86400000 as ended_ms
    from begun
    cross join (select unnest(generate_series(1, 183)) as day_count) as day
    where last_half_past_eleven(begun.started_ms) + cast(day.day_count as bigint) * 86400000 > begun.last_ms
),

fitting as (
    select candidate.*, count(*) over (partition by candidate.block_id) as fitting_count
    from candidate
    join fee on fee.block_id = candidate.block_id
    join price on price.block_id = candidate.block_id
    anti join stg_aws__capacity_reservation as known
        on known.reservation_id = candidate.block_id and known.started_at is not null and known.ended_at is not null
    -- Within 0.02 %: the fee is rounded to cents.
    where abs(cast(fee.fee_usd as double) - cast(price.price_usd as double) * candidate.instance_count
            * (candidate.ended_ms - candidate.started_ms) / 3600000) <= cast(fee.fee_usd as double) * 0.0002
)

select
    billed.block_id, billed.hour_started_at, billed.resource_id, billed.is_unused, billed.use_ms,
    cast(epoch_ms(cast(fitting.started_ms as bigint)) as timestamp) as window_started_at,
    cast(epoch_ms(cast(fitting.ended_ms as bigint)) as timestamp) as window_ended_at,
    cast(fitting.instance_count as bigint) as window_instance_count
from billed
left join fitting on fitting.block_id = billed.block_id and fitting.fitting_count = 1
