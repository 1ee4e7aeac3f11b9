-- One row per month, resource and run that claims time on it the bill does not have; and per month and resource of billed time no run claims.
-- Accelerator-hours; machine-hours where there is no accelerator. Clocks differ by seconds: up to a minute a stay is no gap.
-- The month is that of the time: the bill of a later month may have it.
with recorded as (
    select billing_period, resource_id, run_id, started_ms, ended_ms, accelerators_used, 1 as machine_count
    from fct_resource_claim_monthly
    where not is_estimated(evidence) and run_id is not null and not is_before_month(billing_period, ended_ms)

    union all

    -- Machines of a type that the bill does not have then.
    select billing_period, resource_id, run_id, started_ms, ended_ms, accelerators_used, machine_count - fit_count
    from fct_resource_claim_monthly
    where match_kind = 'missing' and not is_before_month(billing_period, ended_ms)
),

billed as (
    select resource_id, max(capacity_count) as capacity_count, max(instance_type) as instance_type,
        max(accelerator_family) as accelerator_family, bool_or(is_job) as is_job
    from fct_resource_hourly group by resource_id
),

claimed as (
    select
        recorded.billing_period, recorded.resource_id, recorded.run_id,
        sum((recorded.ended_ms - recorded.started_ms) * coalesce(recorded.accelerators_used, billed.capacity_count, 1) * recorded.machine_count)
            as claimed_units,
        sum(60000 * coalesce(recorded.accelerators_used, billed.capacity_count, 1) * recorded.machine_count) as tolerated_units,
        max(billed.instance_type) as instance_type, max(billed.accelerator_family) as accelerator_family
    from recorded
    left join billed on billed.resource_id = recorded.resource_id
    -- A job is billed for its runs' time and no other, as AWS counts it; runs share an unlisted machine by time.
    where not coalesce(billed.is_job or billed.accelerator_family = 'unknown', false)
    group by recorded.billing_period, recorded.resource_id, recorded.run_id
),

-- Time that others claim too is on the bill.
shared as (
    select month_of(hour_started_at) as usage_month, resource_id, run_id,
        sum(greatest(upper_units - lower_units, case when is_overbooked then claimed_units end)) as shared_units
    from fct_resource_share_hourly where bucket = 'run'
    group by month_of(hour_started_at), resource_id, run_id
),

-- Hours of a Capacity Block are free, and cost their part of its fee.
piece as (
    select month_of(usage_date) as usage_month, *
    from fct_ledger
    where piece_kind in ('instance_hour', 'block_hour') and bucket <> 'capacity_unused'
),

-- What an hour of the resource cost, else one of its type; nothing where the month is billed in several currencies.
rate as (
    select hour.*, cost.billing_currency, cost.cost_usd
    from (select month_of(usage_date) as usage_month, resource_id, max(instance_type) as instance_type,
            sum(usage_quantity * greatest(accelerator_count, 1)) as hours
        from fct_charge where line_class = 'instance' and bucket is null
        group by month_of(usage_date), resource_id) as hour
    join (select usage_month, resource_id, billing_currency, known_sum(effective_cost_usd) as cost_usd
        from piece group by usage_month, resource_id, billing_currency
        qualify count(*) over (partition by usage_month, resource_id) = 1) as cost using (usage_month, resource_id)
),

type_rate as (
    select usage_month, instance_type, billing_currency, sum(cost_usd) as cost_usd, sum(hours) as hours
    from rate where cost_usd is not null
    group by usage_month, instance_type, billing_currency
    qualify count(*) over (partition by usage_month, instance_type) = 1
),

own_type as (
    select stay.resource_id, max(replace(stay.instance_type, 'ml.', '')) as instance_type,
        max(family_of(listed.accelerator_family, replace(stay.instance_type, 'ml.', ''))) as accelerator_family
    from stg_tracker__stay_monthly as stay
    left join ref_instance_type as listed on listed.instance_type = replace(stay.instance_type, 'ml.', '')
    where stay.stay_kind = 'machine' and stay.run_id is not null
    group by stay.resource_id
),

over as (
    select claimed.*, claimed.claimed_units - coalesce(shared.shared_units, 0) as gap_units
    from claimed
    left join shared on shared.usage_month = claimed.billing_period and shared.resource_id = claimed.resource_id
        and shared.run_id = claimed.run_id
),

beyond as (
    select
        over.billing_period, 'claimed_not_billed' as gap_kind, over.resource_id, over.run_id,
        coalesce(over.instance_type, own_type.instance_type) as instance_type,
        coalesce(over.accelerator_family, own_type.accelerator_family) as accelerator_family,
        coalesce(rate.billing_currency, type_rate.billing_currency) as billing_currency,
        cast(over.gap_units as double) / 3600000 as gap_hours,
        case when rate.resource_id is not null then ratio(cast(over.gap_units as double) / 3600000 * rate.cost_usd, rate.hours)
            else ratio(cast(over.gap_units as double) / 3600000 * type_rate.cost_usd, type_rate.hours) end as cost_at_stake_usd
    from over
    left join own_type on own_type.resource_id = over.resource_id
    left join rate on rate.usage_month = over.billing_period and rate.resource_id = over.resource_id
    left join type_rate on type_rate.usage_month = over.billing_period and type_rate.instance_type = own_type.instance_type
    where over.gap_units > over.tolerated_units
),

unclaimed as (
    select
        usage_month, 'billed_not_claimed' as gap_kind, resource_id, 'no run' as run_id, max(instance_type) as instance_type,
        max(accelerator_family) as accelerator_family, billing_currency,
        cast(sum(accelerator_hours) as double) as gap_hours, known_sum(effective_cost_usd) as cost_at_stake_usd
    from piece
    where (bucket in ('idle', 'unattributed') or evidence = 'tag_only') and accelerator_family <> 'none'
    group by usage_month, resource_id, billing_currency
)

select gap.billing_period, gap.gap_kind, gap.resource_id, gap.run_id, gap.instance_type, gap.accelerator_family, gap.billing_currency,
    run.team, run.owner, gap.gap_hours, gap.cost_at_stake_usd,
    count(*) over kind as kind_gap_count, sum(cast(gap.gap_hours as decimal(38, 10))) over kind as kind_gap_hours,
    sum(gap.cost_at_stake_usd) over kind as kind_cost_at_stake_usd
from (select * from beyond union all select * from unclaimed) as gap
left join dim_run as run on run.run_id = gap.run_id
window kind as (partition by gap.billing_period, gap.gap_kind, gap.billing_currency)
