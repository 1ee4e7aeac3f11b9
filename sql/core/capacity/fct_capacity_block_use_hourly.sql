-- One row per Capacity Block or training plan, hour of it and resource that used the hour; the unused rest has a row too.
-- Units are instance-milliseconds of the block, from 0 to whole_units: its window times its instances where both are known
-- or inferred, hours to come included; else the used and unused hours on the bill so far.
with billed as (
    select block_id, hour_started_at, resource_id, is_unused, use_ms from fct_capacity_block_billed_hourly
),

reserved as (
    select reservation_id as block_id, started_at, ended_at, instance_count
    from stg_aws__capacity_reservation
    where reservation_kind <> 'odcr' and started_at is not null and ended_at is not null
    union all
    select distinct block_id, window_started_at, window_ended_at, window_instance_count
    from fct_capacity_block_billed_hourly
    where window_ended_at is not null
),

billed_hour as (
    select block_id, hour_started_at, sum(use_ms) as billed_ms,
        coalesce(sum(use_ms) filter (where not is_unused), 0) as used_ms
    from billed
    group by block_id, hour_started_at
),

-- Instances of a reservation without a count: as many as the bill shows at once.
busiest as (
    select block_id, (max(billed_ms) + 3599999) // 3600000 as instance_count
    from billed_hour
    group by block_id
),

slice as (
    select *, unnest(generate_series(date_trunc('hour', started_at), ended_at, interval 1 hour)) as hour_started_at
    from reserved
),

held as (
    select slice.block_id, cast(slice.hour_started_at as timestamp) as hour_started_at,
        sum((least(unix_ms(slice.ended_at), unix_ms(slice.hour_started_at) + 3600000)
            - greatest(unix_ms(slice.started_at), unix_ms(slice.hour_started_at)))
            * coalesce(slice.instance_count, busiest.instance_count, 1)) as held_ms
    from slice
    left join busiest on busiest.block_id = slice.block_id
    where slice.hour_started_at < slice.ended_at
    group by 1, 2
),

known_use as (
    select billed.* from billed semi join reserved on reserved.block_id = billed.block_id where not billed.is_unused
    union all
    select held.block_id, held.hour_started_at, held.block_id as resource_id, true as is_unused,
        held.held_ms - coalesce(billed_hour.used_ms, 0) as use_ms
    from held
    left join billed_hour on billed_hour.block_id = held.block_id and billed_hour.hour_started_at = held.hour_started_at
    where held.held_ms > coalesce(billed_hour.used_ms, 0)
),

used as (
    select known_use.*, coalesce(held.held_ms, 0) as held_ms
    from known_use
    left join held on held.block_id = known_use.block_id and held.hour_started_at = known_use.hour_started_at
    union all
    select billed.*, billed_hour.billed_ms as held_ms
    from billed
    join billed_hour on billed_hour.block_id = billed.block_id and billed_hour.hour_started_at = billed.hour_started_at
    anti join reserved on reserved.block_id = billed.block_id
),

ordered as (
    select *, sum(use_ms) over (partition by block_id, hour_started_at order by is_unused, resource_id
            rows between unbounded preceding and current row) as upto_ms,
        sum(use_ms) over (partition by block_id, hour_started_at) as hour_use_ms
    from used
    where use_ms > 0
),

hour as (
    select block_id, hour_started_at, held_ms,
        sum(held_ms) over (partition by block_id order by hour_started_at
            rows between unbounded preceding and current row) - held_ms as before_units,
        sum(held_ms) over (partition by block_id) as whole_units
    from (select distinct block_id, hour_started_at, held_ms from ordered) as found
)

-- Use beyond the window is scaled down to what the window holds.
select
    ordered.block_id, ordered.hour_started_at, ordered.resource_id, ordered.is_unused,
    ordered.hour_use_ms > ordered.held_ms as is_overused,
    cast(hour.before_units + case when ordered.hour_use_ms = ordered.held_ms then ordered.upto_ms - ordered.use_ms
        else (ordered.upto_ms - ordered.use_ms) * ordered.held_ms // ordered.hour_use_ms end as bigint) as lower_units,
    cast(hour.before_units + case when ordered.hour_use_ms = ordered.held_ms then ordered.upto_ms
        else ordered.upto_ms * ordered.held_ms // ordered.hour_use_ms end as bigint) as upper_units,
    cast(hour.whole_units as bigint) as whole_units
from ordered
join hour on hour.block_id = ordered.block_id and hour.hour_started_at = ordered.hour_started_at
