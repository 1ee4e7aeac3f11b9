-- One row per commitment that GPUs use: what it would leave unused to its end if they moved, by its last 28 days with figures.
-- A plan or reservation bound to a GPU family is stranded whole. A Compute plan turns to what else is on demand, Trainium as well, at the
-- discount it has now: `stranded_after_other_usage_usd`. What the move itself adds on Trainium is not known here and would take more of it.
with newest as (
    select payer_account_id, billing_currency, max(usage_date) as newest_date
    from fct_commitment_daily
    group by payer_account_id, billing_currency
),

recent as (
    select daily.*, cast(newest.newest_date + interval '1' day as timestamp) as told_until_at
    from fct_commitment_daily as daily
    join newest on newest.payer_account_id = daily.payer_account_id and newest.billing_currency = daily.billing_currency
    where daily.usage_date > newest.newest_date - interval '28' day and daily.commitment_cost_usd is not null
),

gpu as (
    select usage_date, payer_account_id, billing_currency, commitment_discount_id, sum(amortised_cost_usd) as gpu_used_cost_usd
    from fct_commitment_use_daily
    where covering_kind is not null and accelerator_family = 'gpu'
    group by usage_date, payer_account_id, billing_currency, commitment_discount_id
),

-- Open to a Compute plan and no GPU.
elsewhere as (
    select usage_date, payer_account_id, billing_currency, sum(list_cost_usd) as open_list_cost_usd
    from fct_commitment_use_daily
    where covering_kind is null and accelerator_family <> 'gpu' and commitment_eligibility in ('ec2_instance', 'fargate', 'lambda')
    group by usage_date, payer_account_id, billing_currency
),

day as (
    select
        recent.*,
        coalesce(gpu.gpu_used_cost_usd, 0) as gpu_used_cost_usd,
        case when recent.commitment_kind = 'compute_savings_plan' then coalesce(elsewhere.open_list_cost_usd, 0) else 0 end as open_list_cost_usd
    from recent
    left join gpu
        on gpu.usage_date = recent.usage_date and gpu.payer_account_id = recent.payer_account_id
        and gpu.billing_currency = recent.billing_currency and gpu.commitment_discount_id = recent.commitment_discount_id
    left join elsewhere
        on elsewhere.usage_date = recent.usage_date and elsewhere.payer_account_id = recent.payer_account_id
        and elsewhere.billing_currency = recent.billing_currency
),

summed as (
    select
        payer_account_id, billing_currency, commitment_discount_id, commitment_kind, max(told_until_at) as told_until_at,
        count(distinct usage_date) as basis_day_count,
        sum(commitment_cost_usd) as commitment_cost_usd,
        sum(gpu_used_cost_usd) as gpu_used_cost_usd,
        sum(unused_cost_usd) as unused_cost_usd,
        ratio(sum(covered_cost_usd), sum(covered_list_cost_usd)) as paid_ratio,
        sum(open_list_cost_usd) as open_list_cost_usd
    from day
    group by payer_account_id, billing_currency, commitment_discount_id, commitment_kind
    having sum(gpu_used_cost_usd) > 0
),

dated as (
    select
        summed.*, terms.ended_at,
        days_left(summed.told_until_at, terms.ended_at) as days_to_expiry,
        -- What is unused already would take it first.
        cast(least(greatest(cast(summed.open_list_cost_usd as double) * cast(coalesce(summed.paid_ratio, 1) as double)
            - greatest(cast(summed.unused_cost_usd as double), 0), 0), cast(summed.gpu_used_cost_usd as double)) as decimal(20, 6)) as taken_cost_usd
    from summed
    left join dim_commitment as terms
        on terms.payer_account_id = summed.payer_account_id and terms.billing_currency = summed.billing_currency
        and terms.commitment_discount_id = summed.commitment_discount_id and terms.commitment_kind = summed.commitment_kind
)

select
    payer_account_id, billing_currency, commitment_discount_id, commitment_kind, ended_at, days_to_expiry,
    cast(basis_day_count as bigint) as basis_day_count,
    projected_usd(commitment_cost_usd, basis_day_count, days_to_expiry) as committed_to_expiry_usd,
    projected_usd(unused_cost_usd, basis_day_count, days_to_expiry) as unused_to_expiry_usd,
    projected_usd(gpu_used_cost_usd, basis_day_count, days_to_expiry) as stranded_cost_usd,
    projected_usd(gpu_used_cost_usd - taken_cost_usd, basis_day_count, days_to_expiry) as stranded_after_other_usage_usd
from dated
