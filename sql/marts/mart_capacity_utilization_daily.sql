-- One row per reservation of capacity × day: hours held and used, what the idle ones cost at the price paid, and whose run they were held for.
with day as (
    select
        cast(hour_started_at as date) as usage_date, reservation_id, reservation_kind, payer_account_id, account_id, region_id,
        billing_currency, instance_type, accelerator_family,
        sum(used_hours) + sum(unused_hours) as held_hours,
        sum(used_hours) as used_hours,
        sum(unused_hours) as unused_hours,
        capacity_utilization_ratio(used_hours, unused_hours) as capacity_utilization_ratio,
        sum(used_cost_usd) as used_cost_usd,
        sum(unused_cost_usd) as unused_cost_usd
    from fct_capacity_use_hourly
    group by cast(hour_started_at as date), reservation_id, reservation_kind, payer_account_id, account_id, region_id, billing_currency,
        instance_type, accelerator_family
)

select
    day.usage_date, day.reservation_id, day.reservation_kind, day.payer_account_id, day.account_id, day.region_id, day.billing_currency,
    day.instance_type, day.accelerator_family, day.held_hours, day.used_hours, day.unused_hours, day.capacity_utilization_ratio,
    day.used_cost_usd, day.unused_cost_usd, day.used_cost_usd + day.unused_cost_usd as capacity_cost_usd,
    expected.run_id as expected_run_id, run.owner as likely_owner, run.team as likely_team,
    coalesce(expected.run_basis, 'no run is known to have used the reservation') as owner_guess_basis
from day
left join fct_capacity_expected_run_daily as expected
    on expected.reservation_id = day.reservation_id and expected.usage_date = day.usage_date
left join dim_run as run on run.run_id = expected.run_id
