-- One row per reservation of capacity × hour: the instance-hours it held, what used them, and what used and unused time cost.
-- On-demand reservations, Capacity Blocks and training plans alike, at the price paid: a plan may cover an idle reservation.
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
        sum(case when is_unused then 0 else effective_cost_usd end) as used_cost_usd,
        sum(case when is_unused then effective_cost_usd else 0 end) as unused_cost_usd
    from fct_capacity_block_hourly
    group by payer_account_id, account_id, region_id, billing_currency, block_id, hour_started_at, instance_type, accelerator_family
),

block as (
    select
        cost.payer_account_id, cost.account_id, cost.region_id, cost.billing_currency, cost.block_id as reservation_id,
        coalesce(kind.reservation_kind, case when cost.block_id like '%training-plan%' then 'training_plan' else 'capacity_block' end)
            as reservation_kind,
        cost.hour_started_at, cost.instance_type, cost.accelerator_family,
        coalesce(hours_of_ms(hour.used_ms), 0) as used_hours, coalesce(hours_of_ms(hour.unused_ms), 0) as unused_hours,
        cost.used_cost_usd, cost.unused_cost_usd
    from block_cost as cost
    left join block_hour as hour on hour.block_id = cost.block_id and hour.hour_started_at = cost.hour_started_at
    left join kind on kind.reservation_id = cost.block_id
),

on_demand as (
    select
        payer_account_id, account_id, region_id, billing_currency, capacity_reservation_id as reservation_id, 'odcr' as reservation_kind,
        hour_started_at, instance_type, accelerator_family,
        sum(used_hours) as used_hours, sum(unused_hours) as unused_hours,
        sum(used_cost_usd) as used_cost_usd, sum(unused_cost_usd) as unused_cost_usd
    from fct_on_demand_capacity_hourly
    group by payer_account_id, account_id, region_id, billing_currency, capacity_reservation_id, hour_started_at, instance_type,
        accelerator_family
)

select
    payer_account_id, account_id, region_id, billing_currency, reservation_id, reservation_kind, hour_started_at, instance_type,
    accelerator_family, used_hours, unused_hours, used_cost_usd, unused_cost_usd
from block

union all

select
    payer_account_id, account_id, region_id, billing_currency, reservation_id, reservation_kind, hour_started_at, instance_type,
    accelerator_family, used_hours, unused_hours, used_cost_usd, unused_cost_usd
from on_demand
