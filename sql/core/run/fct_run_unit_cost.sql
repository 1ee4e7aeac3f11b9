-- One row per billed run on one kind of GPU or Trainium machine × cost basis: what it cost, whole and by unit of work.
-- Units are those of fct_run_unit; beside what it tells, a run here bears its part of what was compiled for it.
with run as (
    select *
    from fct_run
    where is_billed and accelerator_family in ('gpu', 'trainium') and instance_type <> 'mixed' and purpose <> 'compile_only'
),

-- What was compiled beforehand is part of what its users cost, in equal parts (mart_run_cost has both views).
precompiled as (
    select described.run_id, maker.list_cost_usd, maker.effective_cost_usd, maker.billed_cost_usd, maker.billing_currency,
        count(*) over (partition by maker.run_id) as part_count
    from dim_run as described
    join fct_run as maker on maker.run_id = described.compile_run_id
    where maker.purpose = 'compile_only' and described.purpose <> 'compile_only' and maker.is_billed
),

loaded as (
    select run.*,
        case when precompiled.run_id is null then 0 else ratio(precompiled.list_cost_usd, precompiled.part_count) end as list_compile_usd,
        coalesce(ratio(precompiled.effective_cost_usd, precompiled.part_count), 0) as compile_usd,
        coalesce(ratio(precompiled.billed_cost_usd, precompiled.part_count), 0) as billed_compile_usd
    from run
    left join precompiled on precompiled.run_id = run.run_id and precompiled.billing_currency = run.billing_currency
),

unit as (
    select
        run_id,
        max(list_cost_usd) filter (where unit_measure = 'cost_to_target') as list_to_target_usd,
        max(effective_cost_usd) filter (where unit_measure = 'cost_to_target') as to_target_usd,
        max(billed_cost_usd) filter (where unit_measure = 'cost_to_target') as billed_to_target_usd,
        max(unit_count) filter (where unit_measure = 'cost_per_epoch') as epoch_count,
        max(unit_count) filter (where unit_measure = 'cost_per_million_tokens') as million_token_count
    from fct_run_unit
    group by run_id
),

counted as (
    select loaded.*, unit.list_to_target_usd, unit.to_target_usd, unit.billed_to_target_usd, unit.epoch_count, unit.million_token_count
    from loaded
    left join unit on unit.run_id = loaded.run_id
),

based as (
    select run_id, 'list' as cost_basis, list_cost_usd + list_compile_usd as whole_cost_usd,
        list_to_target_usd + list_compile_usd as unit_to_target_usd
    from counted
    union all
    select run_id, 'effective', effective_cost_usd + compile_usd, to_target_usd + compile_usd from counted
    union all
    select run_id, 'billed', billed_cost_usd + billed_compile_usd, billed_to_target_usd + billed_compile_usd from counted
),

-- AWS fills the invoice id in when a line is final (facts 2.5).
settled as (
    select run_id, billing_currency, min(billing_month) as first_billing_month, max(billing_month) as last_billing_month,
        max(case when invoice_id = '' then billing_month end) as open_billing_month,
        coalesce(sum(effective_cost_usd) filter (where evidence = 'imds'), 0) as imds_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where evidence = 'api'), 0) as api_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where evidence = 'nodemap'), 0) as nodemap_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where evidence = 'tag'), 0) as tag_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where evidence = 'type_match'), 0) as type_match_cost_usd
    from fct_ledger
    where bucket = 'run'
    group by run_id, billing_currency
),

newest as (
    select max(usage_date) as newest_usage_date from fct_ledger where accelerator_hours > 0
),

worked as (
    select run_id, greatest(model_flops_utilization_ratio(training_flops), billed_flops_utilization_ratio(billed_flops)) as peak_ratio
    from fct_run_efficiency
    group by run_id
)

select
    run.run_id, based.cost_basis, run.workload_id, run.billing_currency, run.accelerator_family, run.instance_type, run.status,
    run.started_at, run.ended_at, run.accelerator_hours, run.epoch_unit,
    based.whole_cost_usd,
    based.unit_to_target_usd as unit_cost_to_target_usd,
    ratio(based.whole_cost_usd, run.epoch_count) as unit_cost_per_epoch_usd,
    ratio(based.whole_cost_usd, run.million_token_count) as unit_cost_per_million_tokens_usd,
    settled.imds_cost_usd, settled.api_cost_usd, settled.nodemap_cost_usd, settled.tag_cost_usd, settled.type_match_cost_usd,
    settled.first_billing_month, settled.last_billing_month, settled.open_billing_month, newest.newest_usage_date,
    -- No chip does more than its peak: tokens of a core or device were taken for the job's, or counted twice.
    coalesce(worked.peak_ratio > 1, false) as is_impossible
from based
join counted as run on run.run_id = based.run_id
join settled on settled.run_id = run.run_id and settled.billing_currency = run.billing_currency
cross join newest
left join worked on worked.run_id = run.run_id
