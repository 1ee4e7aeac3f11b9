-- One row per run: the operations its model needed, compared with the peak of its chips over the same time.
with hours as (
    select run_id, instance_type, sum(accelerator_hours) as accelerator_hours
    from fct_run_cost_hourly
    group by run_id, instance_type
),

-- Unknown where the peak of one of its machines is: FP8 has none, for its peak mixes precisions.
peak as (
    select
        hours.run_id,
        sum(hours.accelerator_hours) as accelerator_hours,
        known_sum(cast(hours.accelerator_hours as double) * 3600 * cast(chip.peak_bf16_tflops as double) * 1e12) as peak_flops
    from hours
    left join ref_instance_type as machine on machine.instance_type = replace(hours.instance_type, 'ml.', '')
    left join ref_accelerator_peak as chip on chip.accelerator_name = machine.accelerator_name
    where hours.accelerator_hours > 0
    group by hours.run_id
),

training as (
    select run_id, sum(accelerator_hours) as accelerator_hours
    from fct_interval_cost
    where interval_kind = 'epoch'
    group by run_id
),

described as (
    select
        run.run_id, run.precision, run.params_active, recorded.tokens_seen_count,
        training_flops_per_token(run.params_active, run.n_layers, run.n_heads, run.head_dim, run.seq_len) as flops_per_token,
        recorded.epoch_tokens_seen_count,
        case when run.precision is not null and lower(run.precision) not like '%fp8%' and lower(run.precision) not like '%float8%'
            then peak.peak_flops end as billed_peak_flops,
        cast(training.accelerator_hours as double) / nullif(cast(peak.accelerator_hours as double), 0) as training_part,
        peak.run_id is not null as has_hours
    from stg_tracker__run as run
    join dim_run as recorded on recorded.run_id = run.run_id
    left join peak on peak.run_id = run.run_id
    left join training on training.run_id = run.run_id
),

measured as (
    select
        run_id, precision, params_active, tokens_seen_count, flops_per_token,
        tokens_seen_count * flops_per_token as billed_flops,
        epoch_tokens_seen_count * flops_per_token as training_flops,
        billed_peak_flops,
        billed_peak_flops * training_part as training_peak_flops,
        6 * params_active * tokens_seen_count / 1e18 as effective_exaflop_count,
        case
            when tokens_seen_count is null then 'the run does not record how many tokens it saw'
            when params_active is null then 'the run does not record how many parameters its model has'
            when flops_per_token is null
                then 'the run does not record its layers, heads, head width and sequence length'
            when precision is null then 'the run does not record its precision'
            when not has_hours then 'the bill has no accelerator time of the run'
            when billed_peak_flops is null then 'no peak is defined: the precision is FP8, or a chip is not in ref_accelerator_peak'
            when training_part is null or epoch_tokens_seen_count is null
                then 'no completed epoch records its tokens: utilization is of billed time only'
        end as missing_evidence
    from described
)

select
    run_id, precision, params_active, tokens_seen_count, flops_per_token, billed_flops, training_flops, billed_peak_flops,
    training_peak_flops, effective_exaflop_count,
    model_flops_utilization_ratio(training_flops) as model_flops_utilization_ratio,
    billed_flops_utilization_ratio(billed_flops) as billed_flops_utilization_ratio,
    -- No chip exceeds its peak: tokens are counted per core or twice, belong to another model, or some chips are missing.
    coalesce(greatest(model_flops_utilization_ratio(training_flops), billed_flops_utilization_ratio(billed_flops)) > 1, false)
        as is_impossible,
    missing_evidence
from measured
group by all
