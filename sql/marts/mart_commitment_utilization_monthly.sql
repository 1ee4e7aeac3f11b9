-- One row per billing month × payer × currency × commitment: what it cost, what used it, what that saved, and why where
-- it saved nothing.
-- A Savings Plan names no chip. Of its unused cost as much is stranded as the share of GPUs fell since their busiest
-- earlier month, whatever the length of the two; detail_commitment_stranding has the cost still to come.
-- Capacity of Bedrock bought for a term is a commitment too. The bill shows neither what used it nor when it ends.
-- One that was exchanged, sold or returned has no fee in the month's newest days and none in a later month, whatever its
-- term.
with newest as (
    select billing_month, payer_account_id, billing_currency, cast(max(newest_usage_at) as date) as newest_date,
        max(cast(max(newest_usage_at) as date)) over (partition by payer_account_id, billing_currency) as payer_newest_date
    from fct_invoice_monthly
    group by billing_month, payer_account_id, billing_currency
),

gpu as (
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
        max(case when commitment_cost_usd is not null then usage_date end) as newest_fee_date,
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
    select month.*, case when gpu.is_used_by_gpus then gpu.gpu_used_cost_usd else 0 end as gpu_used_cost_usd,
        -- Fees may come a day or two after usage.
        coalesce(ended_at <= newest_day_ended_at, false)
            or coalesce(newest_fee_date < newest.newest_date - interval '2' day, false)
            or coalesce(newest_fee_date < newest.payer_newest_date - interval '2' day, false)
                and lead(billing_month) over (partition by payer_account_id, billing_currency, commitment_id
                    order by billing_month) is null as is_expired
    from month
    left join newest using (billing_month, payer_account_id, billing_currency)
    left join gpu using (billing_month, payer_account_id, billing_currency, commitment_id)
),

bedrock as (
    select
        charge.billing_month, charge.payer_account_id, charge.billing_currency,
        coalesce(charge.resource_id, '') as commitment_id, 'bedrock_' || meter.tier as commitment_kind,
        case when min(charge.account_id) = max(charge.account_id) then max(charge.account_id) end as account_id,
        case when min(charge.region_id) = max(charge.region_id) then max(charge.region_id) end as region_id,
        case when min(meter.purchase_term) = max(meter.purchase_term) then max(meter.purchase_term) end as purchase_term,
        known_sum(charge.amortized_cost_usd) as commitment_cost_usd
    from fct_charge as charge
    join stg_aws__bedrock_meter as meter using (billing_period, bedrock_meter_id)
    -- What names a commitment has a fee of its own above.
    where meter.purchase_term is not null and charge.charge_category in ('Usage', 'Purchase')
        and charge.commitment_discount_id is null
    group by charge.billing_month, charge.payer_account_id, charge.billing_currency, coalesce(charge.resource_id, ''),
        meter.tier
),

-- Unknown in the first month of a plan, where the bill does not show what used it, and where it has no cost of GPU use.
stranding as (
    select *,
        cast(cast(commitment_cost_usd as double) * max(case when unused_cost_usd is not null
                then cast(gpu_used_cost_usd as double) / nullif(cast(commitment_cost_usd as double), 0) end) over (
            partition by payer_account_id, billing_currency, commitment_id
            order by billing_month rows between unbounded preceding and 1 preceding) as decimal(20, 10))
            as busiest_cost_usd
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
    case when is_expired then 0 else days_left(newest_day_ended_at, ended_at) end as days_to_expiry, is_expired
from stranding

union all

select
    billing_month, payer_account_id, billing_currency, commitment_id, commitment_kind, account_id, region_id,
    null, null, purchase_term, null, null, commitment_cost_usd, null, null, null, null, null, null, null, null,
    lost_savings_reason(commitment_cost_usd, null, null, null, true), 0, null, null, false
from bedrock
