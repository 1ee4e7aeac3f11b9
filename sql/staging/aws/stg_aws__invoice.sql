-- One row per line of an invoice, or per part of its total where the document has no lines.
-- What is not owed has an exclusion: a receipt, a copy of another invoice for tax, a voided line (facts standards 2.2),
-- and the row that only shows whether a month is closed (FOCUS BillingPeriod).
select
    invoice_evidence, coalesce(invoice_issuer, '') as invoice_issuer, invoice_id, invoice_detail_id,
    account_id, billing_month, billing_entity, document_kind, issue_status, issued_at, reference_invoice_id, currency,
    line_group, cast(invoiced_cost as decimal(38, 10)) as invoiced_cost_usd,
    case when document_kind in ('payment_receipt', 'tax_copy', 'billing_period') then document_kind
        when issue_status = 'voided' then 'voided' end as exclusion
from aws_invoice
