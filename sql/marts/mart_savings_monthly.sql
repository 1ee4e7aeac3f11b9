-- One row per workload × month × currency × baseline: what its Trainium runs avoided, against the baseline at that month's prices.
-- A run counts in the month it ended. What was avoided is economic; cash takes off GPU commitments still paid for.
with counted as (
    select
        workload_id, cast(date_trunc('month', ended_date) as date) as month_date, billing_currency, baseline_name,
        baseline_version, run_id, unit_count, actual_cost_usd, baseline_cost_usd, baseline_low_cost_usd, baseline_high_cost_usd
    from fct_saving_run
),

restated as (
    select run_id, billing_currency, sum(cost_change_usd) as restated_cost_usd
    from fct_restated_figure
    where cost_basis = 'effective' and run_id is not null
    group by run_id, billing_currency
),

ran as (
    select
        counted.workload_id, month_date, counted.billing_currency, baseline_name, max(baseline_version) as baseline_version,
        count(*) as run_count, sum(unit_count) as unit_count, sum(actual_cost_usd) as actual_cost_usd,
        known_sum(baseline_cost_usd) as baseline_cost_usd,
        known_sum(baseline_low_cost_usd) as baseline_low_cost_usd,
        known_sum(baseline_high_cost_usd) as baseline_high_cost_usd,
        coalesce(sum(restated.restated_cost_usd), 0) as restated_cost_usd
    from counted
    left join restated on restated.run_id = counted.run_id and restated.billing_currency = counted.billing_currency
    group by counted.workload_id, month_date, counted.billing_currency, baseline_name
),

adjusted as (
    select baseline_name, month_date, billing_currency, sum(amount_usd) as adjustment_usd, count(*) as adjustment_count
    from declared_adjustment
    group by baseline_name, month_date, billing_currency
),

-- A month may be adjusted in which nothing ran.
newest as (
    select baseline_name, max(baseline_version) as baseline_version
    from declared_baseline
    group by baseline_name
),

quiet as (
    select baseline.workload_id, adjusted.month_date, adjusted.billing_currency, baseline.baseline_name, baseline.baseline_version
    from adjusted
    join newest on newest.baseline_name = adjusted.baseline_name
    join declared_baseline as baseline
        on baseline.baseline_name = newest.baseline_name and baseline.baseline_version = newest.baseline_version
    left join ran on ran.baseline_name = adjusted.baseline_name and ran.month_date = adjusted.month_date
        and ran.billing_currency = adjusted.billing_currency
    where ran.baseline_name is null
),

monthly as (
    select * from ran
    union all
    select workload_id, month_date, billing_currency, baseline_name, baseline_version, 0, 0, 0, 0, 0, 0, 0 from quiet
),

lined as (
    select
        monthly.*,
        coalesce(adjusted.adjustment_usd, 0) as adjustment_usd, coalesce(adjusted.adjustment_count, 0) as adjustment_count,
        coalesce(unused.stranded_cost_usd, 0) as unused_cost_usd,
        coalesce(baseline_cost_usd, 0) as displaced_usd,
        sum(coalesce(baseline_cost_usd, 0)) over (partition by monthly.month_date, monthly.billing_currency) as all_displaced_usd,
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
    select *, piece_usd(least(unused_cost_usd, all_displaced_usd), displaced_so_far_usd - displaced_usd, displaced_so_far_usd, all_displaced_usd) as displaced_commitment_cost_usd
    from lined
)

select
    workload_id, month_date, billing_currency, baseline_name, baseline_version, run_count, unit_count, adjustment_count,
    ratio(baseline_cost_usd, unit_count) as baseline_unit_cost_usd,
    ratio(actual_cost_usd, unit_count) as actual_unit_cost_usd,
    baseline_cost_usd, actual_cost_usd, adjustment_usd,
    baseline_cost_usd - actual_cost_usd + adjustment_usd as avoided_cost_usd,
    baseline_low_cost_usd - actual_cost_usd + adjustment_usd as avoided_low_cost_usd,
    baseline_high_cost_usd - actual_cost_usd + adjustment_usd as avoided_high_cost_usd,
    displaced_commitment_cost_usd,
    baseline_cost_usd - actual_cost_usd + adjustment_usd - displaced_commitment_cost_usd as cash_avoided_cost_usd,
    restated_cost_usd,
    case when baseline_cost_usd is null then 'the price book has no price of the baseline for every run, or the bill is not in USD' end as missing_evidence
from stranded
