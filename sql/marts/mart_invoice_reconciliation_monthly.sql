-- One row per payer × billing month × invoice × currency × entity × issuer: the bill as delivered compared with the
-- ledger made from it.
-- The invoice itself, where one was read, is compared as a whole: its columns repeat on each row of it.
-- From effective to billed cost leads one column for each reason they differ by; the sum of them is exact.
with invoice as (
    select payer_account_id, billing_month, invoice_id, billing_entity, invoice_issuer, billing_currency,
        sum(line_count) as line_count, max(newest_usage_at) as newest_usage_at, max(cut_at) as cut_at,
        sum(billed_cost_usd) as billed_cost_usd,
        sum(upfront_fee_usd) as upfront_fee_usd, sum(amortized_upfront_usd) as amortized_upfront_usd,
        sum(commitment_timing_usd) as commitment_timing_usd, sum(netted_discount_usd) as netted_discount_usd,
        sum(discount_usd) as discount_usd, sum(credit_usd) as credit_usd,
        sum(neutralised_refund_usd) as neutralised_refund_usd,
        sum(billed_to_date_usd) as billed_to_date_usd
    from fct_invoice_monthly
    group by payer_account_id, billing_month, invoice_id, billing_entity, invoice_issuer, billing_currency
),

-- Of two documents of one invoice the one that differs more counts. Its lines may be of several months or payers.
document as (
    select invoice_id, bill_issuer, currency, document_kind, invoice_difference_usd,
        rounding_usd, focus_tolerance_usd, invoice_status,
        sum(invoiced_cost_usd) as invoiced_cost_usd
    from detail_invoice_reconciliation
    where bill_issuer is not null and invoice_status in ('tied', 'differs', 'open')
    group by invoice_id, bill_issuer, currency, document_kind, invoice_difference_usd,
        rounding_usd, focus_tolerance_usd, invoice_status, invoice_evidence, invoice_issuer
    qualify row_number() over (partition by invoice_id, bill_issuer, currency
        order by abs(invoice_difference_usd) desc, invoice_evidence, invoice_issuer) = 1
),

-- Where an issuer states its months (FOCUS BillingPeriod), that decides what is open.
closing as (
    select invoice.billing_month, invoice.invoice_issuer, max(period.issue_status) as issue_status
    from (select distinct billing_month, invoice_issuer from invoice) as invoice
    join stg_aws__invoice as period
        on period.document_kind = 'billing_period' and period.billing_month = invoice.billing_month
        and is_same_issuer(invoice.invoice_issuer, period.invoice_issuer)
    group by invoice.billing_month, invoice.invoice_issuer
),

-- What commitments leave unused in hours to come.
unused as (
    select payer_account_id, billing_month, invoice_id, billing_entity, invoice_issuer, billing_currency,
        known_sum(effective_unused_usd - effective_unused_to_date_usd) as later_cost_usd
    from fct_commitment_unused_monthly
    group by payer_account_id, billing_month, invoice_id, billing_entity, invoice_issuer, billing_currency
),

ledger as (
    select payer_account_id, billing_month, invoice_id, billing_entity, invoice_issuer, billing_currency,
        sum(billed_cost_usd) as ledger_cost_usd, known_sum(effective_cost_usd) as effective_cost_usd
    from fct_ledger
    group by payer_account_id, billing_month, invoice_id, billing_entity, invoice_issuer, billing_currency
)

select
    coalesce(invoice.payer_account_id, ledger.payer_account_id) as payer_account_id,
    coalesce(invoice.billing_month, ledger.billing_month) as billing_month,
    coalesce(invoice.invoice_id, ledger.invoice_id) as invoice_id,
    coalesce(invoice.billing_currency, ledger.billing_currency) as currency,
    coalesce(invoice.billed_cost_usd, 0) as billed_cost_usd,
    coalesce(ledger.ledger_cost_usd, 0) as ledger_cost_usd,
    coalesce(invoice.billed_cost_usd, 0) - coalesce(ledger.ledger_cost_usd, 0) as difference_usd,
    case
        when abs(coalesce(invoice.billed_cost_usd, 0) - coalesce(ledger.ledger_cost_usd, 0)) > 0.01 then 'unreconciled'
        -- AWS fills the invoice id in when a line is final (facts 2.5).
        when coalesce(closing.issue_status, case when coalesce(invoice.invoice_id, '') = '' then 'open' end) = 'open'
            then 'open'
        else 'reconciled'
    end as status,
    coalesce(invoice.billing_entity, ledger.billing_entity) as billing_entity,
    coalesce(invoice.invoice_issuer, ledger.invoice_issuer) as invoice_issuer,
    coalesce(invoice.line_count, 0) as line_count,
    invoice.newest_usage_at,
    case when ledger.payer_account_id is null then 0 else ledger.effective_cost_usd end as effective_cost_usd,
    coalesce(invoice.upfront_fee_usd, 0) as upfront_fee_usd,
    coalesce(invoice.amortized_upfront_usd, 0) as amortized_upfront_usd,
    coalesce(invoice.commitment_timing_usd, 0) as commitment_timing_usd,
    coalesce(invoice.netted_discount_usd, 0) as netted_discount_usd,
    coalesce(invoice.discount_usd, 0) as discount_usd,
    coalesce(invoice.credit_usd, 0) as credit_usd,
    coalesce(invoice.neutralised_refund_usd, 0) as neutralised_refund_usd,
    invoice.cut_at,
    coalesce(invoice.billed_to_date_usd, 0) as billed_to_date_usd,
    case when ledger.payer_account_id is null then 0 else ledger.effective_cost_usd end
        - case when invoice.cut_at is null or unused.payer_account_id is null then 0 else unused.later_cost_usd end
        as effective_to_date_usd,
    document.document_kind, document.invoiced_cost_usd, document.invoice_difference_usd, document.rounding_usd,
    document.focus_tolerance_usd,
    case
        when document.invoice_status is not null then document.invoice_status
        when coalesce(invoice.invoice_id, '') <> '' then 'not read'
        -- AWS invoices a month within weeks, and never what is pro forma.
        when max(invoice.invoice_id) over bill = ''
            and date_diff('day', cast(invoice.billing_month as timestamp), max(invoice.newest_usage_at)
                over (partition by invoice.payer_account_id, invoice.billing_currency)) >= 62 then 'no invoice ids'
        else 'not invoiced'
    end as invoice_status
from invoice
full join ledger
    on ledger.payer_account_id = invoice.payer_account_id
    and ledger.billing_month = invoice.billing_month
    and ledger.invoice_id = invoice.invoice_id
    and ledger.billing_entity = invoice.billing_entity
    and ledger.invoice_issuer = invoice.invoice_issuer
    and ledger.billing_currency = invoice.billing_currency
left join unused
    on unused.payer_account_id = invoice.payer_account_id and unused.billing_month = invoice.billing_month
    and unused.invoice_id = invoice.invoice_id and unused.billing_entity = invoice.billing_entity
    and unused.invoice_issuer = invoice.invoice_issuer and unused.billing_currency = invoice.billing_currency
left join closing
    on closing.billing_month = invoice.billing_month and closing.invoice_issuer = invoice.invoice_issuer
left join document
    on document.invoice_id = invoice.invoice_id
    and document.bill_issuer = invoice.invoice_issuer
    and document.currency = invoice.billing_currency
window bill as (partition by invoice.payer_account_id, invoice.billing_month, invoice.billing_currency)
