-- One row per run: what the ledger charges to it, its share of precompiled work, and the cost of its ancestors and sweep trials.
with ledger as (
    select
        run_id, billing_currency,
        known_sum(accelerator_hours) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd,
        max(nullif(accelerator_family, 'none')) as accelerator_family,
        coalesce(sum(effective_cost_usd) filter (where is_estimated(evidence)), 0) as estimated_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where evidence = 'imds'), 0) as imds_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where evidence = 'api'), 0) as api_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where evidence = 'nodemap'), 0) as nodemap_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where evidence in ('tag', 'tag_folded')), 0) as tag_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where evidence = 'type_match'), 0) as type_match_cost_usd,
        min(billing_month) as first_billing_month,
        max(billing_month) as last_billing_month,
        -- AWS fills the invoice id in when a line is final (facts 2.5).
        max(case when invoice_id = '' then billing_month end) as open_billing_month
    from fct_ledger
    where bucket = 'run'
    group by run_id, billing_currency
),

machine as (
    select run_id, billing_currency, instance_type, sum(accelerator_hours) as accelerator_hours
    from fct_ledger
    where bucket = 'run' and piece_kind <> 'whole'
    group by run_id, billing_currency, instance_type
    having sum(accelerator_hours) > 0
),

-- Unknown where one of its machines has no dense BF16 peak in the list.
peak as (
    select
        machine.run_id, machine.billing_currency, sum(machine.accelerator_hours) as machine_accelerator_hours,
        cast(known_sum(cast(machine.accelerator_hours as decimal(24, 10)) * listed.peak_bf16_tflops) as double) * 3600e12
            as peak_flops
    from machine
    left join ref_instance_type as listed on listed.instance_type = replace(machine.instance_type, 'ml.', '')
    group by machine.run_id, machine.billing_currency
),

newest as (
    select max(usage_date) as newest_usage_date from fct_ledger where accelerator_hours > 0
),

-- A precompile run passes its whole cost on, in equal parts, to the billed runs that load what it compiled.
loaded as (
    select
        maker.run_id as compile_run_id, maker.billing_currency, maker.effective_cost_usd, run.run_id,
        row_number() over (partition by maker.run_id order by run.started_at, run.run_id) as part_no,
        count(*) over (partition by maker.run_id) as part_count
    from dim_run as run
    join ledger as own on own.run_id = run.run_id
    join dim_run as compiler on compiler.run_id = run.compile_run_id and compiler.purpose = 'compile_only'
    join ledger as maker on maker.run_id = compiler.run_id and maker.billing_currency = own.billing_currency
    where run.purpose <> 'compile_only'
),

shared as (
    select run_id, billing_currency, piece_usd(effective_cost_usd, part_no - 1, part_no, part_count) as compile_shared_usd
    from loaded
    union all
    select compile_run_id, billing_currency, - max(effective_cost_usd)
    from loaded
    group by compile_run_id, billing_currency
),

-- An ancestor counts whole, whatever was trained after the checkpoint it was taken from; generation 0 is the run itself.
lineage as (
    select
        own.run_id, own.billing_currency, sum(ancestor.effective_cost_usd) as lineage_cost_usd,
        count(*) = count(ancestor.effective_cost_usd) as is_lineage_complete
    from ledger as own
    join dim_run_ancestor as link on link.run_id = own.run_id
    left join ledger as ancestor on ancestor.run_id = link.ancestor_run_id and ancestor.billing_currency = own.billing_currency
    group by own.run_id, own.billing_currency
),

-- A run that leads a sweep without a bill of its own has its trials' currency, if they share one.
sweep as (
    select
        trial.parent_run_id as run_id, count(distinct trial.run_id) as trial_count, own.billing_currency,
        sum(cost.effective_cost_usd) filter (where cost.billing_currency = own.billing_currency) as trial_cost_usd,
        case when min(cost.billing_currency) = max(cost.billing_currency) then sum(cost.effective_cost_usd) end as only_trial_cost_usd
    from dim_run as trial
    left join ledger as cost on cost.run_id = trial.run_id
    left join ledger as own on own.run_id = trial.parent_run_id
    where trial.purpose = 'sweep_trial' and trial.parent_run_id <> trial.run_id
    group by trial.parent_run_id, own.billing_currency
)

select
    run.run_id, run.workload_id, ledger.billing_currency,
    case when run.accelerator_family in ('none', 'mixed') then coalesce(ledger.accelerator_family, run.accelerator_family)
        else run.accelerator_family end as accelerator_family,
    ledger.run_id is not null as is_billed,
    case when ledger.run_id is null then 0 else ledger.accelerator_hours end as accelerator_hours,
    peak.machine_accelerator_hours, peak.peak_flops as bf16_peak_flops,
    ledger.list_cost_usd, ledger.effective_cost_usd, ledger.billed_cost_usd,
    coalesce(ledger.estimated_cost_usd, 0) as estimated_cost_usd,
    ledger.imds_cost_usd, ledger.api_cost_usd, ledger.nodemap_cost_usd, ledger.tag_cost_usd, ledger.type_match_cost_usd,
    ledger.first_billing_month, ledger.last_billing_month, ledger.open_billing_month, newest.newest_usage_date,
    coalesce(shared.compile_shared_usd, 0) as compile_shared_usd,
    lineage.lineage_cost_usd,
    coalesce(lineage.is_lineage_complete, false) as is_lineage_complete,
    coalesce(sweep.trial_count, 0) as trial_count,
    case when sweep.run_id is null or ledger.run_id is not null
        then ledger.effective_cost_usd + coalesce(sweep.trial_cost_usd, 0) else sweep.only_trial_cost_usd end as sweep_cost_usd
from dim_run as run
cross join newest
left join ledger on ledger.run_id = run.run_id
left join peak on peak.run_id = run.run_id and peak.billing_currency = ledger.billing_currency
left join shared on shared.run_id = run.run_id and shared.billing_currency = ledger.billing_currency
left join lineage on lineage.run_id = run.run_id and lineage.billing_currency = ledger.billing_currency
left join sweep on sweep.run_id = run.run_id and sweep.billing_currency is not distinct from ledger.billing_currency
