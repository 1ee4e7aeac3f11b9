-- One row per workload × month × currency × baseline: what its Trainium runs avoided, at the list prices of the month.
-- What was avoided is economic; cash takes off GPU commitments still paid for.
-- The difference is split by log shares: the chip (hours of runs that did the work, at on-demand prices), the rate
-- (what was paid of these prices) and operations (failed runs); the parts sum to it exactly.
with proven as (
    select distinct
        workload_id, billing_currency, baseline_instance_type, candidate_instance_type as instance_type, true as is_proven
    from mart_silicon_comparison
    where verdict = 'proven' and cost_basis = coalesce(registered_cost_basis, 'effective')
),

ran as (
    select
        run.workload_id, month_date, run.billing_currency, baseline_name, max(baseline_version) as baseline_version,
        case when bool_and(baseline_evidence = 'measured') then 'measured' else 'asserted' end as baseline_evidence,
        bool_and(proven.is_proven is not null and unbilled_hours is null) as is_proven,
        string_agg(max(missing_evidence), '; ') over month as missing_evidence, count(distinct job_id) as run_count,
        known_sum(unit_count) as unit_count, known_sum(actual_cost_usd) as actual_cost_usd,
        known_sum(baseline_cost_usd) as baseline_cost_usd, known_sum(baseline_low_cost_usd) as baseline_low_cost_usd,
        known_sum(baseline_high_cost_usd) as baseline_high_cost_usd,
        known_sum(baseline_on_demand_cost_usd) as baseline_listed_usd,
        known_sum(baseline_success_on_demand_cost_usd) as baseline_success_usd,
        known_sum(hours_on_demand_cost_usd) as listed_usd,
        known_sum(case when job_unit_count = 0 then 0 else hours_on_demand_cost_usd end) as success_usd,
        sum(restated_cost_usd) as restated_cost_usd
    from (select *, sum(unit_count) over (partition by job_id, baseline_name) as job_unit_count from detail_savings_run) as run
    left join proven using (workload_id, billing_currency, baseline_instance_type, instance_type)
    group by run.workload_id, month_date, run.billing_currency, baseline_name, is_other_work
    -- Runs of other work are left out, and stand alone where nothing else ran.
    window month as (partition by baseline_name, month_date, run.billing_currency)
    qualify row_number() over (partition by baseline_name, month_date, run.billing_currency order by is_other_work) = 1
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
    select workload_id, month_date, billing_currency, baseline_name, baseline_version,
        null, false, null, 0, 0, 0, 0, 0, 0, null, null, null, null, 0
    from adjusted
    anti join ran using (baseline_name, month_date, billing_currency)
),

lined as (
    select
        monthly.*, coalesce(adjusted.adjustment_usd, 0) as adjustment_usd,
        coalesce(adjusted.adjustment_count, 0) as adjustment_count,
        case when unused.month_date is null then 0 else still_committed_cost_usd end as unused_cost_usd,
        coalesce(baseline_cost_usd, 0) as displaced_usd,
        sum(coalesce(baseline_cost_usd, 0)) over (partition by monthly.month_date, monthly.billing_currency)
            as all_displaced_usd,
        sum(coalesce(baseline_cost_usd, 0)) over (partition by monthly.month_date, monthly.billing_currency
            order by monthly.workload_id, monthly.baseline_name rows unbounded preceding) as displaced_so_far_usd
    from monthly
    left join adjusted using (baseline_name, month_date, billing_currency)
    left join detail_savings_commitment_monthly as unused using (month_date, billing_currency)
),

-- No more is stranded than was displaced, nor less than nothing after a refund; workloads share it by what each displaced.
stranded as (
    select *, case when unused_cost_usd is not null or all_displaced_usd = 0
            then piece_usd(least(greatest(unused_cost_usd, 0), all_displaced_usd), displaced_so_far_usd - displaced_usd,
                displaced_so_far_usd, all_displaced_usd) end as displaced_commitment_cost_usd,
        baseline_cost_usd - actual_cost_usd as difference_usd,
        ln(case when baseline_cost_usd > 0 then cast(baseline_cost_usd as double) end) as baseline_log,
        ln(case when actual_cost_usd > 0 then cast(actual_cost_usd as double) end) as actual_log,
        ln(case when baseline_listed_usd > 0 then cast(baseline_listed_usd as double) end) as baseline_listed_log,
        ln(case when baseline_success_usd > 0 then cast(baseline_success_usd as double) end) as baseline_success_log,
        ln(case when listed_usd > 0 then cast(listed_usd as double) end) as listed_log,
        ln(case when success_usd > 0 then cast(success_usd as double) end) as success_log
    from lined
),

-- Dollars of a unit of logarithm: the logarithmic mean of both costs.
scaled as (
    select
        *, case when difference_usd = 0 then cast(actual_cost_usd as double)
            else cast(difference_usd as double) / (baseline_log - actual_log) end as log_usd
    from stranded
),

-- What a sum of logarithms leaves of 0 is not a cost.
shared as (
    select
        *, cast(log_usd * round(baseline_log - baseline_listed_log - actual_log + listed_log, 13) as decimal(20, 10))
            as rate_avoided_cost_usd,
        cast(log_usd * round(baseline_listed_log - baseline_success_log - listed_log + success_log, 13) as decimal(20, 10))
            as operations_avoided_cost_usd
    from scaled
)

select
    shared.workload_id, month_date, billing_currency, shared.baseline_name, shared.baseline_version,
    frozen.baseline_sha256, shared.baseline_evidence,
    coalesce(is_proven and shared.baseline_evidence = 'measured' and baseline_cost_usd is not null, false)
        as is_headline,
    shared.run_count, unit_count, adjustment_count, usd_per(baseline_cost_usd, unit_count) as baseline_unit_cost_usd,
    usd_per(actual_cost_usd, unit_count) as actual_unit_cost_usd, baseline_cost_usd, actual_cost_usd, adjustment_usd,
    difference_usd + adjustment_usd as avoided_cost_usd,
    baseline_low_cost_usd - actual_cost_usd + adjustment_usd as avoided_low_cost_usd,
    baseline_high_cost_usd - actual_cost_usd + adjustment_usd as avoided_high_cost_usd,
    -- The chip takes what rounding leaves: a rate that is the same, or no failed run, is exactly 0.
    difference_usd - rate_avoided_cost_usd - operations_avoided_cost_usd as chip_avoided_cost_usd,
    rate_avoided_cost_usd, operations_avoided_cost_usd,
    displaced_commitment_cost_usd,
    difference_usd + adjustment_usd - displaced_commitment_cost_usd as cash_avoided_cost_usd,
    restated_cost_usd, case when displaced_commitment_cost_usd is not null then shared.missing_evidence
        else concat_ws('; ', shared.missing_evidence, 'it is unknown what GPU commitments left unused') end
        as missing_evidence
from shared
left join detail_baseline as frozen using (baseline_name, baseline_version)
