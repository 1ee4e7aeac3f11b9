-- One row per workload × month × currency × baseline: what its Trainium runs avoided, at the list prices of the month.
-- A run counts in the month it ended, against the newest baseline frozen by that day, priced as of that day.
-- What was avoided is economic; cash takes off GPU commitments still paid for.
with run as (
    select
        run.run_id, run.workload_id, run.billing_currency, cast(run.ended_at as date) as ended_date, run.epoch_unit,
        run.epoch_completed_count, run.tokens_seen_count, run.effective_cost_usd, run.cost_to_target_usd,
        run.target_duration_ms, baseline.baseline_name, baseline.baseline_version, baseline.baseline_instance_type,
        baseline.region_id, baseline.unit_measure, baseline.hours_per_unit, baseline.hours_low_per_unit,
        baseline.hours_high_per_unit, baseline.paid_ratio
    from fct_run as run
    join declared_baseline as baseline
        on baseline.workload_id = run.workload_id and baseline.frozen_date <= cast(run.ended_at as date)
    where run.is_billed and run.accelerator_family = 'trainium'
    qualify row_number() over (partition by run.run_id order by baseline.frozen_date desc) = 1
),

price as (
    select run.run_id, max_by(book.price_per_hour_usd, book.from_date) as price_per_hour_usd
    from run
    join mart_price_book as book
        on book.offer = 'on_demand' and book.instance_type = run.baseline_instance_type
        and book.region_id = run.region_id and book.from_date <= run.ended_date
    group by run.run_id
),

restated as (
    select run_id, billing_currency, sum(cost_change_usd) as restated_cost_usd
    from fct_restated_figure
    where cost_basis = 'effective' and run_id is not null
    group by run_id, billing_currency
),

counted as (
    select
        run.*, cast(date_trunc('month', run.ended_date) as date) as month_date, restated.restated_cost_usd,
        cast(coalesce(case
            when unit_measure = 'cost_to_target' then case when target_duration_ms is not null then 1 end
            when unit_measure = 'cost_per_epoch' then case when epoch_unit = 'dataset_pass' then epoch_completed_count end
            else ratio(tokens_seen_count, 1000000) end, 0) as decimal(20, 6)) as unit_count,
        -- Up to its target, as the baseline is; a run that never reached it counts with its whole cost and no unit.
        case when unit_measure = 'cost_to_target' and target_duration_ms is not null then cost_to_target_usd
            else effective_cost_usd end as actual_cost_usd,
        -- The price book is in dollars.
        case when run.billing_currency = 'USD' then cast(price.price_per_hour_usd as double) * paid_ratio end
            as paid_per_hour
    from run
    left join price on price.run_id = run.run_id
    left join restated on restated.run_id = run.run_id and restated.billing_currency = run.billing_currency
),

ran as (
    select
        workload_id, month_date, billing_currency, baseline_name, max(baseline_version) as baseline_version,
        count(*) as run_count, sum(unit_count) as unit_count, known_sum(actual_cost_usd) as actual_cost_usd,
        cast(known_sum(ratio(unit_count * paid_per_hour * hours_per_unit, 1)) as decimal(20, 10)) as baseline_cost_usd,
        cast(known_sum(ratio(unit_count * paid_per_hour * hours_low_per_unit, 1)) as decimal(20, 10)) as baseline_low_cost_usd,
        cast(known_sum(ratio(unit_count * paid_per_hour * hours_high_per_unit, 1)) as decimal(20, 10)) as baseline_high_cost_usd,
        coalesce(sum(restated_cost_usd), 0) as restated_cost_usd
    from counted
    group by workload_id, month_date, billing_currency, baseline_name
),

adjusted as (
    select workload_id, month_date, billing_currency, baseline_name, baseline_version,
        sum(adjustment_usd) as adjustment_usd, count(*) as adjustment_count
    from detail_savings_adjustment
    group by workload_id, month_date, billing_currency, baseline_name, baseline_version
),

monthly as (
    select * from ran

    union all

    -- A month may be adjusted in which nothing ran.
    select workload_id, month_date, billing_currency, baseline_name, baseline_version, 0, 0, 0, 0, 0, 0, 0
    from adjusted
    anti join ran using (baseline_name, month_date, billing_currency)
),

lined as (
    select
        monthly.*, coalesce(adjusted.adjustment_usd, 0) as adjustment_usd,
        coalesce(adjusted.adjustment_count, 0) as adjustment_count,
        coalesce(unused.stranded_cost_usd, 0) as unused_cost_usd, coalesce(baseline_cost_usd, 0) as displaced_usd,
        sum(coalesce(baseline_cost_usd, 0)) over (partition by monthly.month_date, monthly.billing_currency)
            as all_displaced_usd,
        sum(coalesce(baseline_cost_usd, 0)) over (partition by monthly.month_date, monthly.billing_currency
            order by monthly.workload_id, monthly.baseline_name rows unbounded preceding) as displaced_so_far_usd
    from monthly
    left join adjusted on adjusted.baseline_name = monthly.baseline_name and adjusted.month_date = monthly.month_date
        and adjusted.billing_currency = monthly.billing_currency
    left join detail_stranded_commitment_monthly as unused
        on unused.month_date = monthly.month_date and unused.billing_currency = monthly.billing_currency
),

-- No more is stranded than was displaced; workloads share it by what each displaced.
stranded as (
    select *, piece_usd(least(unused_cost_usd, all_displaced_usd), displaced_so_far_usd - displaced_usd,
        displaced_so_far_usd, all_displaced_usd) as displaced_commitment_cost_usd
    from lined
)

select
    stranded.workload_id, month_date, billing_currency, baseline_name, baseline_version, frozen.baseline_sha256,
    run_count, unit_count, adjustment_count, ratio(baseline_cost_usd, unit_count) as baseline_unit_cost_usd,
    ratio(actual_cost_usd, unit_count) as actual_unit_cost_usd, baseline_cost_usd, actual_cost_usd, adjustment_usd,
    baseline_cost_usd - actual_cost_usd + adjustment_usd as avoided_cost_usd,
    baseline_low_cost_usd - actual_cost_usd + adjustment_usd as avoided_low_cost_usd,
    baseline_high_cost_usd - actual_cost_usd + adjustment_usd as avoided_high_cost_usd,
    displaced_commitment_cost_usd,
    baseline_cost_usd - actual_cost_usd + adjustment_usd - displaced_commitment_cost_usd as cash_avoided_cost_usd,
    restated_cost_usd,
    case when baseline_cost_usd is null
        then 'the price book has no price of the baseline for every run, or the bill is not in USD' end
        as missing_evidence
from stranded
left join declared_baseline as frozen using (baseline_name, baseline_version)
