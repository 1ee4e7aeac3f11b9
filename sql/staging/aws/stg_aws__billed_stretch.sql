-- One row per source, payer, instance or job and unbroken stretch of its billed hours in a month; without one, all usage of the payer.
-- partition: billing_period, source_name
-- It shows whether a run that records no end still has its instances (stg_tracker__attempt).
with usage_hour as (
    select
        source_name, billing_period, bill_payer_account_id as payer_account_id,
        -- Of a SageMaker job's id (job_name), without an expression over every line.
        case when is_instance_id(line_item_resource_id) or line_item_resource_id like 'arn:%-job/%'
            then line_item_resource_id else '' end as resource_id,
        line_item_usage_start_date as started_at, line_item_usage_end_date as ended_at
    from aws_cur_line_item
    -- Fees lie in the future too.
    where line_item_line_item_type in ('Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage')

    union all

    select
        source_name, billing_period, billing_account_id,
        case when resource_id like 'arn:%-job/%' then resource_id
            else regexp_extract(coalesce(resource_id, ''), '^(arn:.*:instance/)?(i-.*)$', 2) end, charge_period_start, charge_period_end
    from aws_focus_line_item
    where charge_category = 'Usage' and commitment_discount_status is distinct from 'Unused'
),

-- One row per day for its whole hours, a bit each; per line for what is less than an hour.
day as (
    select
        source_name, billing_period, payer_account_id, resource_id, cast(started_at as date) as usage_date,
        case when not is_whole_hour then started_at end as part_started_at,
        case when not is_whole_hour then ended_at end as part_ended_at,
        min(started_at) as started_at, max(ended_at) as ended_at,
        bit_or(1 << cast(extract(hour from started_at) as integer)) as hour_bits
    from (
        select *, started_at = date_trunc('hour', started_at) and ended_at = started_at + interval 1 hour as is_whole_hour
        from usage_hour
        where ended_at > started_at and date_diff('second', started_at, ended_at) <= 3600
    ) as usage
    group by all
),

used as (
    select *, part_started_at is not null or bit_count(hour_bits) = date_diff('hour', started_at, ended_at) as is_unbroken
    from day
),

marked as (
    select
        *, case when started_at <= max(ended_at) over (partition by billing_period, payer_account_id, resource_id
            order by started_at, ended_at rows between unbounded preceding and 1 preceding) then 0 else 1 end as is_new
    from (
        select source_name, billing_period, payer_account_id, resource_id, started_at, ended_at from used where is_unbroken

        union all

        select
            source_name, billing_period, payer_account_id, resource_id, cast(usage_date as timestamp) + hour_no * interval 1 hour,
            cast(usage_date as timestamp) + (hour_no + 1) * interval 1 hour
        from used
        cross join (select unnest(range(24)) as hour_no) as clock
        where not is_unbroken and (hour_bits >> hour_no) & 1 = 1
    ) as stay
),

numbered as (
    select
        *, sum(is_new) over (partition by billing_period, payer_account_id, resource_id
            order by started_at, ended_at rows between unbounded preceding and current row) as stretch_no
    from marked
)

select source_name, billing_period, payer_account_id, resource_id, min(started_at) as started_at, max(ended_at) as ended_at
from numbered
group by source_name, billing_period, payer_account_id, resource_id, stretch_no
