-- One row per Trainium run × baseline version whose runs, or the proven comparison with it, recorded other work: in which
-- fields. A declared workload id does not make runs alike; what a run does not record is unknown, not other work. Epochs
-- are alike within 5 percent, as in the comparison: by tokens, or by samples where one of both records no tokens.
with recorded as (
    select run_id, 'model' as field_name, model as field_value from detail_run_job
    union all
    select run_id, 'dataset', dataset from detail_run_job
    union all
    select run_id, 'sequence length', cast(seq_len as varchar) from detail_run_job
    union all
    select run_id, 'global batch', cast(global_batch_samples as varchar) from detail_run_job
    union all
    select run_id, 'precision', precision from detail_run_job
    union all
    select run_id, 'target', target_words from detail_run_job
    union all
    select run_id, 'base checkpoint', coalesce(origin_checkpoint_id, 'none') from detail_run_job
    union all
    select run_id, 'evaluation split', target_split from detail_run_job
    union all
    select run_id, 'epoch size', cast(epoch_token_count as varchar) from detail_run_job
    union all
    select run_id, 'epoch size in samples', cast(epoch_sample_count as varchar) from detail_run_job
),

field as (
    select * from recorded where field_value is not null
),

proven as (
    select workload_id, billing_currency, baseline_instance_type, candidate_instance_type
    from mart_silicon_comparison
    where verdict = 'proven' and cost_basis = coalesce(registered_cost_basis, 'effective')
),

named as (
    select 'baseline' as origin, baseline_name, baseline_version, cast(null as varchar) as instance_type, run_id
    from declared_baseline_run

    union all

    select distinct
        'proven', baseline.baseline_name, baseline.baseline_version, compared.candidate_instance_type, compared.run_id
    from detail_compared_run as compared
    join proven using (workload_id, billing_currency, baseline_instance_type, candidate_instance_type)
    join detail_baseline as baseline using (workload_id, baseline_instance_type)
    where compared.comparison_part in ('compared', 'failed')
),

known as (
    select named.origin, named.baseline_name, named.baseline_version, named.instance_type, field.field_name,
        list(distinct field.field_value) as field_values, min(job.epoch_token_count) as least_tokens,
        max(job.epoch_token_count) as most_tokens, min(job.epoch_sample_count) as least_samples,
        max(job.epoch_sample_count) as most_samples
    from named
    join detail_run_job as job on job.run_id = named.run_id
    join field on field.run_id = named.run_id
    group by named.origin, named.baseline_name, named.baseline_version, named.instance_type, field.field_name
)

select
    run.run_id, known.baseline_name, known.baseline_version,
    string_agg(distinct field.field_name, ' and ' order by field.field_name) as differing_fields
from fct_run as run
join detail_baseline as baseline on baseline.workload_id = run.workload_id
join known on known.baseline_name = baseline.baseline_name and known.baseline_version = baseline.baseline_version
    and coalesce(known.instance_type = run.instance_type, true)
join field on field.run_id = run.run_id and field.field_name = known.field_name
join detail_run_job as own on own.run_id = run.run_id
where run.accelerator_family = 'trainium' and case field.field_name
    when 'epoch size' then greatest(own.epoch_token_count, known.most_tokens)
        > 1.05 * least(own.epoch_token_count, known.least_tokens)
    when 'epoch size in samples' then (own.epoch_token_count is null or known.most_tokens is null)
        and greatest(own.epoch_sample_count, known.most_samples)
        > 1.05 * least(own.epoch_sample_count, known.least_samples)
    else not list_contains(known.field_values, field.field_value) end
group by run.run_id, known.baseline_name, known.baseline_version
