-- One row per billed run on one kind of GPU or Trainium machine × cost basis: its cost, whole and to its target, and the work it did.
-- A run here bears its equal part of what was compiled for it, on each basis (mart_run_cost has both views). What was compiled for no
-- run, or by a run that also trained, is a run of its own that succeeded at nothing.
with linked as (
    select distinct compile_run_id as run_id from dim_run where compile_run_id is not null and purpose <> 'compile_only'
),

run as (
    select
        described.*, cost.billing_currency, cost.accelerator_family as family, cost.accelerator_hours,
        cost.list_cost_usd, cost.effective_cost_usd, cost.billed_cost_usd,
        case when described.purpose = 'compile_only' then linked.run_id is null or described.tokens_seen_count > 0
            or described.epoch_completed_count > 0 else true end as is_counted,
        cost.imds_cost_usd, cost.api_cost_usd, cost.nodemap_cost_usd, cost.tag_cost_usd, cost.type_match_cost_usd,
        cost.first_billing_month, cost.last_billing_month, cost.open_billing_month, cost.newest_usage_date
    from dim_run as described
    join fct_run_cost as cost on cost.run_id = described.run_id
    left join linked on linked.run_id = described.run_id
    where cost.is_billed and cost.accelerator_family in ('gpu', 'trainium') and described.instance_type <> 'mixed'
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
    select run_id, duration_ms, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_interval_cost
    where interval_kind = 'target' and interval_key = '1'
),

-- Storage and network at list, and the one region of the machines.
attached as (
    select
        run_id, billing_currency,
        known_sum(case when accelerator_family = 'none' then list_cost_usd else 0 end) as attached_list_usd,
        min(case when accelerator_hours > 0 then region_id end) as region_id,
        max(case when accelerator_hours > 0 then region_id end) as last_region_id
    from fct_ledger
    where bucket = 'run'
    group by run_id, billing_currency
),

counted as (
    select
        run.*, attached.attached_list_usd,
        case when attached.region_id = attached.last_region_id then attached.region_id end as price_region_id,
        case when precompiled.run_id is null then 0 else ratio(precompiled.list_cost_usd, precompiled.part_count) end as list_compile_usd,
        coalesce(ratio(precompiled.effective_cost_usd, precompiled.part_count), 0) as compile_usd,
        coalesce(ratio(precompiled.billed_cost_usd, precompiled.part_count), 0) as billed_compile_usd,
        target.duration_ms as target_duration_ms,
        target.accelerator_hours as target_accelerator_hours,
        target.list_cost_usd as list_to_target_usd,
        target.effective_cost_usd as to_target_usd,
        target.billed_cost_usd as billed_to_target_usd
    from run
    join attached on attached.run_id = run.run_id and attached.billing_currency = run.billing_currency
    left join precompiled on precompiled.run_id = run.run_id and precompiled.billing_currency = run.billing_currency
    left join target on target.run_id = run.run_id and run.purpose <> 'compile_only'
    where run.is_counted
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
    run.run_id, based.cost_basis, run.workload_id, run.billing_currency, run.family as accelerator_family, run.instance_type,
    case when run.purpose = 'compile_only' and run.status = 'completed' then 'failed' else run.status end as status, run.purpose,
    run.started_at, run.ended_at, run.accelerator_count, run.price_region_id as region_id, run.accelerator_hours,
    run.target_accelerator_hours, run.target_duration_ms, run.attached_list_usd + run.list_compile_usd as attached_list_cost_usd,
    based.whole_cost_usd,
    based.unit_to_target_usd as unit_cost_to_target_usd,
    case when run.epoch_unit = 'dataset_pass' and run.epoch_completed_count > 0 then run.epoch_completed_count end
        as epoch_completed_count,
    case when run.tokens_seen_count > 0 then run.tokens_seen_count end as tokens_seen_count,
    run.imds_cost_usd, run.api_cost_usd, run.nodemap_cost_usd, run.tag_cost_usd, run.type_match_cost_usd,
    run.first_billing_month, run.last_billing_month, run.open_billing_month, run.newest_usage_date
from based
join counted as run on run.run_id = based.run_id
