-- One row per payer, billing month, invoice, currency and charge type of a delivered month: the bill before any rule of ours.
-- partition: billing_period
-- stored: no
select
    billing_period,
    cast(coalesce(bill_billing_period_start_date, cast(billing_period || '-01' as timestamp)) as date)
        as billing_month,
    bill_payer_account_id as payer_account_id,
    coalesce(bill_invoice_id, '') as invoice_id,
    line_item_currency_code as billing_currency,
    line_item_line_item_type as charge_type,
    count(*) as line_count,
    coalesce(sum(line_item_unblended_cost), 0) as billed_cost_usd
from aws_cur_line_item
group by all

union all

select
    billing_period,
    cast(coalesce(billing_period_start, cast(billing_period || '-01' as timestamp)) as date) as billing_month,
    billing_account_id as payer_account_id,
    coalesce(invoice_id, '') as invoice_id,
    billing_currency,
    charge_category as charge_type,
    count(*) as line_count,
    coalesce(sum(billed_cost), 0) as billed_cost_usd
from aws_focus_line_item
group by all
