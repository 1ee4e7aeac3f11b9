-- One row per run: its machines, what the ledger charges to it on what evidence, and its share of precompiled work.
-- Amounts in two currencies have no sum: a run that is billed in both is billed and its cost is unknown.
with several as (
    select run_id, known_sum(accelerator_hours) as accelerator_hours,
        case when count(distinct nullif(accelerator_family, 'none')) > 1 then 'mixed'
            else max(nullif(accelerator_family, 'none')) end as accelerator_family
    from fct_ledger
    where bucket = 'run' group by run_id having min(billing_currency) <> max(billing_currency)
),

ledger as (
    select
        run_id, billing_currency,
        known_sum(accelerator_hours) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd,
        known_sum(effective_cost_usd) as effective_cost_usd,
        known_sum(known_billed_usd(market, effective_cost_usd, billed_cost_usd)) as billed_cost_usd,
        known_sum(case when accelerator_family = 'none' then list_cost_usd else 0 end) as attached_list_usd,
        known_sum(case when accelerator_family = 'none' then effective_cost_usd else 0 end) as attached_usd,
        case when count(distinct nullif(accelerator_family, 'none')) > 1 then 'mixed'
            else max(nullif(accelerator_family, 'none')) end as accelerator_family,
        min(case when accelerator_hours > 0 then region_id end) as region_id,
        max(case when accelerator_hours > 0 then region_id end) as last_region_id,
        known_sum(case when is_estimated(evidence) or unsure_id is not null then effective_cost_usd else 0 end) as estimated_cost_usd,
        known_sum(case when evidence = 'imds' then effective_cost_usd else 0 end) as imds_cost_usd,
        known_sum(case when evidence = 'api' then effective_cost_usd else 0 end) as api_cost_usd,
        known_sum(case when evidence = 'nodemap' then effective_cost_usd else 0 end) as nodemap_cost_usd,
        known_sum(case when evidence in ('tag', 'tag_folded') then effective_cost_usd else 0 end) as tag_cost_usd,
        known_sum(case when evidence = 'type_match' then effective_cost_usd else 0 end) as type_match_cost_usd,
        min(billing_month) as first_billing_month,
        max(billing_month) as last_billing_month,
        -- AWS fills the invoice id in when a line is final (facts 2.5).
        max(case when invoice_id = '' then billing_month end) as open_billing_month
    from fct_ledger
    -- The fee of a block of unknown window is spread over the hours billed so far.
    left join (select distinct resource_id as unsure_id from fct_capacity_block_piece where is_window_unknown) as block
        on unsure_id = case when piece_kind = 'block_hour' then resource_id end
    where bucket = 'run' and run_id not in (select run_id from several)
    group by run_id, billing_currency
),

-- What all its machines are.
hardware as (
    select run_id, count(distinct resource_id) as resource_count,
        case when count(distinct accelerator_family) = 1 then max(accelerator_family) else 'mixed' end
            as accelerator_family,
        case when count(distinct instance_type) > 1 then 'mixed' else max(instance_type) end as instance_type,
        case when count(distinct instance_type) = 1 then max(accelerator_count) end as accelerator_count
    from fct_run_machine
    group by run_id
),

newest as (select max(usage_date) as newest_usage_date from fct_ledger where piece_kind <> 'block_hour' and charge_category = 'Usage'),

-- A precompile run passes its whole cost on, in equal parts, to the billed runs that load what it compiled.
loaded as (
    select
        maker.run_id as compile_run_id, maker.billing_currency, maker.effective_cost_usd, run.run_id,
        row_number() over (partition by maker.run_id order by run.started_at, run.run_id) as part_no,
        count(*) over (partition by maker.run_id) as part_count
    from dim_run as run
    join dim_run as compiler on compiler.run_id = run.compile_run_id and compiler.purpose = 'compile_only'
    join ledger as maker on maker.run_id = compiler.run_id
    semi join ledger as own on own.run_id = run.run_id and own.billing_currency = maker.billing_currency
    where run.purpose <> 'compile_only'
),

shared as (
    select run_id, billing_currency, piece_usd(effective_cost_usd, part_no - 1, part_no, part_count) as compile_shared_usd
    from loaded
    union all
    select compile_run_id, billing_currency, - max(effective_cost_usd)
    from loaded group by compile_run_id, billing_currency
),

billed as (select run_id from ledger union all select run_id from several),

-- In a comparison a billed run bears an equal part of what was compiled for it, on each basis.
precompiled as (
    select run.run_id, maker.list_cost_usd, maker.effective_cost_usd, maker.billed_cost_usd,
        coalesce(maker.billing_currency, own.billing_currency) as billing_currency, count(*) over (partition by compiler.run_id) as part_count
    from dim_run as run
    join dim_run as compiler on compiler.run_id = run.compile_run_id and compiler.purpose = 'compile_only'
    left join ledger as maker on maker.run_id = compiler.run_id
    left join ledger as own on own.run_id = run.run_id
    where run.purpose <> 'compile_only'
        and run.run_id in (select run_id from billed) and compiler.run_id in (select run_id from billed)
)

select
    run.run_id, run.workload_id, ledger.billing_currency,
    coalesce(case when hardware.accelerator_family not in ('none', 'mixed') then hardware.accelerator_family end,
        ledger.accelerator_family, several.accelerator_family, hardware.accelerator_family, 'none')
        as accelerator_family,
    coalesce(hardware.instance_type, 'unknown') as instance_type, hardware.accelerator_count,
    coalesce(hardware.resource_count, 0) as resource_count,
    coalesce(ledger.run_id, several.run_id) is not null as is_billed,
    coalesce(ledger.accelerator_hours, several.accelerator_hours) as accelerator_hours,
    ledger.list_cost_usd, ledger.effective_cost_usd, ledger.billed_cost_usd,
    case when coalesce(ledger.run_id, several.run_id) is null then 0 else ledger.estimated_cost_usd end as estimated_cost_usd,
    ledger.imds_cost_usd, ledger.api_cost_usd, ledger.nodemap_cost_usd, ledger.tag_cost_usd, ledger.type_match_cost_usd,
    ledger.first_billing_month, ledger.last_billing_month, ledger.open_billing_month, newest.newest_usage_date,
    -- What a run of the same workload compiled without the label is in that workload already.
    case when shared.run_id is null and (run.compile_run_id is null or run.purpose = 'compile_only'
        or compiler.workload_id = run.workload_id and compiler.purpose is distinct from 'compile_only') then 0
        else shared.compile_shared_usd end as compile_shared_usd,
    case when precompiled.run_id is null then 0 else usd_per(precompiled.list_cost_usd, precompiled.part_count) end as list_compile_part_usd,
    case when precompiled.run_id is null then 0 else usd_per(precompiled.effective_cost_usd, precompiled.part_count) end as effective_compile_part_usd,
    case when precompiled.run_id is null then 0 else usd_per(precompiled.billed_cost_usd, precompiled.part_count) end as billed_compile_part_usd,
    ledger.attached_list_usd as attached_list_cost_usd, ledger.attached_usd as attached_cost_usd,
    case when ledger.region_id = ledger.last_region_id then ledger.region_id end as region_id
from dim_run as run
cross join newest
left join ledger on ledger.run_id = run.run_id
left join several on several.run_id = run.run_id
left join dim_run as compiler on compiler.run_id = run.compile_run_id
left join hardware on hardware.run_id = run.run_id
left join shared on shared.run_id = run.run_id and shared.billing_currency = ledger.billing_currency
left join precompiled on precompiled.run_id = run.run_id and precompiled.billing_currency = ledger.billing_currency
