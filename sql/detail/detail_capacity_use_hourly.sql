-- One row per reservation of capacity × hour: the instance-hours it held, what used them, and what used and unused time cost.
-- On-demand reservations, Capacity Blocks and training plans alike, at the price paid: a plan may cover an idle reservation.
-- A cost is null where the bill has none of some of the time.
with kind as (
    select reservation_id, max(reservation_kind) as reservation_kind
    from stg_aws__capacity_reservation
    group by reservation_id
),

block_hour as (
    select block_id, hour_started_at,
        sum(case when is_unused then 0 else upper_units - lower_units end) as used_ms,
        sum(case when is_unused then upper_units - lower_units else 0 end) as unused_ms
    from fct_capacity_block_use_hourly
    group by block_id, hour_started_at
),

block_cost as (
    select
        payer_account_id, account_id, region_id, billing_currency, block_id, hour_started_at, instance_type, accelerator_family,
        known_sum(case when bucket = 'capacity_unused' then 0 else effective_cost_usd end) as used_cost_usd,
        known_sum(case when bucket = 'capacity_unused' then effective_cost_usd else 0 end) as unused_cost_usd
    from fct_capacity_block_piece
    group by payer_account_id, account_id, region_id, billing_currency, block_id, hour_started_at, instance_type, accelerator_family
),

block as (
    select
        cost.block_id as reservation_id,
        coalesce(kind.reservation_kind, block_kind(cost.block_id)) as reservation_kind,
        cost.payer_account_id, cost.account_id, cost.region_id, cost.billing_currency, cost.instance_type, cost.accelerator_family,
        cost.hour_started_at, coalesce(hours_of_ms(hour.used_ms), 0) as used_hours, coalesce(hours_of_ms(hour.unused_ms), 0) as unused_hours,
        cost.used_cost_usd, cost.unused_cost_usd
    from block_cost as cost
    left join block_hour as hour on hour.block_id = cost.block_id and hour.hour_started_at = cost.hour_started_at
    left join kind on kind.reservation_id = cost.block_id
),

on_demand as (
    select *, coalesce(bucket, '') = 'capacity_unused' as is_unused
    from fct_charge
    where capacity_reservation_id is not null and market not in ('capacity_block', 'spot') and instance_hours > 0
),

hourly as (
    select * from block

    union all

    select
        capacity_reservation_id, 'odcr', payer_account_id, account_id, region_id, billing_currency, instance_type, accelerator_family,
        cast(date_trunc('hour', usage_started_at) as timestamp),
        sum(case when is_unused then 0 else instance_hours end), sum(case when is_unused then instance_hours else 0 end),
        known_sum(case when is_unused then 0 else effective_cost_usd end), known_sum(case when is_unused then effective_cost_usd else 0 end)
    from on_demand
    group by capacity_reservation_id, payer_account_id, account_id, region_id, billing_currency, instance_type, accelerator_family,
        cast(date_trunc('hour', usage_started_at) as timestamp)
)

select
    reservation_id, reservation_kind, payer_account_id, account_id, region_id, billing_currency, instance_type, accelerator_family,
    hour_started_at,
    sum(used_hours) + sum(unused_hours) as held_hours,
    sum(used_hours) as used_hours,
    sum(unused_hours) as unused_hours,
    known_sum(used_cost_usd) as used_cost_usd,
    known_sum(unused_cost_usd) as unused_cost_usd
from hourly
group by reservation_id, reservation_kind, payer_account_id, account_id, region_id, billing_currency, instance_type, accelerator_family,
    hour_started_at
