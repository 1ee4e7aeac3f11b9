-- One row per run: what it did, what all of it cost on the three bases, and which part of that was wasted.
with run as (
    select described.*, described.status in ('failed', 'killed', 'abandoned') as has_failed,
        phased.run_id is not null as has_phases
    from dim_run as described
    left join (select distinct run_id from stg_tracker__phase) as phased on phased.run_id = described.run_id
),

-- What no record can show is unknown; only a failed run is waste whole, whatever it records.
known as (
    select run_id, has_failed or is_compile_recorded as is_compile_known, has_failed or attempt_count <= 1 or is_checkpoint_recorded as is_lost_work_known,
        has_failed or attempt_count <= 1 or is_compile_recorded or has_phases as is_restart_known
    from run
),

waste as (
    select
        run_id, billing_currency,
        known_sum(case when waste_cause <> 'none' then effective_cost_usd else 0 end) as wasted_cost_usd,
        known_sum(case when waste_cause = 'lost_work' then effective_cost_usd else 0 end) as lost_work_cost_usd,
        known_sum(case when waste_cause = 'replay' then effective_cost_usd else 0 end) as replay_cost_usd,
        known_sum(case when waste_cause = 'restart' then effective_cost_usd else 0 end) as restart_cost_usd,
        known_sum(case when waste_cause = 'compile' then effective_cost_usd else 0 end) as compile_cost_usd,
        known_sum(case when waste_cause = 'failed_run' then effective_cost_usd else 0 end) as failed_run_cost_usd,
        known_sum(case when waste_cause = 'idle_hold' then effective_cost_usd else 0 end) as idle_hold_cost_usd,
        coalesce(sum(node_ms) filter (where phase = 'train' and waste_cause = 'none'), 0) as productive_node_ms,
        sum(node_ms) as billed_node_ms
    from fct_interval_cost
    where interval_kind = 'phase'
    group by run_id, billing_currency
),

-- Up to the first pass of the target, and to each later one; null where the bill lacks a part of that.
target as (
    select
        run_id, interval_key, duration_ms, if_whole(accelerator_hours, is_partial) as accelerator_hours,
        if_whole(list_cost_usd, is_partial) as list_cost_usd, if_whole(effective_cost_usd, is_partial) as effective_cost_usd,
        if_whole(billed_cost_usd, is_partial) as billed_cost_usd
    from fct_interval_cost
    where interval_kind = 'target'
),

gap as (
    select run_id, sum(gap_hours) as unbilled_hours, case when count(*) = 1 then max(cost_usd) end as unbilled_cost_usd
    from (select run_id, sum(gap_hours) as gap_hours, known_sum(cost_at_stake_usd) as cost_usd
        from fct_unbilled_claim_monthly group by run_id, billing_currency) as own
    group by run_id
),

-- An ancestor counts whole, whatever was trained after the checkpoint taken from it; generation 0 is the run itself.
lineage as (
    select
        own.run_id, own.billing_currency, sum(ancestor.effective_cost_usd) as lineage_cost_usd,
        count(*) = count(if_whole(ancestor.effective_cost_usd, gap.run_id is not null)) as is_lineage_complete
    from fct_run_cost as own
    join dim_run_ancestor as link on link.run_id = own.run_id
    left join fct_run_cost as ancestor on ancestor.run_id = link.ancestor_run_id and ancestor.billing_currency = own.billing_currency
    left join gap on gap.run_id = link.ancestor_run_id
    group by own.run_id, own.billing_currency
),

-- A run that leads a sweep without a bill of its own has its trials' currency, if they share one.
sweep as (
    select
        trial.parent_run_id as run_id, count(distinct trial.run_id) as trial_count, own.billing_currency,
        known_sum(case when cost.billing_currency <> own.billing_currency then 0
            else if_whole(cost.effective_cost_usd, gap.run_id is not null) end) as trial_cost_usd,
        case when min(cost.billing_currency) = max(cost.billing_currency)
            then known_sum(if_whole(cost.effective_cost_usd, gap.run_id is not null)) end as only_trial_cost_usd
    from dim_run as trial
    left join fct_run_cost as cost on cost.run_id = trial.run_id left join gap on gap.run_id = trial.run_id
    left join fct_run_cost as own on own.run_id = trial.parent_run_id
    where trial.purpose = 'sweep_trial' and trial.parent_run_id <> trial.run_id
    group by trial.parent_run_id, own.billing_currency
)

select
    run.run_id, run.workload_id, cost.billing_currency, cost.accelerator_family, cost.instance_type,
    cost.accelerator_count, coalesce(run.region_id, cost.region_id) as region_id, cost.resource_count,
    run.attempt_count, run.status, run.purpose, run.team, run.owner, run.model, run.target_metric, run.started_at,
    run.ended_at, run.is_end_inferred, run.epoch_completed_count, run.epoch_unit, run.epoch_unit_size,
    run.checkpoint_durable_count, run.tokens_seen_count, run.tokens_unit, cost.is_billed, cost.accelerator_hours,
    cost.list_cost_usd, cost.effective_cost_usd, cost.billed_cost_usd, cost.estimated_cost_usd,
    gap.unbilled_hours, gap.unbilled_cost_usd,
    if_whole(cost.compile_shared_usd, compiler_gap.run_id is not null) as compile_shared_usd, lineage.lineage_cost_usd,
    coalesce(lineage.is_lineage_complete, false) as is_lineage_complete, coalesce(sweep.trial_count, 0) as trial_count,
    case when sweep.run_id is null then cost.effective_cost_usd when not cost.is_billed then sweep.only_trial_cost_usd
        else if_whole(cost.effective_cost_usd, gap.run_id is not null) + sweep.trial_cost_usd end as sweep_cost_usd,
    target.accelerator_hours as target_accelerator_hours, target.list_cost_usd as list_cost_to_target_usd,
    target.effective_cost_usd as cost_to_target_usd, target.billed_cost_usd as billed_cost_to_target_usd,
    target.duration_ms as target_duration_ms, held.list_cost_usd as list_cost_to_held_target_usd,
    held.effective_cost_usd as cost_to_held_target_usd, held.billed_cost_usd as billed_cost_to_held_target_usd,
    case when not (known.is_lost_work_known and known.is_restart_known and known.is_compile_known) then null
        when waste.run_id is not null then waste.wasted_cost_usd when cost.is_billed then 0 end as wasted_cost_usd,
    case when not known.is_lost_work_known then null when waste.run_id is not null then waste.lost_work_cost_usd
        when cost.is_billed then 0 end as lost_work_cost_usd,
    case when not known.is_lost_work_known then null when waste.run_id is not null then waste.replay_cost_usd
        when cost.is_billed then 0 end as replay_cost_usd,
    case when not known.is_restart_known then null when waste.run_id is not null then waste.restart_cost_usd
        when cost.is_billed then 0 end as restart_cost_usd,
    case when not known.is_compile_known then null when waste.run_id is not null then waste.compile_cost_usd
        when cost.is_billed then 0 end as compile_cost_usd,
    case when waste.run_id is not null then waste.failed_run_cost_usd when cost.is_billed then 0 end as failed_run_cost_usd,
    case when waste.run_id is not null then waste.idle_hold_cost_usd when cost.is_billed then 0 end as idle_hold_cost_usd,
    -- Without recorded phases nothing shows which seconds trained, nor without checkpoints which of them were kept.
    case when run.has_phases and known.is_lost_work_known then coalesce(waste.productive_node_ms, 0) end as productive_node_ms,
    coalesce(waste.billed_node_ms, 0) as billed_node_ms
from run
join known on known.run_id = run.run_id
join fct_run_cost as cost on cost.run_id = run.run_id
left join waste on waste.run_id = case when cost.is_billed then run.run_id end
    and waste.billing_currency is not distinct from cost.billing_currency
cross join policy
left join gap on gap.run_id = run.run_id left join gap as compiler_gap on compiler_gap.run_id = run.compile_run_id
left join target on target.run_id = run.run_id and target.interval_key = '1'
-- A single pass can be noise: a held target passes several times in a row, as the run or the policy requires.
left join target as held on held.run_id = run.run_id
    and held.interval_key = cast(coalesce(run.target_passes, policy.target_passes) as varchar)
left join lineage on lineage.run_id = run.run_id and lineage.billing_currency = cost.billing_currency
left join sweep on sweep.run_id = run.run_id and sweep.billing_currency is not distinct from cost.billing_currency
