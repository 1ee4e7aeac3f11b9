-- One row per payer × billing month × invoice × currency: the bill as delivered beside the ledger made from it.
with invoice as (
    select payer_account_id, billing_month, invoice_id, billing_currency,
        sum(billed_cost_usd) as billed_cost_usd, sum(line_count) as line_count, max(newest_usage_at) as newest_usage_at
    from stg_aws__invoice_total
    group by payer_account_id, billing_month, invoice_id, billing_currency
),

ledger as (
    select payer_account_id, billing_month, invoice_id, billing_currency,
        sum(billed_cost_usd) as ledger_cost_usd, sum(effective_cost_usd) as effective_cost_usd
    from fct_ledger_daily
    group by payer_account_id, billing_month, invoice_id, billing_currency
)

select
    coalesce(invoice.payer_account_id, ledger.payer_account_id) as payer_account_id,
    coalesce(invoice.billing_month, ledger.billing_month) as billing_month,
    coalesce(invoice.invoice_id, ledger.invoice_id) as invoice_id,
    coalesce(invoice.billing_currency, ledger.billing_currency) as currency,
    coalesce(invoice.line_count, 0) as line_count,
    invoice.newest_usage_at,
    coalesce(invoice.billed_cost_usd, 0) as billed_cost_usd,
    coalesce(ledger.ledger_cost_usd, 0) as ledger_cost_usd,
    coalesce(ledger.effective_cost_usd, 0) as effective_cost_usd,
    coalesce(invoice.billed_cost_usd, 0) - coalesce(ledger.ledger_cost_usd, 0) as difference_usd,
    case
        when abs(coalesce(invoice.billed_cost_usd, 0) - coalesce(ledger.ledger_cost_usd, 0)) > 0.01 then 'unreconciled'
        -- AWS fills the invoice id in when a line is final (facts 2.5).
        when coalesce(invoice.invoice_id, '') = '' then 'open'
        else 'reconciled'
    end as status
from invoice
full join ledger
    on ledger.payer_account_id = invoice.payer_account_id
    and ledger.billing_month = invoice.billing_month
    and ledger.invoice_id = invoice.invoice_id
    and ledger.billing_currency = invoice.billing_currency
