-- One row per payer, open billing month and currency with commitment fees whose use the bill does not show: what of them
-- no covered line explains.
-- partition: billing_period
-- Up to the moment that fct_invoice_monthly cuts the month at. Of a closed month its `commitment_timing_usd` shows it.
with cut as (
    select billing_month, payer_account_id, billing_currency, max(cut_at) as cut_at
    from fct_invoice_monthly
    where cut_at is not null
    group by billing_month, payer_account_id, billing_currency
),

fee as (
    select
        fee.billing_period, billing_month, payer_account_id, billing_currency, fee.commitment_discount_id,
        sum(part_before_usd(fee.owed_cost_usd, null, fee.fee_started_at, fee.fee_ended_at, cut.cut_at))
            as owed_cost_usd
    from stg_aws__commitment_fee as fee
    join cut using (billing_month, payer_account_id, billing_currency)
    where fee.unused_cost_usd is null
    group by fee.billing_period, billing_month, payer_account_id, billing_currency, fee.commitment_discount_id
),

covered as (
    select billing_month, payer_account_id, billing_currency,
        coalesce(commitment_discount_id, '') as commitment_discount_id, sum(amortized_cost_usd) as covered_cost_usd
    from fct_charge
    where effective_rule in ('savings_plan', 'reservation')
    group by all
)

select billing_period, billing_month, payer_account_id, billing_currency,
    sum(owed_cost_usd - coalesce(covered_cost_usd, 0)) as unallocated_fee_usd
from fee
left join covered using (billing_month, payer_account_id, billing_currency, commitment_discount_id)
-- Up to a cent is rounding.
where owed_cost_usd - coalesce(covered_cost_usd, 0) > 0.01
group by billing_period, billing_month, payer_account_id, billing_currency
