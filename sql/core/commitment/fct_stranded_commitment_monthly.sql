-- One row per month × currency: commitments to GPUs that are paid for, and that no GPU uses.
-- Reservations, blocks and reserved capacity name their chip. A Savings Plan names none: of it counts what GPUs used in their busiest month
-- before and use no more, as far as nothing else took it (detail_commitment_stranding says what of it is still to come).
with named as (
    select cast(date_trunc('month', usage_date) as date) as month_date, billing_currency, sum(effective_cost_usd) as stranded_cost_usd
    from fct_ledger
    where bucket in ('commitment_unused', 'capacity_unused') and accelerator_family = 'gpu'
    group by 1, 2
),

used as (
    select cast(date_trunc('month', usage_date) as date) as month_date, payer_account_id, billing_currency, commitment_discount_id,
        sum(amortised_cost_usd) as gpu_used_cost_usd
    from fct_commitment_use_daily
    where covering_kind is not null and covering_kind <> 'reserved_instance' and accelerator_family = 'gpu'
    group by 1, payer_account_id, billing_currency, commitment_discount_id
),

plan as (
    select cast(date_trunc('month', usage_date) as date) as month_date, payer_account_id, billing_currency, commitment_discount_id,
        greatest(sum(unused_cost_usd), 0) as unused_cost_usd
    from fct_commitment_daily
    where commitment_kind <> 'reserved_instance' and unused_cost_usd is not null
    group by 1, payer_account_id, billing_currency, commitment_discount_id
),

month as (
    select plan.*, coalesce(used.gpu_used_cost_usd, 0) as gpu_used_cost_usd,
        max(coalesce(used.gpu_used_cost_usd, 0)) over (partition by plan.payer_account_id, plan.billing_currency, plan.commitment_discount_id
            order by plan.month_date rows between unbounded preceding and 1 preceding) as busiest_cost_usd
    from plan
    left join used
        on used.month_date = plan.month_date and used.payer_account_id = plan.payer_account_id
        and used.billing_currency = plan.billing_currency and used.commitment_discount_id = plan.commitment_discount_id
),

told as (
    select month_date, billing_currency, stranded_cost_usd from named

    union all

    select month_date, billing_currency, least(unused_cost_usd, greatest(busiest_cost_usd - gpu_used_cost_usd, 0))
    from month
    where busiest_cost_usd is not null
)

select month_date, billing_currency, sum(stranded_cost_usd) as stranded_cost_usd
from told
group by month_date, billing_currency
