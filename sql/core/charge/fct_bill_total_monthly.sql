-- One row per payer, billing month and currency: the sums over a whole bill that its identities compare.
-- stored: no
with bill as (
    select
        payer_account_id, billing_month, billing_currency, sum(line_count) as line_count,
        -- AWS fills the invoice id in when a line is final (facts aws-billing 2.5).
        max(case when invoice_id = '' and charged_line_count > 0 then 1 else 0 end) = 1 as is_open,
        sum(billed_cost_usd) as billed_cost_usd, sum(savings_plan_offset_usd) as savings_plan_offset_usd,
        sum(sum(net_value_count)) over (partition by payer_account_id, billing_month) > 0 as has_net_costs,
        sum(case when effective_rule = 'discount' then 0 else net_billed_cost_usd end) as net_billed_cost_usd,
        sum(case when effective_rule = 'discount' then 1 else 0 end) > 0 as has_discount_line,
        sum(case when effective_rule = 'discount' then 0 else in_line_discount_usd end) as in_line_discount_usd,
        max(case when effective_rule = 'savings_plan' then 1 else 0 end) as covered,
        max(case when effective_rule = 'zero' then 1 else 0 end) as negation,
        max(case when effective_rule = 'savings_plan_unused' then 1 else 0 end) as plan_fee,
        max(case when effective_rule = 'reservation' then 1 else 0 end) as reserved,
        max(case when effective_rule = 'reservation_unused' then 1 else 0 end) as reservation_fee,
        max(case when effective_rule in ('savings_plan_unused', 'reservation_unused') and commitment_value_count = 0
            then 1 else 0 end) as silent_fee,
        max(usage_until_at) as usage_until_at
    from stg_aws__invoice_total
    group by payer_account_id, billing_month, billing_currency
),

spread as (
    select
        payer_account_id, billing_month, billing_currency,
        sum(amortized_upfront_usd) as amortized_upfront_usd,
        sum(upfront_fee_usd + neutralised_refund_usd) as upfront_fee_usd,
        max(case when upfront_fee_usd <> 0 or amortized_upfront_usd <> 0 or neutralised_refund_usd <> 0
            then 1 else 0 end) = 1 as has_upfront_fee
    from fct_invoice_monthly
    group by payer_account_id, billing_month, billing_currency
)

select
    bill.payer_account_id, bill.billing_month, bill.billing_currency, bill.line_count, bill.is_open, bill.has_net_costs,
    bill.billed_cost_usd, bill.net_billed_cost_usd, bill.savings_plan_offset_usd,
    -- Which sign the column has AWS does not document: the one that leads from gross to net.
    case when abs(net_billed_cost_usd - billed_cost_usd - in_line_discount_usd)
        <= abs(net_billed_cost_usd - billed_cost_usd + in_line_discount_usd)
        then in_line_discount_usd else - in_line_discount_usd end as in_line_discount_usd,
    spread.amortized_upfront_usd, spread.upfront_fee_usd, spread.has_upfront_fee,
    bill.has_discount_line,
    bill.covered + bill.negation > 0 as has_savings_plan_usage,
    bill.covered <> bill.negation as lacks_negation,
    bill.covered + bill.plan_fee + bill.reserved + bill.reservation_fee > 0 as has_commitment,
    bill.covered > bill.plan_fee or bill.reserved > bill.reservation_fee or bill.silent_fee = 1 as lacks_commitment_fee,
    -- A fee for the whole month stands on the bill from its first day on, and a part may be invoiced before the rest.
    coalesce(date_diff('day', cast(bill.billing_month as timestamp), bill.usage_until_at) >= 27, false) as is_over,
    -- The newest month, where any payer's bill of it is open: it is no whole month.
    max(case when bill.is_open then 1 else 0 end) over (partition by bill.billing_month, bill.billing_currency) = 1
        and bill.billing_month = max(bill.billing_month) over () as is_open_month
from bill
join spread using (payer_account_id, billing_month, billing_currency)
