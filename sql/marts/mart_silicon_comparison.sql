-- One row per workload × GPU instance type × Trainium instance type × cost basis × currency: completed runs side by side.
-- Blocks are each run's own: only passes over the dataset are compared by the epoch.
-- The unit is the strongest one every run of the pair has: cost to target, else per epoch, else per million tokens.
with run as (
    select *, case when epoch_unit = 'dataset_pass' then 1 end as comparable
    from mart_run_cost
    where status = 'completed' and is_billed and accelerator_family in ('gpu', 'trainium') and instance_type <> 'mixed'
),

measured as (
    select run_id, workload_id, accelerator_family, instance_type, billing_currency, ended_at, 'list' as cost_basis,
        list_cost_to_target_usd as to_target, list_cost_per_epoch_usd * comparable as per_epoch, list_cost_per_million_tokens_usd as per_tokens from run
    union all
    select run_id, workload_id, accelerator_family, instance_type, billing_currency, ended_at, 'effective',
        cost_to_target_usd, cost_per_epoch_usd * comparable, cost_per_million_tokens_usd from run
    union all
    select run_id, workload_id, accelerator_family, instance_type, billing_currency, ended_at, 'billed',
        billed_cost_to_target_usd, billed_cost_per_epoch_usd * comparable, billed_cost_per_million_tokens_usd from run
),

side as (
    select
        workload_id, cost_basis, billing_currency, accelerator_family, instance_type,
        count(*) as run_count,
        max(cast(ended_at as date)) as last_run_date,
        case when count(to_target) filter (where to_target > 0) = count(*)
            then exp(avg(ln(cast(nullif(greatest(to_target, 0), 0) as double)))) end as to_target_usd,
        case when count(per_epoch) filter (where per_epoch > 0) = count(*)
            then exp(avg(ln(cast(nullif(greatest(per_epoch, 0), 0) as double)))) end as per_epoch_usd,
        case when count(per_tokens) filter (where per_tokens > 0) = count(*)
            then exp(avg(ln(cast(nullif(greatest(per_tokens, 0), 0) as double)))) end as per_tokens_usd
    from measured
    group by workload_id, cost_basis, billing_currency, accelerator_family, instance_type
),

pair as (
    select
        gpu.workload_id, gpu.instance_type as gpu_instance_type, trainium.instance_type as trainium_instance_type,
        gpu.cost_basis, gpu.billing_currency, gpu.run_count as gpu_run_count, trainium.run_count as trainium_run_count,
        greatest(gpu.last_run_date, trainium.last_run_date) as price_date,
        case
            when gpu.to_target_usd is not null and trainium.to_target_usd is not null then 'cost_to_target'
            when gpu.per_epoch_usd is not null and trainium.per_epoch_usd is not null then 'cost_per_epoch'
            when gpu.per_tokens_usd is not null and trainium.per_tokens_usd is not null then 'cost_per_million_tokens'
            else 'none'
        end as unit_measure,
        gpu.to_target_usd as gpu_to_target, trainium.to_target_usd as trainium_to_target,
        gpu.per_epoch_usd as gpu_per_epoch, trainium.per_epoch_usd as trainium_per_epoch,
        gpu.per_tokens_usd as gpu_per_tokens, trainium.per_tokens_usd as trainium_per_tokens
    from side as gpu
    join side as trainium
        on trainium.workload_id = gpu.workload_id
        and trainium.cost_basis = gpu.cost_basis
        and trainium.billing_currency = gpu.billing_currency
        and gpu.accelerator_family = 'gpu'
        and trainium.accelerator_family = 'trainium'
),

chosen as (
    select
        *,
        case unit_measure when 'cost_to_target' then gpu_to_target when 'cost_per_epoch' then gpu_per_epoch
            when 'cost_per_million_tokens' then gpu_per_tokens end as gpu_unit_cost,
        case unit_measure when 'cost_to_target' then trainium_to_target when 'cost_per_epoch' then trainium_per_epoch
            when 'cost_per_million_tokens' then trainium_per_tokens end as trainium_unit_cost
    from pair
)

select
    workload_id, gpu_instance_type, trainium_instance_type, cost_basis, billing_currency, gpu_run_count, trainium_run_count,
    unit_measure,
    ratio(gpu_unit_cost, 1) as gpu_unit_cost_usd,
    ratio(trainium_unit_cost, 1) as trainium_unit_cost_usd,
    ratio(gpu_unit_cost - trainium_unit_cost, gpu_unit_cost) as saving_ratio,
    cast(null as decimal(20, 6)) as saving_low_ratio,
    cast(null as decimal(20, 6)) as saving_high_ratio,
    case when unit_measure = 'none' then 'not comparable' else 'indicative' end as verdict,
    case when unit_measure = 'none' then 'no unit of work is measured on every run of both sides on this basis'
        else 'geometric means side by side; no interval is computed, so nothing is proven'
    end as verdict_reason,
    price_date
from chosen
