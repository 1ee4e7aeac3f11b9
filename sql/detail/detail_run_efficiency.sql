-- One row per run: how much of its chips' peak it used, in training and of all it paid for, and what an effective exaflop cost.
with training as (
    select run_id, sum(accelerator_hours) as accelerator_hours
    from fct_interval_cost
    where interval_kind = 'epoch'
    group by run_id
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
        cast(known_sum(cast(machine.accelerator_hours as decimal(24, 10)) * listed.peak_bf16_tflops) as double)
            * 3600e12 as peak_flops
    from machine
    left join ref_instance_type as listed on listed.instance_type = replace(machine.instance_type, 'ml.', '')
    group by machine.run_id, machine.billing_currency
),

described as (
    select
        run.run_id, run.precision, described.params_active, run.tokens_seen_count, run.epoch_tokens_seen_count,
        training_flops_per_token(described.params_active, described.n_layers, described.n_heads, described.head_dim, described.seq_len)
            as flops_per_token,
        -- FP8 has no peak here: its published peak mixes precisions.
        case when run.precision is not null and lower(run.precision) not like '%fp8%' and lower(run.precision) not like '%float8%'
            then if_whole(peak.peak_flops, gap.run_id is not null) end as billed_peak_flops,
        gap.run_id is not null as is_partial,
        cast(training.accelerator_hours as double) / nullif(cast(peak.machine_accelerator_hours as double), 0) as training_part,
        peak.machine_accelerator_hours is not null as has_hours
    from dim_run as run
    join stg_tracker__run as described on described.run_id = run.run_id
    join fct_run_cost as cost on cost.run_id = run.run_id
    left join training on training.run_id = run.run_id
    left join (select distinct run_id from fct_unbilled_claim_monthly) as gap on gap.run_id = run.run_id
    left join peak on peak.run_id = run.run_id and peak.billing_currency = cost.billing_currency
),

measured as (
    select
        *,
        tokens_seen_count * flops_per_token as billed_flops,
        epoch_tokens_seen_count * flops_per_token as training_flops,
        billed_peak_flops * training_part as training_peak_flops,
        6 * params_active * tokens_seen_count / 1e18 as effective_exaflop_count,
        case
            when tokens_seen_count is null then 'the run does not record how many tokens it saw'
            when params_active is null then 'the run does not record how many parameters its model has'
            when flops_per_token is null
                then 'the run does not record its layers, heads, head width and sequence length'
            when precision is null then 'the run does not record its precision'
            when not has_hours then 'the bill has no accelerator time of the run'
            when is_partial then 'recorded machine hours of the run are not on the bill'
            when billed_peak_flops is null then 'no peak is defined: the precision is FP8, or ref_instance_type has no peak of a chip'
            when training_part is null or epoch_tokens_seen_count is null
                then 'no completed epoch records its tokens: utilization is of billed time only'
        end as missing_evidence
    from described
)

select
    run.run_id, run.workload_id, cost.billing_currency, cost.accelerator_family, cost.instance_type, run.status, run.team, run.owner,
    measured.precision, measured.params_active, measured.tokens_seen_count, measured.flops_per_token, measured.effective_exaflop_count,
    model_flops_utilization_ratio(measured.training_flops) as model_flops_utilization_ratio,
    billed_flops_utilization_ratio(measured.billed_flops) as billed_flops_utilization_ratio,
    -- No chip exceeds its peak: tokens are counted per core or twice, belong to another model, or some chips are missing.
    coalesce(greatest(model_flops_utilization_ratio(measured.training_flops), billed_flops_utilization_ratio(measured.billed_flops)) > 1, false)
        as is_impossible,
    cost_per_effective_exaflop_usd(if_whole(cost.effective_cost_usd, measured.is_partial)) as cost_per_effective_exaflop_usd,
    cost_per_effective_exaflop_usd(if_whole(cost.list_cost_usd, measured.is_partial)) as list_cost_per_effective_exaflop_usd,
    cost_per_effective_exaflop_usd(if_whole(cost.billed_cost_usd, measured.is_partial)) as billed_cost_per_effective_exaflop_usd,
    measured.missing_evidence
from measured
join dim_run as run on run.run_id = measured.run_id
join fct_run_cost as cost on cost.run_id = measured.run_id
group by all
