-- One row per month × currency: what was paid for GPU commitments and GPU capacity that no GPU used.
-- Reservations, blocks and reserved capacity name their chip. A Savings Plan names none: its unused cost counts up to
-- what GPUs used of it in their busiest earlier month and use no longer. detail_commitment_stranding has the cost still
-- to come.
with named as (
    select
        cast(date_trunc('month', usage_date) as date) as month_date, billing_currency,
        sum(effective_cost_usd) as stranded_cost_usd
    from fct_ledger
    where bucket in ('commitment_unused', 'capacity_unused') and accelerator_family = 'gpu'
    group by 1, 2
),

used as (
    select
        cast(date_trunc('month', usage_date) as date) as month_date, payer_account_id, billing_currency, commitment_id,
        sum(used_cost_usd) as gpu_used_cost_usd
    from detail_commitment_use_daily
    where commitment_kind not in ('none', 'reserved_instance') and accelerator_family = 'gpu'
    group by 1, payer_account_id, billing_currency, commitment_id
),

plan as (
    select
        cast(date_trunc('month', usage_date) as date) as month_date, payer_account_id, billing_currency, commitment_id,
        greatest(sum(unused_cost_usd), 0) as unused_cost_usd
    from detail_commitment_utilization_daily
    where commitment_kind <> 'reserved_instance' and unused_cost_usd is not null
    group by 1, payer_account_id, billing_currency, commitment_id
),

month as (
    select plan.*, coalesce(used.gpu_used_cost_usd, 0) as gpu_used_cost_usd,
        max(coalesce(used.gpu_used_cost_usd, 0)) over (
            partition by plan.payer_account_id, plan.billing_currency, plan.commitment_id
            order by plan.month_date rows between unbounded preceding and 1 preceding) as busiest_cost_usd
    from plan
    left join used using (month_date, payer_account_id, billing_currency, commitment_id)
),

stranded as (
    select month_date, billing_currency, stranded_cost_usd from named

    union all

    select month_date, billing_currency, least(unused_cost_usd, greatest(busiest_cost_usd - gpu_used_cost_usd, 0))
    from month
    where busiest_cost_usd is not null
)

select month_date, billing_currency, sum(stranded_cost_usd) as stranded_cost_usd
from stranded
group by month_date, billing_currency
