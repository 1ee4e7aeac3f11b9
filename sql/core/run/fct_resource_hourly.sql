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
),

neighbour as (
    select
        *,
        lag(hour_ms) over (partition by resource_id order by hour_ms) = hour_ms - 3600000 as has_hour_before,
        lead(hour_ms) over (partition by resource_id order by hour_ms) = hour_ms + 3600000 as has_hour_after
    from resource_hour
)

-- The bill does not say where in the hour the seconds lie. A first hour ends on the hour, a last hour starts on
-- it (facts training-runs 4); a lone short hour could lie anywhere, so its window is the whole hour.
select
    billing_period, resource_id, hour_started_at, hour_ms, billed_ms,
    account_id, region_id, instance_type, other_instance_type, accelerator_family, capacity_count, billed_ms * capacity_count as billed_units,
    capacity_reservation_id, tag_run_id, is_job,
    case when coalesce(has_hour_after, false) and not coalesce(has_hour_before, false)
        then hour_ms + 3600000 - least(billed_ms, 3600000) else hour_ms end as window_started_ms,
    case when coalesce(has_hour_before, false) and not coalesce(has_hour_after, false)
        then hour_ms + least(billed_ms, 3600000) else hour_ms + 3600000 end as window_ended_ms
from neighbour
