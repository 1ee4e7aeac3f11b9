-- One row per reservation of capacity × day with a cost: the run it was held for, as far as runs tell.
-- The run that used it longest that day; else the one that comes next to it; else the one that had it last.
with stay as (
    select capacity_reservation_id as reservation_id, run_id, joined_at, left_at
    from stg_tracker__resource
    where capacity_reservation_id is not null

    union all

    -- The bill may say what the run does not: which reservation its machine ran in.
    select machine.capacity_reservation_id, stay.run_id, stay.joined_at, stay.left_at
    from stg_tracker__resource as stay
    join (select distinct resource_id, capacity_reservation_id from fct_resource_hourly where capacity_reservation_id is not null) as machine
        on machine.resource_id = stay.resource_id
    where stay.capacity_reservation_id is null

    union all

    select block.block_id, stay.run_id, stay.joined_at, stay.left_at
    from stg_tracker__resource as stay
    join (select distinct block_id, resource_id from fct_capacity_block_use_hourly where not is_unused) as block
        on block.resource_id = stay.resource_id
    where stay.capacity_reservation_id is null
),

day as (
    select distinct reservation_id, cast(date_trunc('day', hour_started_at) as timestamp) as day_at from fct_capacity_use_hourly
),

near as (
    select
        day.reservation_id, day.day_at, stay.run_id,
        sum(greatest(least(unix_ms(stay.left_at), unix_ms(day.day_at) + 86400000) - greatest(unix_ms(stay.joined_at), unix_ms(day.day_at)), 0))
            as held_ms,
        min(case when stay.joined_at >= day.day_at then unix_ms(stay.joined_at) - unix_ms(day.day_at) end) as ahead_ms,
        max(unix_ms(stay.left_at)) as left_ms
    from day
    join stay on stay.reservation_id = day.reservation_id
    group by day.reservation_id, day.day_at, stay.run_id
),

ranked as (
    select *, row_number() over (partition by reservation_id, day_at
        order by held_ms desc, coalesce(ahead_ms, 9000000000000000), left_ms desc, run_id) as rank_no
    from near
)

select
    reservation_id, cast(day_at as date) as usage_date, run_id,
    case when held_ms > 0 then 'it used the reservation that day'
        when ahead_ms is not null then 'it used the reservation next'
        else 'it used the reservation last' end as run_basis
from ranked
where rank_no = 1
