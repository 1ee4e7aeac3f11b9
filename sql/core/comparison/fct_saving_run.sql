-- One row per billed Trainium run of a workload with a frozen baseline: what its units cost, and would have cost on the GPU.
-- The baseline is the newest one frozen by the day the run ended; its hours are priced at the list price of that day.
with run as (
    select
        described.run_id, described.workload_id, cost.billing_currency, cast(described.ended_at as date) as ended_date, cost.effective_cost_usd,
        case when described.epoch_unit = 'dataset_pass' then described.epoch_completed_count end as epoch_count,
        ratio(described.tokens_seen_count, 1000000) as million_token_count
    from dim_run as described
    join fct_run_cost as cost on cost.run_id = described.run_id
    where cost.is_billed and cost.accelerator_family = 'trainium' and described.ended_at is not null
),

dated as (
    select run.run_id, max(baseline.frozen_date) as frozen_date
    from run
    join declared_baseline as baseline on baseline.workload_id = run.workload_id and baseline.frozen_date <= run.ended_date
    group by run.run_id
),

held as (
    select
        run.run_id, run.workload_id, run.billing_currency, run.ended_date, run.effective_cost_usd,
        run.epoch_count, run.million_token_count,
        baseline.baseline_name, baseline.baseline_version, baseline.frozen_date, baseline.baseline_sha256,
        baseline.baseline_instance_type, baseline.region_id, baseline.unit_measure,
        baseline.hours_per_unit, baseline.hours_low_per_unit, baseline.hours_high_per_unit, baseline.paid_ratio
    from run
    join dated on dated.run_id = run.run_id
    join declared_baseline as baseline on baseline.workload_id = run.workload_id and baseline.frozen_date = dated.frozen_date
),

offered as (
    select instance_type, region_id, from_date, price_per_hour_usd
    from dim_list_price
    where offer = 'on_demand'
),

price_day as (
    select held.run_id, max(offered.from_date) as from_date
    from held
    join offered
        on offered.instance_type = held.baseline_instance_type and offered.region_id = held.region_id and offered.from_date <= held.ended_date
    group by held.run_id
),

target as (
    select run_id, effective_cost_usd
    from fct_interval_cost
    where interval_kind = 'target' and interval_key = '1'
),

counted as (
    select
        held.*,
        cast(coalesce(case held.unit_measure
            when 'cost_to_target' then case when target.run_id is not null then 1 end
            when 'cost_per_epoch' then held.epoch_count
            else held.million_token_count end, 0) as decimal(20, 6)) as unit_count,
        -- Up to its target, as the baseline is; a run that never reached it counts with its whole cost and no unit.
        case when held.unit_measure = 'cost_to_target' and target.run_id is not null then target.effective_cost_usd
            else held.effective_cost_usd end as actual_cost_usd
    from held
    left join target on target.run_id = held.run_id
),

priced as (
    select
        counted.*, offered.price_per_hour_usd,
        -- The price book is in dollars.
        case when counted.billing_currency = 'USD'
            then cast(counted.unit_count as double) * cast(offered.price_per_hour_usd as double) * counted.paid_ratio end as unit_usd
    from counted
    left join price_day on price_day.run_id = counted.run_id
    left join offered
        on offered.instance_type = counted.baseline_instance_type and offered.region_id = counted.region_id
        and offered.from_date = price_day.from_date
)

select
    run_id, workload_id, billing_currency, ended_date, baseline_name, baseline_version, frozen_date, baseline_sha256,
    baseline_instance_type, unit_measure, unit_count, price_per_hour_usd, actual_cost_usd,
    ratio(unit_usd * hours_per_unit, 1) as baseline_cost_usd,
    ratio(unit_usd * hours_low_per_unit, 1) as baseline_low_cost_usd,
    ratio(unit_usd * hours_high_per_unit, 1) as baseline_high_cost_usd
from priced
