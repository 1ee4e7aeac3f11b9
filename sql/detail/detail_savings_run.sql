-- One row per Trainium run of a workload with a baseline: what it cost, and what its units would have cost on the baseline.
-- A run counts in the month its job ended, against the newest baseline frozen by that day, priced as of that day; the
-- units of a job of several runs count once. A run of other work than its baseline avoids an unknown cost, and so does one
-- that the bill has in part or in two currencies.
-- As in a comparison, billed runs bear what was compiled for them, each an equal part, and their compile run nothing.
with ended as (
    select run.*, coalesce(job.job_id, run.run_id) as job_id, coalesce(job.job_run_count, 1) as job_run_count,
        coalesce(job.is_last_run, true) as is_last_run, job.job_target_count, job.job_epoch_count, job.job_million_token_count,
        bool_and(run.status in ('failed', 'killed', 'abandoned', 'unknown'))
            over (partition by coalesce(job.job_id, run.run_id)) as has_job_failed,
        cast(max(run.ended_at) over (partition by coalesce(job.job_id, run.run_id)) as date) as ended_date,
        cost.list_compile_part_usd, cost.effective_cost_usd <= cost.attached_cost_usd as is_free,
        case when run.compile_shared_usd is not null then cost.effective_compile_part_usd end as compile_part_usd
    from fct_run as run
    join fct_run_cost as cost on cost.run_id = run.run_id
    left join detail_run_job as job on job.run_id = run.run_id
    anti join (select loader.compile_run_id as run_id
        from dim_run as loader
        join fct_run_cost as bearing on bearing.run_id = loader.run_id and bearing.is_billed
        where loader.purpose is distinct from 'compile_only') as loaded
        on loaded.run_id = case when run.purpose = 'compile_only' then run.run_id end
    where run.is_billed and run.accelerator_family = 'trainium' and run.status <> 'running'
),

run as (
    select
        run.run_id, run.workload_id, coalesce(run.billing_currency, 'USD') as billing_currency, run.ended_date, run.job_id, run.job_run_count, run.is_last_run,
        run.job_target_count, run.job_epoch_count, run.job_million_token_count, run.has_job_failed, run.epoch_unit, run.tokens_seen_count,
        run.epoch_completed_count, run.effective_cost_usd, run.cost_to_target_usd, run.target_duration_ms, run.unbilled_hours, run.is_free,
        run.compile_part_usd, run.list_compile_part_usd, run.ended_at, run.instance_type, coalesce(run.region_id, baseline.region_id) as run_region_id,
        run.status in ('failed', 'killed', 'abandoned', 'unknown') or coalesce(run.purpose in ('compile_only', 'eval_only'), false) as does_no_unit,
        ratio(case when baseline.unit_measure = 'cost_to_target' and run.target_duration_ms is not null
            then run.target_accelerator_hours else run.accelerator_hours end, run.accelerator_count) as instance_hours,
        baseline.baseline_name, baseline.baseline_version, baseline.baseline_instance_type, baseline.baseline_evidence, baseline.region_id,
        baseline.unit_measure, baseline.hours_per_unit, baseline.hours_low_per_unit, baseline.hours_high_per_unit,
        baseline.success_hours_per_unit, baseline.baseline_paid_ratio, baseline.missing_evidence
    from ended as run
    join detail_baseline as baseline
        on baseline.workload_id = run.workload_id and baseline.frozen_date <= run.ended_date and baseline.is_configured
    qualify row_number() over (partition by run.run_id order by baseline.frozen_date desc) = 1
),

price as (
    select run.run_id,
        max_by(book.price_per_hour_usd, book.from_date)
            filter (where book.instance_type = run.baseline_instance_type and book.region_id = run.region_id) as price_per_hour_usd,
        max_by(book.price_per_hour_usd, book.from_date)
            filter (where book.instance_type = run.instance_type and book.region_id = run.run_region_id) as run_price_per_hour_usd
    from run
    join mart_price_book as book
        on book.offer = 'on_demand' and book.instance_type in (run.baseline_instance_type, run.instance_type) and book.from_date <= run.ended_date
    group by run.run_id
),

-- Changes after a delivery that had all use of the run: new use of an open month, or a run recorded late, corrects nothing.
restated as (
    select figure.run_id, figure.billing_currency, sum(figure.cost_change_usd) as restated_cost_usd
    from detail_restated_figure as figure join run on run.run_id = figure.run_id
    semi join fct_restatement as whole
        on whole.payer_account_id = figure.payer_account_id and whole.billing_month = figure.billing_month
        and whole.billing_currency = figure.billing_currency and whole.delivery_no < figure.delivery_no
        and whole.usage_until_at >= least(run.ended_at, cast(figure.billing_month as timestamp) + interval 1 month)
    where figure_table = 'mart_run_cost' and cost_basis = 'effective' and before_cost_usd <> 0 and after_cost_usd <> 0
    group by figure.run_id, figure.billing_currency
),

counted as (
    select run.*, cast(date_trunc('month', run.ended_date) as date) as month_date,
        coalesce(restated.restated_cost_usd, 0) as restated_cost_usd,
        -- Only a run that failed, or that serves others, did no unit; what another did not record is unknown.
        cast(case
            when unit_measure = 'cost_to_target' then case when target_duration_ms is not null then 1 else 0 end
            when does_no_unit then 0
            when unit_measure = 'cost_per_epoch'
                then case when epoch_unit = 'dataset_pass' then nullif(epoch_completed_count, 0) end
            else nullif(ratio(tokens_seen_count, 1000000), 0) end as decimal(20, 6)) as own_unit_count,
        case when unit_measure = 'cost_to_target' then job_target_count when has_job_failed then 0
            when unit_measure = 'cost_per_epoch' then job_epoch_count else job_million_token_count end as job_unit_count,
        -- Up to its target, as the baseline is; a run that never reached it counts with its whole cost and no unit.
        -- On a dedicated host, the host is what costs; a refund may be more than the run's machines cost.
        compile_part_usd + case when is_free then null when unit_measure = 'cost_to_target' and target_duration_ms is not null
            then cost_to_target_usd else effective_cost_usd end as actual_cost_usd,
        -- The price book is in dollars.
        case when run.billing_currency = 'USD' then cast(price.price_per_hour_usd as double) end as listed_per_hour,
        cast(price.run_price_per_hour_usd as double) * instance_hours + cast(list_compile_part_usd as double) as listed_usd
    from run
    left join price on price.run_id = run.run_id
    left join restated on restated.run_id = run.run_id and restated.billing_currency = run.billing_currency
),

united as (
    select counted.* exclude (listed_per_hour), differing_fields, case when differing_fields is null and unbilled_hours is null
        then listed_per_hour end as listed_per_hour, case when own_unit_count is null or job_run_count = 1 then own_unit_count
            when is_last_run then job_unit_count else 0 end as unit_count
    from counted
    left join detail_savings_difference using (run_id, baseline_name, baseline_version)
)

select
    run_id, job_id, workload_id, month_date, billing_currency, instance_type, baseline_name, baseline_version,
    baseline_instance_type, baseline_evidence, differing_fields is not null as is_other_work, unit_count, actual_cost_usd,
    usd_per(unit_count * listed_per_hour * baseline_paid_ratio * hours_per_unit, 1) as baseline_cost_usd,
    usd_per(unit_count * listed_per_hour * baseline_paid_ratio * hours_low_per_unit, 1) as baseline_low_cost_usd,
    usd_per(unit_count * listed_per_hour * baseline_paid_ratio * hours_high_per_unit, 1) as baseline_high_cost_usd,
    usd_per(unit_count * listed_per_hour * hours_per_unit, 1) as baseline_on_demand_cost_usd,
    usd_per(unit_count * listed_per_hour * success_hours_per_unit, 1) as baseline_success_on_demand_cost_usd,
    usd_per(listed_usd, 1) as hours_on_demand_cost_usd, restated_cost_usd, unbilled_hours,
    coalesce(missing_evidence, case
        when differing_fields is not null
            then 'runs of another ' || differing_fields || ' than the baseline or the proven comparison are left out'
        when is_free then 'the machines of run ' || run_id || ' cost nothing or less on the bill: its cost is not certain'
        when compile_part_usd is null then 'the cost of what was compiled for run ' || run_id
            || ' is not known: its compile run must be recorded, labeled compile_only and on the bill in whole'
        when actual_cost_usd is null then 'the cost of run ' || run_id || ' on the bill is not known'
        when unit_count is null then 'the units of work of the completed run ' || run_id || ' are not recorded'
        when unbilled_hours is not null then 'recorded machine hours of a run are not on the bill'
        when listed_per_hour is null
            then 'the price book has no price of the baseline for every run, or the bill is not in USD' end)
            as missing_evidence
from united
