-- One row per invoice as read and line group: what it charges compared with the lines of the bill that name it. Where
-- these name lines of the invoice as well (FOCUS 1.4), one row per line of it.
-- Bill lines have ten decimals, invoices two: both are rounded once per invoice, and what rounding hides is named.
with document as (
    select invoice_evidence, invoice_issuer, invoice_id, currency,
        max(billing_month) as billing_month, max(billing_entity) as billing_entity, max(document_kind) as document_kind,
        max(issued_at) as issued_at, max(reference_invoice_id) as reference_invoice_id,
        -- Null where any line is owed.
        nullif(min(coalesce(exclusion, '')), '') as exclusion,
        max(case when issue_status = 'open' then 1 else 0 end) = 1 as is_open,
        max(case when line_group = 'total' then 1 else 0 end) = 1 as is_total,
        max(case when line_group = 'before tax' then 1 else 0 end) = 1 as is_before_tax
    from stg_aws__invoice
    where document_kind <> 'billing_period'
    group by invoice_evidence, invoice_issuer, invoice_id, currency
),

bill as (
    select payer_account_id, billing_month, invoice_id, invoice_issuer as bill_issuer, billing_currency as currency,
        charge_category, billing_entity, invoice_detail_id, sum(line_count) as line_count,
        sum(billed_cost_usd) as billed_cost_usd
    from stg_aws__invoice_total
    where invoice_id <> ''
    group by payer_account_id, billing_month, invoice_id, invoice_issuer, billing_currency, charge_category,
        billing_entity, invoice_detail_id
),

named as (
    select invoice_id, min(currency) as bill_currency, max(currency) as other_bill_currency,
        max(invoice_detail_id) <> '' as names_details
    from bill
    group by invoice_id
),

entry as (
    select invoice_evidence, invoice_issuer, invoice.invoice_id, currency, line_group,
        case when names_details and invoice_evidence = 'focus' then coalesce(invoice_detail_id, '') else '' end
            as invoice_detail_id,
        case when exclusion is null then invoiced_cost_usd else 0 end as invoiced_cost_usd,
        0 as billed_cost_usd, 0 as line_count, null as payer_account_id, null as bill_month, null as bill_issuer,
        null as bill_entity
    from stg_aws__invoice as invoice
    left join named on named.invoice_id = invoice.invoice_id
    where document_kind <> 'billing_period'
    union all
    select document.invoice_evidence, document.invoice_issuer, document.invoice_id, document.currency,
        case when document.is_total then 'total' when bill.charge_category = 'Tax' then 'Tax'
            when document.is_before_tax then 'before tax' else bill.charge_category end as line_group,
        case when document.invoice_evidence = 'focus' then bill.invoice_detail_id else '' end, 0,
        bill.billed_cost_usd, bill.line_count, bill.payer_account_id, bill.billing_month, bill.bill_issuer,
        bill.billing_entity
    from document
    join bill on bill.invoice_id = document.invoice_id and bill.currency = document.currency
        and is_same_issuer(bill.bill_issuer, document.invoice_issuer)
),

grouped as (
    select invoice_evidence, invoice_issuer, invoice_id, currency, line_group, invoice_detail_id,
        max(payer_account_id) as payer_account_id, max(bill_month) as bill_month, max(bill_issuer) as bill_issuer,
        max(bill_entity) as bill_entity, sum(line_count) as line_count,
        sum(billed_cost_usd) as billed_cost_usd, sum(invoiced_cost_usd) as invoiced_cost_usd
    from entry
    group by invoice_evidence, invoice_issuer, invoice_id, currency, line_group, invoice_detail_id
),

whole as (
    select invoice_evidence, invoice_issuer, invoice_id, currency,
        max(payer_account_id) as payer_account_id, max(bill_month) as bill_month, max(bill_issuer) as bill_issuer,
        max(bill_entity) as bill_entity, sum(line_count) as invoice_line_count,
        sum(billed_cost_usd) as billed_usd, sum(invoiced_cost_usd) as invoiced_usd,
        payable_usd(sum(invoiced_cost_usd), currency) - payable_usd(sum(billed_cost_usd), currency)
            as invoice_difference_usd
    from grouped
    group by invoice_evidence, invoice_issuer, invoice_id, currency
)

select
    whole.payer_account_id,
    coalesce(whole.bill_month, document.billing_month) as billing_month,
    document.invoice_evidence, document.invoice_issuer, document.invoice_id, document.currency, grouped.line_group,
    grouped.invoice_detail_id, whole.bill_issuer,
    coalesce(document.billing_entity, whole.bill_entity) as billing_entity, document.document_kind, document.issued_at, document.reference_invoice_id,
    grouped.line_count, grouped.billed_cost_usd, grouped.invoiced_cost_usd,
    payable_usd(grouped.invoiced_cost_usd - grouped.billed_cost_usd, document.currency) as group_difference_usd,
    whole.invoice_difference_usd,
    whole.invoiced_usd - whole.billed_usd - whole.invoice_difference_usd as rounding_usd,
    focus_tolerance_usd(whole.invoice_line_count, document.currency) as focus_tolerance_usd,
    case
        when document.exclusion is not null then document.exclusion
        when document.is_open then 'open'
        when whole.invoice_line_count > 0 then
            case when whole.invoice_difference_usd = 0 then 'tied' else 'differs' end
        when named.invoice_id is null then 'no lines'
        when document.currency in (named.bill_currency, named.other_bill_currency) then 'other issuer'
        else 'other currency'
    end as invoice_status
from grouped
join document
    on document.invoice_evidence = grouped.invoice_evidence and document.invoice_issuer = grouped.invoice_issuer
    and document.invoice_id = grouped.invoice_id and document.currency = grouped.currency
join whole
    on whole.invoice_evidence = grouped.invoice_evidence and whole.invoice_issuer = grouped.invoice_issuer
    and whole.invoice_id = grouped.invoice_id and whole.currency = grouped.currency
left join named on named.invoice_id = document.invoice_id
