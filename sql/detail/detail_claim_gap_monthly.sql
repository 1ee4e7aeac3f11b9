-- One row per month, resource and run that claims time on it the bill does not have; and per month and resource of billed time no run claims.
-- partition: billing_period
-- Accelerator-hours; machine-hours where there is no accelerator. Clocks differ by seconds: up to a minute a stay is no gap.
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
    from fct_resource_hourly
    group by resource_id
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
    select resource_id, run_id, sum(greatest(upper_units - lower_units, case when is_overbooked then claimed_units end)) as shared_units
    from fct_resource_share_hourly
    where bucket = 'run' and not is_before_month(billing_period, ended_ms)
    group by resource_id, run_id
),

-- What an hour of the resource cost, else one of its type; nothing where the month is billed in several currencies.
rate_by_currency as (
    select resource_id, instance_type, billing_currency, sum(effective_cost_usd) as cost_usd,
        sum(usage_quantity * greatest(accelerator_count, 1)) as hours,
        count(*) over (partition by resource_id, instance_type) as currency_count
    from fct_charge
    where line_class = 'instance' and bucket is null
    group by resource_id, instance_type, billing_currency
),

rate as (select * from rate_by_currency where currency_count = 1),

type_rate_by_currency as (
    select instance_type, billing_currency, sum(cost_usd) as cost_usd, sum(hours) as hours,
        count(*) over (partition by instance_type) as currency_count
    from rate
    group by instance_type, billing_currency
),

type_rate as (select * from type_rate_by_currency where currency_count = 1),

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
    left join shared on shared.resource_id = claimed.resource_id and shared.run_id = claimed.run_id
),

beyond as (
    select
        over.billing_period, 'claimed_not_billed' as gap_kind, over.resource_id, over.run_id,
        coalesce(over.instance_type, own_type.instance_type) as instance_type,
        coalesce(over.accelerator_family, own_type.accelerator_family) as accelerator_family,
        coalesce(rate.billing_currency, type_rate.billing_currency) as billing_currency,
        cast(over.gap_units as double) / 3600000 as gap_hours,
        ratio(cast(over.gap_units as double) / 3600000 * coalesce(rate.cost_usd, type_rate.cost_usd),
            coalesce(rate.hours, type_rate.hours)) as cost_at_stake_usd
    from over
    left join own_type on own_type.resource_id = over.resource_id
    left join rate on rate.resource_id = over.resource_id
    left join type_rate on type_rate.instance_type = own_type.instance_type
    where over.gap_units > over.tolerated_units
),

unclaimed as (
    select
        billing_period, 'billed_not_claimed' as gap_kind, resource_id, 'no run' as run_id, max(instance_type) as instance_type,
        max(accelerator_family) as accelerator_family, billing_currency,
        cast(sum(accelerator_hours) as double) as gap_hours, sum(effective_cost_usd) as cost_at_stake_usd
    from fct_ledger_piece
    where piece_kind = 'instance_hour' and bucket in ('idle', 'unattributed') and accelerator_family <> 'none'
    group by billing_period, resource_id, billing_currency
),

-- Of the month alone: a run of today leaves the rows of other months as they are.
run as (
    select run_id, max(team) as team, max(owner) as owner from stg_tracker__stay_monthly group by run_id
)

select gap.billing_period, gap.gap_kind, gap.resource_id, gap.run_id, gap.instance_type, gap.accelerator_family, gap.billing_currency,
    run.team, run.owner, gap.gap_hours, gap.cost_at_stake_usd,
    count(*) over kind as kind_gap_count, sum(cast(gap.gap_hours as decimal(38, 10))) over kind as kind_gap_hours,
    sum(gap.cost_at_stake_usd) over kind as kind_cost_at_stake_usd
from (select * from beyond union all select * from unclaimed) as gap
left join run on run.run_id = gap.run_id
window kind as (partition by gap.billing_period, gap.gap_kind, gap.billing_currency)
