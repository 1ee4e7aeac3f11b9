-- One row per reservation of capacity × hour: what was held and what used it, plan beside use.
select
    reservation_id, reservation_kind, payer_account_id, account_id, region_id, billing_currency, instance_type, accelerator_family,
    hour_started_at,
    sum(used_hours) + sum(unused_hours) as held_hours,
    sum(used_hours) as used_hours,
    sum(unused_hours) as unused_hours,
    sum(used_cost_usd) as used_cost_usd,
    sum(unused_cost_usd) as unused_cost_usd
from fct_capacity_use_hourly
group by reservation_id, reservation_kind, payer_account_id, account_id, region_id, billing_currency, instance_type, accelerator_family,
    hour_started_at
