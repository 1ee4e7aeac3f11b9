-- One row per month × currency with a commitment or reserved capacity: what of it GPUs left unused though it is paid.
-- Reservations, blocks and reserved capacity name their chip in the ledger; a plan has what is stranded of it. Null
-- where a part is unknown: the use of a plan or of a reservation of GPUs, or their use before a plan's first month.
with gpu_reservation as (
    select distinct payer_account_id, commitment_discount_id as commitment_id, true as is_for_gpus
    from fct_charge
    where effective_rule in ('reservation', 'reservation_unused') and accelerator_family in ('gpu', 'unknown')
),

part as (
    select
        billing_month as month_date, billing_currency,
        case
            when commitment_kind = 'reserved_instance'
                then case when is_for_gpus is null or unused_cost_usd is not null then 0 end
            when commitment_kind = 'database_savings_plan' or commitment_kind like 'bedrock_%' or unused_cost_usd <= 0 then 0
            else stranded_cost_usd
        end as still_committed_cost_usd
    from mart_commitment_utilization_monthly
    left join gpu_reservation using (payer_account_id, commitment_id)

    union all

    select cast(date_trunc('month', usage_date) as date), billing_currency, effective_cost_usd
    from fct_ledger
    where bucket = 'capacity_unused' and accelerator_family = 'gpu'

    union all

    select billing_month, billing_currency, effective_unused_to_date_usd
    from fct_commitment_unused_monthly
    where accelerator_family = 'gpu'
)

select month_date, billing_currency, known_sum(still_committed_cost_usd) as still_committed_cost_usd
from part
group by month_date, billing_currency
