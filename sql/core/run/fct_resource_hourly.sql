-- One row per billed resource and hour that a run could use, and where in the hour its billed seconds lie.
-- partition: billing_period
with resource_hour as (
    select
        billing_period,
        resource_id,
        usage_started_at as hour_started_at,
        unix_ms(usage_started_at) as hour_ms,
        -- Several lines share an instance-hour (part Savings Plan, part on demand): sum them first.
        cast(round(sum(usage_quantity) * 3600000) as bigint) as billed_ms,
        max(account_id) as account_id,
        max(region_id) as region_id,
        max(instance_type) as instance_type,
        nullif(min(instance_type), max(instance_type)) as other_instance_type,
        max(accelerator_family) as accelerator_family,
        greatest(max(accelerator_count), 1) as capacity_count,
        max(capacity_reservation_id) as capacity_reservation_id,
        max(tag_run_id) as tag_run_id,
        job_name(resource_id) is not null as is_job
    from fct_charge
    where line_class = 'instance'
    group by billing_period, resource_id, usage_started_at
)

select
    billing_period, resource_id, hour_started_at, hour_ms, billed_ms,
    account_id, region_id, instance_type, other_instance_type, accelerator_family, capacity_count, billed_ms * capacity_count as billed_units,
    capacity_reservation_id, tag_run_id, is_job,
    window_started_ms(hour_ms, billed_ms, lag(hour_ms) over neighbor, lead(hour_ms) over neighbor) as window_started_ms,
    window_ended_ms(hour_ms, billed_ms, lag(hour_ms) over neighbor, lead(hour_ms) over neighbor) as window_ended_ms
from resource_hour
window neighbor as (partition by resource_id order by hour_ms)
