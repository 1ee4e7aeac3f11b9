-- One row per reservation of capacity × day: hours held and used, what the idle ones cost at the price paid, and whose run they were held for.
with day as (
    select
        cast(hour_started_at as date) as usage_date, reservation_id, reservation_kind, payer_account_id, account_id, region_id,
        billing_currency, instance_type, accelerator_family,
        sum(held_hours) as held_hours,
        sum(used_hours) as used_hours,
        sum(unused_hours) as unused_hours,
        capacity_utilization_ratio(used_hours, unused_hours) as capacity_utilization_ratio,
        known_sum(used_cost_usd) as used_cost_usd,
        known_sum(unused_cost_usd) as unused_cost_usd
    from detail_capacity_use_hourly
    group by cast(hour_started_at as date), reservation_id, reservation_kind, payer_account_id, account_id, region_id, billing_currency,
        instance_type, accelerator_family
),

-- Which machines ran in which reservation, where the runs themselves do not record it.
machine as (
    select distinct resource_id, capacity_reservation_id as reservation_id
    from fct_resource_hourly
    where capacity_reservation_id is not null

    union

    select distinct resource_id, block_id
    from fct_capacity_block_use_hourly
    where not is_unused
),

stay as (
    select capacity_reservation_id as reservation_id, run_id, joined_at, left_at
    from stg_tracker__resource
    where capacity_reservation_id is not null

    union all

    select machine.reservation_id, stay.run_id, stay.joined_at, stay.left_at
    from stg_tracker__resource as stay
    join machine on machine.resource_id = stay.resource_id
    where stay.capacity_reservation_id is null
),

near as (
    select
        day.reservation_id, day.day_at, stay.run_id,
        sum(greatest(least(unix_ms(stay.left_at), unix_ms(day.day_at) + 86400000) - greatest(unix_ms(stay.joined_at), unix_ms(day.day_at)), 0))
            as held_ms,
        min(case when stay.joined_at >= day.day_at then unix_ms(stay.joined_at) - unix_ms(day.day_at) end) as ahead_ms,
        max(unix_ms(stay.left_at)) as left_ms
    from (select distinct reservation_id, cast(usage_date as timestamp) as day_at from day) as day
    join stay on stay.reservation_id = day.reservation_id
    group by day.reservation_id, day.day_at, stay.run_id
),

-- The run that used the reservation longest that day; else the one that used it next; else the one that used it last.
expected as (
    select *, row_number() over (partition by reservation_id, day_at
        order by held_ms desc, coalesce(ahead_ms, 9000000000000000), left_ms desc, run_id) as rank_no
    from near
)

select
    day.usage_date, day.reservation_id, day.reservation_kind, day.payer_account_id, day.account_id, day.region_id, day.billing_currency,
    day.instance_type, day.accelerator_family, day.held_hours, day.used_hours, day.unused_hours, day.capacity_utilization_ratio,
    day.used_cost_usd, day.unused_cost_usd, day.used_cost_usd + day.unused_cost_usd as capacity_cost_usd,
    sum(day.held_hours) over month as month_held_hours,
    sum(day.used_hours) over month as month_used_hours,
    ratio(sum(day.used_hours) over month, sum(day.used_hours + day.unused_hours) over month) as month_utilization_ratio,
    case when count(day.unused_cost_usd) over month = count(*) over month then sum(day.unused_cost_usd) over month end
        as month_unused_cost_usd,
    case when count(day.used_cost_usd + day.unused_cost_usd) over month = count(*) over month
        then sum(day.used_cost_usd + day.unused_cost_usd) over month end as month_capacity_cost_usd,
    expected.run_id as expected_run_id, run.owner as likely_owner, run.team as likely_team,
    case
        when expected.held_ms > 0 then 'it used the reservation that day'
        when expected.ahead_ms is not null then 'it used the reservation next'
        when expected.run_id is not null then 'it used the reservation last'
        else 'no run is known to have used the reservation'
    end as owner_guess_basis,
    case
        when day.reservation_kind = 'odcr' then null
        when declared.reservation_id is not null then 'declared'
        when inferred.block_id is not null then 'inferred'
        else 'unknown'
    end as window_evidence
from day
left join (select distinct reservation_id from stg_aws__capacity_reservation
    where started_at is not null and ended_at is not null) as declared on declared.reservation_id = day.reservation_id
left join (select distinct block_id from fct_capacity_block_use_hourly where window_ended_at is not null) as inferred
    on inferred.block_id = day.reservation_id
left join expected
    on expected.reservation_id = day.reservation_id and cast(expected.day_at as date) = day.usage_date and expected.rank_no = 1
left join dim_run as run on run.run_id = expected.run_id
window month as (partition by date_trunc('month', day.usage_date), day.reservation_id, day.reservation_kind, day.instance_type, day.billing_currency)
