-- One row per billing month, payer and currency: whether the ledger equals the bill, and commitment fees without known
-- use or cost.
with payer as (
    select
        billing_month, payer_account_id, currency,
        count(distinct nullif(invoice_id, '')) as invoice_count,
        sum(billed_cost_usd) as billed_cost_usd,
        sum(ledger_cost_usd) as ledger_cost_usd,
        sum(difference_usd) as difference_usd,
        sum(commitment_timing_usd) filter (where status = 'reconciled') as timing_usd,
        count(*) filter (where effective_cost_usd is null) > 0 as is_cost_unknown,
        max(newest_usage_at) as newest_usage_at,
        case
            when count(*) filter (where status = 'unreconciled') > 0 then 'unreconciled'
            when count(*) filter (where status = 'open') > 0 then 'open'
            else 'reconciled'
        end as status,
        case
            when count(*) filter (where invoice_status = 'differs') > 0 then 'differs'
            when count(*) filter (where invoice_status = 'tied') = count(*) then 'tied'
            when count(*) filter (where invoice_status = 'tied') > 0 then 'partly tied'
            else max(invoice_status)
        end as invoice_status
    from mart_invoice_reconciliation_monthly
    group by billing_month, payer_account_id, currency
),

-- What closed invoices and those of an open month do not show; null where only open ones show all of it.
shown as (
    select payer.*, greatest(timing_usd, fee.unallocated_fee_usd) as missing_usd
    from payer
    left join fct_unallocated_fee_monthly as fee
        on fee.billing_month = payer.billing_month and fee.payer_account_id = payer.payer_account_id
        and fee.billing_currency = payer.currency
),

owed as (
    select *,
        -- Up to a cent is rounding.
        case when missing_usd > 0.01 then missing_usd when missing_usd is not null then 0 end as unallocated_fee_usd,
        case when status = 'reconciled' and (missing_usd > 0.01 or is_cost_unknown) then 'incomplete' else status end
            as stamp
    from shown
)

select
    billing_month, payer_account_id, currency, invoice_count, billed_cost_usd, ledger_cost_usd, difference_usd,
    newest_usage_at, stamp as status, invoice_status,
    unallocated_fee_usd,
    sum(unallocated_fee_usd) over (partition by billing_month, currency) as month_unallocated_fee_usd,
    sum(unallocated_fee_usd) over (partition by currency) as all_unallocated_fee_usd,
    case
        when count(*) filter (where status = 'unreconciled') over month > 0 then 'unreconciled'
        when count(*) filter (where status = 'open') over month > 0 then 'open'
        when count(*) filter (where stamp = 'incomplete') over month > 0 then 'incomplete'
        else 'reconciled'
    end as month_status,
    max(newest_usage_at) over month as month_newest_usage_at
from owed
window month as (partition by billing_month)
