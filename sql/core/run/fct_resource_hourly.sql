-- One row per billed resource and hour that a run could use, and where in the hour its billed seconds lie.
-- partition: billing_period
-- A resource that a run held, or whose tag named one, keeps its claim across the month's end as long as it stays up.
-- Several lines share an instance-hour (part Savings Plan, part on demand, part corrected): sum them first. What takes
-- all of its time back leaves the time it had; what gives money back for time on no line here is of the whole hour.
with resource_hour as (
    select
        billing_period,
        resource_id,
        usage_started_at as hour_started_at,
        unix_ms(usage_started_at) as hour_ms,
        cast(round(case when has_time(sum(usage_quantity)) then sum(usage_quantity)
            when has_time(sum(greatest(usage_quantity, 0))) then sum(greatest(usage_quantity, 0))
            else 1 end * 3600000) as bigint) as billed_ms,
        max(instance_type) as instance_type,
        nullif(min(instance_type), max(instance_type)) as other_instance_type,
        max(accelerator_family) as accelerator_family,
        greatest(max(accelerator_count), 1) as capacity_count,
        max(capacity_reservation_id) as capacity_reservation_id,
        max(tag_run_id) as tag_run_id, nullif(min(tag_run_id), max(tag_run_id)) as other_tag_run_id,
        max(account_id) as account_id, max(region_id) as region_id,
        job_name(resource_id) is not null as is_job, is_instance_id(resource_id) as is_instance,
        is_before_month(billing_period, unix_ms(usage_started_at) + 3600000) as is_late
    from fct_charge
    where line_class = 'instance'
    group by billing_period, resource_id, usage_started_at
    having has_time(sum(greatest(usage_quantity, 0))) or min(effective_cost_usd) < 0
),

earlier as (
    select distinct coalesce(resource_id, run_id) as held_key from stg_tracker__stay_monthly where stay_kind = 'earlier'
)

select
    billing_period, resource_id, hour_started_at, hour_ms, billed_ms,
    instance_type, other_instance_type, accelerator_family, capacity_count,
    -- A machine fills an hour once: who used it pays what is billed beyond it. A second is rounding.
    capacity_count * case when is_instance and billed_ms > 3601000 then 3600000 else billed_ms end as billed_units,
    -- A job or a cluster bills several machines' hours in one; ten seconds are rounding.
    capacity_count * case when is_instance then 1 else greatest((billed_ms + 3590000) // 3600000, 1) end as whole_count,
    capacity_reservation_id, tag_run_id, other_tag_run_id, account_id, region_id, is_job,
    window_started_ms(hour_ms, billed_ms, lag(hour_ms) over neighbor, lead(hour_ms) over neighbor) as window_started_ms,
    window_ended_ms(hour_ms, billed_ms, lag(hour_ms) over neighbor, lead(hour_ms) over neighbor) as window_ended_ms,
    -- Of usage billed late the month before has the other hours; there the time that no run used is idle.
    (held.held_key is not null or named.held_key is not null)
        and (is_late or hour_ms - unix_ms(cast(billing_period || '-01' as timestamp))
            = (row_number() over (partition by resource_id, is_late order by hour_ms) - 1) * 3600000)
        as was_held_before
from resource_hour
left join earlier as held on held.held_key = resource_id
left join earlier as named on named.held_key = tag_run_id
window neighbor as (partition by resource_id order by hour_ms)
