-- One row per billed Trainium run of a workload with a frozen baseline: what its units cost, and would have cost on the GPU.
-- The baseline is the newest one frozen by the day the run ended; its hours are priced at the list price of that day.
with run as (
    select run_id, workload_id, billing_currency, cast(ended_at as date) as ended_date, effective_cost_usd
    from fct_run
    where is_billed and accelerator_family = 'trainium' and ended_at is not null
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
        baseline.baseline_name, baseline.baseline_version, baseline.frozen_date, baseline.baseline_sha256,
        baseline.gpu_instance_type, baseline.region_id, baseline.unit_measure,
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
        on offered.instance_type = held.gpu_instance_type and offered.region_id = held.region_id and offered.from_date <= held.ended_date
    group by held.run_id
),

priced as (
    select
        held.*, offered.price_per_hour_usd, coalesce(unit.unit_count, 0) as unit_count,
        -- Up to its target, as the baseline is; a run that never reached it costs whole and makes nothing.
        case when held.unit_measure = 'cost_to_target' and unit.run_id is not null then unit.effective_cost_usd
            else held.effective_cost_usd end as actual_cost_usd,
        -- The price book is in dollars.
        case when held.billing_currency = 'USD'
            then cast(coalesce(unit.unit_count, 0) as double) * cast(offered.price_per_hour_usd as double) * held.paid_ratio end as unit_usd
    from held
    left join fct_run_unit as unit on unit.run_id = held.run_id and unit.unit_measure = held.unit_measure
    left join price_day on price_day.run_id = held.run_id
    left join offered
        on offered.instance_type = held.gpu_instance_type and offered.region_id = held.region_id and offered.from_date = price_day.from_date
)

select
    run_id, workload_id, billing_currency, ended_date, baseline_name, baseline_version, frozen_date, baseline_sha256,
    gpu_instance_type, unit_measure, unit_count, price_per_hour_usd, actual_cost_usd,
    ratio(unit_usd * hours_per_unit, 1) as baseline_cost_usd,
    ratio(unit_usd * hours_low_per_unit, 1) as baseline_low_cost_usd,
    ratio(unit_usd * hours_high_per_unit, 1) as baseline_high_cost_usd
from priced
