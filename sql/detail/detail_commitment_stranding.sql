-- One row per commitment in force that GPUs use: what a move away from GPUs would leave unused of it until it ends,
-- projected from its last 28 days. One that was returned or exchanged has no fee in the bill's newest days. The newest
-- day, where the bill has a part of it, does not count, unless the commitment has no other.
-- A plan or reservation bound to a GPU family is stranded whole. A Compute plan covers other on-demand usage instead,
-- at the discount it has now: `stranded_after_other_usage_usd`. What the moved work itself adds on Trainium is unknown
-- here; it would use more of the plan.
with newest as (
    select payer_account_id, billing_currency, max(newest_date) as newest_date,
        case when max(newest_usage_at) >= cast(max(newest_date) as timestamp)
                and max(newest_usage_at) < cast(max(newest_date) as timestamp) + interval '23' hour
            then cast(max(newest_date) - interval '1' day as date) else max(newest_date) end as whole_date
    from (select payer_account_id, billing_currency, usage_date as newest_date, null as newest_usage_at
        from detail_commitment_utilization_daily
        union all
        select payer_account_id, billing_currency, cast(newest_usage_at as date), newest_usage_at
        from fct_invoice_monthly) as day
    group by payer_account_id, billing_currency
),

recent as (
    select daily.*, cast(newest.newest_date + interval '1' day as timestamp) as newest_day_ended_at, newest.whole_date,
        min(daily.usage_date) over (partition by daily.payer_account_id, daily.billing_currency, daily.commitment_id,
            daily.commitment_kind) as first_date
    from detail_commitment_utilization_daily as daily
    join newest on newest.payer_account_id = daily.payer_account_id and newest.billing_currency = daily.billing_currency
    where daily.usage_date > newest.newest_date - interval '28' day and daily.commitment_cost_usd is not null
),

gpu as (
    select usage_date, payer_account_id, billing_currency, commitment_id, true as is_used_by_gpus,
        known_sum(used_cost_usd) as gpu_used_cost_usd
    from detail_commitment_use_daily
    where commitment_kind <> 'none' and accelerator_family = 'gpu'
    group by usage_date, payer_account_id, billing_currency, commitment_id
),

-- On demand, no GPU, and eligible for a Compute plan.
elsewhere as (
    select usage_date, payer_account_id, billing_currency, sum(eligible_list_cost_usd) as on_demand_list_cost_usd
    from detail_commitment_use_daily
    where commitment_kind = 'none' and accelerator_family <> 'gpu'
        and commitment_eligibility in ('ec2_instance', 'fargate', 'lambda')
    group by usage_date, payer_account_id, billing_currency
),

day as (
    select
        recent.*, case when gpu.is_used_by_gpus then gpu.gpu_used_cost_usd else 0 end as gpu_used_cost_usd,
        case when recent.commitment_kind = 'compute_savings_plan'
            then coalesce(elsewhere.on_demand_list_cost_usd, 0) else 0 end as on_demand_list_cost_usd
    from recent
    left join gpu using (usage_date, payer_account_id, billing_currency, commitment_id)
    left join elsewhere using (usage_date, payer_account_id, billing_currency)
    where recent.usage_date <= recent.whole_date or recent.usage_date = recent.first_date
),

summed as (
    select
        payer_account_id, billing_currency, commitment_id, commitment_kind, ended_at,
        days_left(max(newest_day_ended_at), ended_at) as days_to_expiry,
        count(distinct usage_date) as basis_day_count,
        sum(commitment_cost_usd) as commitment_cost_usd,
        known_sum(gpu_used_cost_usd) as gpu_used_cost_usd,
        known_sum(unused_cost_usd) as unused_cost_usd,
        ratio(sum(covered_cost_usd), sum(covered_list_cost_usd)) as paid_ratio,
        sum(on_demand_list_cost_usd) as on_demand_list_cost_usd
    from day
    group by payer_account_id, billing_currency, commitment_id, commitment_kind, ended_at
    -- Fees may come a day or two after usage.
    having max(usage_date) >= max(newest_day_ended_at) - interval '3' day
        and (sum(gpu_used_cost_usd) > 0 or count(gpu_used_cost_usd) < count(*))
),

-- The other usage first uses what is unused already.
taken as (
    select *,
        cast(least(greatest(cast(on_demand_list_cost_usd as double) * cast(coalesce(paid_ratio, 1) as double)
            - greatest(cast(unused_cost_usd as double), 0), 0), cast(gpu_used_cost_usd as double)) as decimal(20, 6))
            as taken_cost_usd
    from summed
)

select
    payer_account_id, billing_currency, commitment_id, commitment_kind, ended_at, days_to_expiry,
    cast(basis_day_count as bigint) as basis_day_count,
    projected_usd(commitment_cost_usd, basis_day_count, days_to_expiry) as committed_to_expiry_usd,
    projected_usd(unused_cost_usd, basis_day_count, days_to_expiry) as unused_to_expiry_usd,
    projected_usd(gpu_used_cost_usd, basis_day_count, days_to_expiry) as stranded_cost_usd,
    projected_usd(gpu_used_cost_usd - taken_cost_usd, basis_day_count, days_to_expiry)
        as stranded_after_other_usage_usd,
    case when unused_cost_usd is null then 'the bill does not show what used it'
        when gpu_used_cost_usd is null then 'the bill has no cost of some GPU use'
        when ended_at is null then 'no end date on any bill' when days_to_expiry = 0 then 'it has ended' end
        as missing_evidence
from taken
