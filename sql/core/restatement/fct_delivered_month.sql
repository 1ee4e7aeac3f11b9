-- One row per payer × delivered month × currency: the delivery that is read now and what it holds.
with delivery as (
    select billing_period, payer_account_id, billing_currency, max(source_name) as source_name, max(delivery_id) as delivery_id
    from stg_aws__invoice_total
    group by billing_period, payer_account_id, billing_currency
),

charge as (
    select
        billing_period, payer_account_id, billing_currency,
        cast(sum(line_count) as bigint) as line_count,
        known_sum(list_cost_usd) as list_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Usage'), 0) as usage_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Purchase'), 0) as purchase_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Tax'), 0) as tax_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Credit'), 0) as credit_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Refund'), 0) as refund_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Discount'), 0) as discount_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Support'), 0) as support_billed_cost_usd
    from fct_charge_sum_monthly
    group by billing_period, payer_account_id, billing_currency
)

select
    delivery.payer_account_id, cast(delivery.billing_period || '-01' as date) as billing_month, delivery.billing_currency,
    delivery.source_name, delivery.delivery_id,
    charge.line_count, charge.list_cost_usd, charge.effective_cost_usd, charge.billed_cost_usd,
    charge.usage_billed_cost_usd, charge.purchase_billed_cost_usd, charge.tax_billed_cost_usd, charge.credit_billed_cost_usd,
    charge.refund_billed_cost_usd, charge.discount_billed_cost_usd, charge.support_billed_cost_usd
from delivery
join charge
    on charge.billing_period = delivery.billing_period
    and charge.payer_account_id = delivery.payer_account_id
    and charge.billing_currency = delivery.billing_currency
