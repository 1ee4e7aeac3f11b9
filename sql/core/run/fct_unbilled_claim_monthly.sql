-- One row per month, resource and run that claims time on it the bill does not have.
-- Accelerator-hours; machine-hours where there is no accelerator. Clocks differ by seconds: up to a minute a stay is no gap.
-- The month is that of the time: the bill of a later month may have it. A month without a bill lacks the time of runs of other months.
with claim_of_month as (
    select claim.*, unix_ms(cast(billing_period || '-01' as timestamp) + interval 1 month) as month_ended_ms
    from fct_resource_claim_monthly as claim
    where not is_before_month(billing_period, ended_ms)
),

-- A past end inferred from the bill is that of an hour, and of the last machine: each was held to its own last second.
held as (
    select claim.run_id, claim.attempt_no, claim.resource_id, claim.ended_ms,
        max(greatest(unix_ms(attempt.last_seen_at), coalesce(hour.window_started_ms + hour.billed_ms, 0))) as held_until_ms
    from claim_of_month as claim
    join stg_tracker__attempt as attempt on attempt.run_id = claim.run_id and attempt.attempt_no = claim.attempt_no
        and attempt.is_end_inferred and not attempt.is_running and unix_ms(attempt.last_seen_at) < claim.ended_ms
    left join fct_resource_hourly as hour on hour.resource_id = claim.resource_id and hour.hour_ms < claim.ended_ms
    group by claim.run_id, claim.attempt_no, claim.resource_id, claim.ended_ms
),

recorded as (
    select billing_period, billing_period as rate_month, resource_id, run_id, started_ms,
        greatest(started_ms, least(ended_ms, month_ended_ms, held_until_ms)) as ended_ms, accelerators_used,
        -- Of a type that the bill has too few machines of then, those it lacks.
        case when match_kind = 'missing' then machine_count - fit_count else 1 end as machine_count
    from claim_of_month
    left join held using (run_id, attempt_no, resource_id, ended_ms)
    where started_ms < month_ended_ms and (match_kind = 'missing' or (not is_estimated(evidence) and run_id is not null))
),

-- A machine that only a tag names is the run's while it lasts.
stay as (
    select run_id, resource_id, joined_at, left_at, accelerators_used from stg_tracker__resource

    union all

    select attempt.run_id, machine.resource_id, attempt.started_at, attempt.ended_at, machine.accelerator_count
    from stg_tracker__attempt as attempt join fct_run_machine as machine on machine.run_id = attempt.run_id
    anti join stg_tracker__resource as known on known.run_id = attempt.run_id
),

undelivered as (
    select month_of(stay.month_at) as billing_period, delivered.rate_month, stay.resource_id, stay.run_id,
        unix_ms(greatest(stay.joined_at, stay.month_at)) as started_ms,
        unix_ms(least(stay.left_at, stay.month_at + interval 1 month)) as ended_ms, stay.accelerators_used
    from (select *, unnest(generate_series(date_trunc('month', joined_at), left_at, interval 1 month)) as month_at from stay) as stay
    join (select run_id, max(billing_period) as rate_month from stg_tracker__stay_monthly
        where stay_kind = 'attempt' and not is_before_month(billing_period, ended_ms)
        group by run_id) as delivered on delivered.run_id = stay.run_id
    anti join stg_tracker__stay_monthly as known on known.billing_period = month_of(stay.month_at)
),

billed as (
    select resource_id, max(capacity_count) as capacity_count, max(instance_type) as instance_type,
        max(accelerator_family) as accelerator_family, bool_or(is_job) as is_job from fct_resource_hourly group by resource_id
),

-- Time that others claim too is on the bill.
shared as (
    select month_of(hour_started_at) as usage_month, resource_id, run_id,
        sum(greatest(upper_units - lower_units, case when is_overbooked then claimed_units end)) as shared_units
    from fct_resource_share_hourly where bucket = 'run' group by month_of(hour_started_at), resource_id, run_id
),

claimed as (
    select claim.billing_period, claim.rate_month, claim.resource_id, claim.run_id,
        sum((claim.ended_ms - claim.started_ms) * least(coalesce(claim.accelerators_used, billed.capacity_count, 1),
            case when is_instance_id(claim.resource_id) then billed.capacity_count end) * claim.machine_count)
            - coalesce(max(shared.shared_units), 0) as gap_units,
        sum(60000 * coalesce(claim.accelerators_used, billed.capacity_count, 1) * claim.machine_count) as tolerated_units,
        max(billed.instance_type) as instance_type, max(billed.accelerator_family) as accelerator_family
    from (select recorded.* from recorded
        left join billed on billed.resource_id = recorded.resource_id
        -- A Spot instance that AWS takes back within its first hour costs nothing.
        anti join stg_tracker__attempt as attempt on attempt.end_reason like '%spot%'
            and attempt.run_id = case when billed.resource_id is null then recorded.run_id end and unix_ms(attempt.started_at) <= recorded.started_ms
            and unix_ms(attempt.ended_at) between recorded.ended_ms and recorded.started_ms + 3600000
        -- A job is billed for its runs' time and no other, as AWS counts it; runs share an unlisted machine by time.
        where not coalesce(billed.is_job or billed.accelerator_family = 'unknown', false)
        union all
        select *, 1 from undelivered
    ) as claim
    left join billed on billed.resource_id = claim.resource_id
    left join shared on shared.usage_month = claim.billing_period and shared.resource_id = claim.resource_id
        and shared.run_id = claim.run_id
    group by claim.billing_period, claim.rate_month, claim.resource_id, claim.run_id
),

-- What an hour of the resource cost, else one of its type; nothing where the month is billed in several currencies.
rate as (
    select hour.*, cost.billing_currency, cost.cost_usd
    from (select month_of(usage_date) as usage_month, resource_id, max(instance_type) as instance_type,
            sum(usage_quantity * greatest(accelerator_count, 1)) as hours from fct_charge where line_class = 'instance' and bucket is null
        group by month_of(usage_date), resource_id) as hour
    -- Hours of a Capacity Block are free, and cost their part of its fee.
    join (select month_of(usage_date) as usage_month, resource_id, billing_currency, known_sum(effective_cost_usd) as cost_usd
        from fct_ledger where piece_kind in ('instance_hour', 'block_hour') and bucket <> 'capacity_unused'
        group by month_of(usage_date), resource_id, billing_currency
        qualify count(*) over (partition by month_of(usage_date), resource_id) = 1) as cost using (usage_month, resource_id)
),

type_rate as (
    select usage_month, instance_type, billing_currency, sum(cost_usd) as cost_usd, sum(hours) as hours
    from rate where cost_usd is not null group by usage_month, instance_type, billing_currency
    qualify count(*) over (partition by usage_month, instance_type) = 1
)

select claimed.billing_period, claimed.resource_id, claimed.run_id,
    coalesce(claimed.instance_type, own_type.instance_type) as instance_type,
    coalesce(claimed.accelerator_family, own_type.accelerator_family) as accelerator_family,
    coalesce(rate.billing_currency, type_rate.billing_currency) as billing_currency,
    cast(claimed.gap_units as double) / 3600000 as gap_hours,
    case when rate.resource_id is not null then ratio(cast(claimed.gap_units as double) / 3600000 * rate.cost_usd, rate.hours)
        else ratio(cast(claimed.gap_units as double) / 3600000 * type_rate.cost_usd, type_rate.hours) end as cost_at_stake_usd
from claimed
left join (select resource_id, max(replace(instance_type, 'ml.', '')) as instance_type, max(accelerator_family) as accelerator_family
    from stg_tracker__resource group by resource_id) as own_type on own_type.resource_id = claimed.resource_id
left join rate on rate.usage_month = claimed.rate_month and rate.resource_id = claimed.resource_id
left join type_rate on type_rate.usage_month = claimed.rate_month and type_rate.instance_type = own_type.instance_type
where claimed.gap_units > claimed.tolerated_units
