-- One row per line of an invoice as read, with the columns of a FOCUS 1.4 Invoice Detail dataset.
-- stored: no
-- Read by the FOCUS export alone. The bill itself is no invoice, so without [[invoices]] there is no row. A document
-- without lines has a row for each part of its total, which x_LineGroup names.
select
    cast(invoiced_cost_usd as decimal(20, 10)) as "BilledCost", account_id as "BillingAccountId",
    currency as "BillingCurrency", cast(billing_month + interval '1' month as timestamp) as "BillingPeriodEnd",
    cast(billing_month as timestamp) as "BillingPeriodStart",
    case when line_group in ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment') then line_group else 'Usage' end
        as "ChargeCategory",
    coalesce(issued_at, billing_month + interval '1' month) as "InvoiceDetailCreated",
    replace(document_kind, '_', ' ') || ', ' || line_group as "InvoiceDetailDescription",
    '{"x_LineGroup": "' || line_group || '"' || coalesce(', "x_BillingEntity": "' || billing_entity || '"', '') || '}'
        as "InvoiceDetailGrain",
    coalesce(invoice_detail_id, line_group) as "InvoiceDetailId",
    coalesce(issued_at, billing_month + interval '1' month) as "InvoiceDetailLastUpdated", invoice_id as "InvoiceId",
    issued_at as "InvoiceIssueDate", upper(left(issue_status, 1)) || substr(issue_status, 2) as "InvoiceIssueStatus",
    -- AWS alone stands for any of its companies.
    coalesce(nullif(invoice_issuer, ''), 'AWS') as "InvoiceIssuerName", cast(null as timestamp) as "PaymentDueDate",
    'Unknown' as "PaymentTerms", coalesce(reference_invoice_id, invoice_id) as "ReferenceInvoiceId"
from stg_aws__invoice
-- Receipts and copies for tax are not owed; a voided line is, by its status, none.
where coalesce(exclusion, 'voided') = 'voided'
