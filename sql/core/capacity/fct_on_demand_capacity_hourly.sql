-- One row per delivered month × on-demand reservation of capacity × hour: the instance-hours used and unused, and what they cost.
-- partition: billing_period
select
    billing_period, payer_account_id, account_id, region_id, billing_currency, capacity_reservation_id,
    cast(date_trunc('hour', usage_started_at) as timestamp) as hour_started_at, instance_type, accelerator_family,
    sum(case when coalesce(bucket, '') = 'capacity_unused' then 0 else coalesce(instance_hours, 0) end) as used_hours,
    sum(case when coalesce(bucket, '') = 'capacity_unused' then coalesce(instance_hours, 0) else 0 end) as unused_hours,
    sum(case when coalesce(bucket, '') = 'capacity_unused' then 0 else effective_cost_usd end) as used_cost_usd,
    sum(case when coalesce(bucket, '') = 'capacity_unused' then effective_cost_usd else 0 end) as unused_cost_usd
from fct_charge
where capacity_reservation_id is not null and market not in ('capacity_block', 'spot') and instance_hours > 0
group by all
