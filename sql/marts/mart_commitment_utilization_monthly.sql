-- One row per billing month × payer × currency × commitment: what it cost, what used it, what that saved, and why where
-- it saved nothing.
-- A Savings Plan names no chip. Of its unused cost as much is stranded as GPUs used in their busiest earlier month and
-- use no longer; detail_commitment_stranding has the cost still to come.
with gpu as (
    select
        cast(date_trunc('month', usage_date) as date) as billing_month, payer_account_id, billing_currency,
        commitment_id, known_sum(used_cost_usd) as gpu_used_cost_usd, true as is_used_by_gpus
    from detail_commitment_use_daily
    where commitment_kind not in ('none', 'reserved_instance') and accelerator_family = 'gpu'
    group by 1, payer_account_id, billing_currency, commitment_id
),

month as (
    select
        billing_month, payer_account_id, billing_currency, commitment_id, commitment_kind, account_id, region_id,
        instance_family, payment_option, purchase_term, started_at, ended_at,
        cast(max(usage_date) + interval '1' day as timestamp) as newest_day_ended_at,
        known_sum(commitment_cost_usd) as commitment_cost_usd,
        known_sum(used_cost_usd) as used_cost_usd,
        known_sum(unused_cost_usd) as unused_cost_usd,
        utilization_ratio(used_cost_usd, commitment_cost_usd) as utilization_ratio,
        sum(covered_hours) as covered_hours,
        known_sum(covered_cost_usd) as covered_cost_usd,
        known_sum(covered_list_cost_usd) as covered_list_cost_usd,
        sum(unallocated_fee_usd) as unallocated_fee_usd
    from detail_commitment_utilization_daily
    group by billing_month, payer_account_id, billing_currency, commitment_id, commitment_kind, account_id, region_id,
        instance_family, payment_option, purchase_term, started_at, ended_at
),

used as (
    select month.*, case when gpu.is_used_by_gpus then gpu.gpu_used_cost_usd else 0 end as gpu_used_cost_usd
    from month
    left join gpu using (billing_month, payer_account_id, billing_currency, commitment_id)
),

-- Unknown in the first month of a plan, where the bill does not show what used it, and where it has no cost of GPU use.
stranding as (
    select *,
        max(case when unused_cost_usd is not null then gpu_used_cost_usd end) over (
            partition by payer_account_id, billing_currency, commitment_id
            order by billing_month rows between unbounded preceding and 1 preceding) as busiest_cost_usd
    from used
)

select
    billing_month, payer_account_id, billing_currency, commitment_id, commitment_kind, account_id, region_id,
    instance_family, payment_option, purchase_term, started_at, ended_at, commitment_cost_usd, used_cost_usd,
    unused_cost_usd, utilization_ratio,
    covered_hours, covered_list_cost_usd, covered_list_cost_usd - commitment_cost_usd as net_savings_usd,
    ratio(covered_cost_usd, covered_list_cost_usd) as break_even_utilization_ratio,
    ratio(commitment_cost_usd, covered_list_cost_usd) as effective_rate_ratio,
    lost_savings_reason(commitment_cost_usd, used_cost_usd, covered_cost_usd, covered_list_cost_usd,
        unallocated_fee_usd > 0) as lost_savings_reason,
    unallocated_fee_usd,
    case when commitment_kind <> 'reserved_instance' and unused_cost_usd is not null and busiest_cost_usd is not null
            and gpu_used_cost_usd is not null
        then least(greatest(unused_cost_usd, 0), greatest(busiest_cost_usd - gpu_used_cost_usd, 0)) end
        as stranded_cost_usd,
    days_left(newest_day_ended_at, ended_at) as days_to_expiry,
    coalesce(ended_at <= newest_day_ended_at, false) as is_expired
from stranding
