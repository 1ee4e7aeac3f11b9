-- One row per payer, billing month, invoice, entity, issuer and currency: what is billed and why it costs another.
-- partition: billing_period
-- Every dollar between the two bases has one reason; on a closed month with the fees of its commitments
-- `commitment_timing_usd` is zero.
with bill as (
    select
        billing_period, billing_month, payer_account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
        sum(line_count) as line_count, sum(billed_cost_usd) as billed_cost_usd,
        -- FOCUS shows it over all invoices of a payer, by what its use costs beyond its fees.
        case when sum(sum(amortized_upfront_usd)) over (partition by billing_month, payer_account_id, billing_currency)
            > 0 then sum(amortized_upfront_usd) else 0 end as amortized_upfront_usd,
        sum(case when is_commitment(effective_rule) then billed_cost_usd else 0 end) as commitment_billed_usd,
        max(newest_usage_at) as newest_usage_at, max(usage_until_at) as usage_until_at,
        max(max(is_net_only)) over (partition by billing_month, payer_account_id) as is_net_only
    from stg_aws__invoice_total
    group by billing_period, billing_month, payer_account_id, invoice_id, billing_entity, invoice_issuer,
        billing_currency
),

-- AWS fills the invoice id in when a line is final (facts 2.5); what is open is cut at `as_of`, but no use is cut off.
dated as (
    select bill.*, as_of.as_of_at, case when bill.invoice_id = '' then greatest(as_of.as_of_at, max(bill.usage_until_at)
            over (partition by bill.billing_month, bill.payer_account_id, bill.billing_currency)) end as cut_at
    from bill
    cross join as_of
),

line as (
    select dated.*,
        charge.effective_rule, charge.amortized_cost_usd, charge.effective_cost_usd,
        charge.billed_cost_usd as charge_billed_usd,
        part_before_usd(charge.billed_cost_usd, charge.line_class, charge.usage_started_at, charge.usage_ended_at,
            dated.cut_at) as billed_before_usd
    from dated
    left join fct_charge as charge
        using (billing_month, payer_account_id, invoice_id, billing_entity, invoice_issuer, billing_currency)
)

select
    billing_period, billing_month, payer_account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
    line_count, newest_usage_at, cut_at, as_of_at, is_net_only, billed_cost_usd,
    coalesce(sum(effective_cost_usd), 0) as effective_cost_usd,
    sum(case when effective_rule in ('upfront_fee', 'fee') then charge_billed_usd - amortized_cost_usd else 0 end)
        as upfront_fee_usd,
    - amortized_upfront_usd as amortized_upfront_usd,
    commitment_billed_usd + amortized_upfront_usd
        - sum(case when is_commitment(effective_rule) then amortized_cost_usd else 0 end) as commitment_timing_usd,
    sum(case when effective_rule not in ('credit', 'discount') then amortized_cost_usd - effective_cost_usd else 0 end)
        as netted_discount_usd,
    sum(case when effective_rule = 'discount' then charge_billed_usd - effective_cost_usd else 0 end) as discount_usd,
    sum(case when effective_rule = 'credit' then charge_billed_usd - effective_cost_usd else 0 end) as credit_usd,
    sum(case when effective_rule = 'refund' then charge_billed_usd - amortized_cost_usd else 0 end)
        as neutralised_refund_usd,
    billed_cost_usd - coalesce(sum(charge_billed_usd - billed_before_usd), 0) as billed_to_date_usd
from line
group by billing_period, billing_month, payer_account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
    line_count, newest_usage_at, cut_at, as_of_at, is_net_only, billed_cost_usd, amortized_upfront_usd,
    commitment_billed_usd
