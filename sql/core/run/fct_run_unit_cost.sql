-- One row per billed run on one kind of GPU or Trainium machine × cost basis: what it cost, whole and by unit of work.
-- A run here bears its equal part of what was compiled for it, on each basis (mart_run_cost has both views).
with run as (
    select
        described.run_id, described.workload_id, cost.billing_currency, cost.accelerator_family, described.instance_type,
        described.status, described.started_at, described.ended_at, described.compile_run_id, described.epoch_unit,
        cost.accelerator_hours, cost.list_cost_usd, cost.effective_cost_usd, cost.billed_cost_usd,
        case when described.epoch_unit = 'dataset_pass' and described.epoch_completed_count > 0
            then cast(described.epoch_completed_count as decimal(20, 6)) end as epoch_count,
        case when described.tokens_seen_count > 0 then ratio(described.tokens_seen_count, 1000000) end as million_token_count,
        cost.imds_cost_usd, cost.api_cost_usd, cost.nodemap_cost_usd, cost.tag_cost_usd, cost.type_match_cost_usd,
        cost.first_billing_month, cost.last_billing_month, cost.open_billing_month, cost.newest_usage_date
    from dim_run as described
    join fct_run_cost as cost on cost.run_id = described.run_id
    where cost.is_billed and cost.accelerator_family in ('gpu', 'trainium') and described.instance_type <> 'mixed'
        and described.purpose <> 'compile_only'
),

precompiled as (
    select described.run_id, maker.list_cost_usd, maker.effective_cost_usd, maker.billed_cost_usd, maker.billing_currency,
        count(*) over (partition by maker.run_id) as part_count
    from dim_run as described
    join dim_run as compiler on compiler.run_id = described.compile_run_id and compiler.purpose = 'compile_only'
    join fct_run_cost as maker on maker.run_id = compiler.run_id and maker.is_billed
    where described.purpose <> 'compile_only'
),

target as (
    select run_id, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_interval_cost
    where interval_kind = 'target' and interval_key = '1'
),

counted as (
    select
        run.*,
        case when precompiled.run_id is null then 0 else ratio(precompiled.list_cost_usd, precompiled.part_count) end as list_compile_usd,
        coalesce(ratio(precompiled.effective_cost_usd, precompiled.part_count), 0) as compile_usd,
        coalesce(ratio(precompiled.billed_cost_usd, precompiled.part_count), 0) as billed_compile_usd,
        target.list_cost_usd as list_to_target_usd,
        target.effective_cost_usd as to_target_usd,
        target.billed_cost_usd as billed_to_target_usd
    from run
    left join precompiled on precompiled.run_id = run.run_id and precompiled.billing_currency = run.billing_currency
    left join target on target.run_id = run.run_id
),

based as (
    select run_id, 'list' as cost_basis, list_cost_usd + list_compile_usd as whole_cost_usd,
        list_to_target_usd + list_compile_usd as unit_to_target_usd
    from counted
    union all
    select run_id, 'effective', effective_cost_usd + compile_usd, to_target_usd + compile_usd from counted
    union all
    select run_id, 'billed', billed_cost_usd + billed_compile_usd, billed_to_target_usd + billed_compile_usd from counted
)

select
    run.run_id, based.cost_basis, run.workload_id, run.billing_currency, run.accelerator_family, run.instance_type, run.status,
    run.started_at, run.ended_at, run.accelerator_hours, run.epoch_unit,
    based.whole_cost_usd,
    based.unit_to_target_usd as unit_cost_to_target_usd,
    ratio(based.whole_cost_usd, run.epoch_count) as unit_cost_per_epoch_usd,
    ratio(based.whole_cost_usd, run.million_token_count) as unit_cost_per_million_tokens_usd,
    run.imds_cost_usd, run.api_cost_usd, run.nodemap_cost_usd, run.tag_cost_usd, run.type_match_cost_usd,
    run.first_billing_month, run.last_billing_month, run.open_billing_month, run.newest_usage_date
from based
join run on run.run_id = based.run_id
