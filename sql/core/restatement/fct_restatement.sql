-- One row per payer × delivered month × currency × delivery that was ever published: what it held.
-- The row of a delivery is made when it is first built, and the rows of earlier deliveries are
-- taken over from the last publication. A warehouse made anew knows the deliveries of today alone. What a delivery left
-- out altogether has a row of it too, of no line.
with known as (
    select *, max(delivery_no) over (partition by payer_account_id, billing_month, billing_currency) as newest_no
    from published_restatement
),

present as (
    select
        now.*,
        coalesce(same.delivery_no, before.newest_no + 1, 1) as delivery_no
    from fct_delivered_month as now
    left join known as same
        on same.payer_account_id = now.payer_account_id and same.billing_month = now.billing_month
        and same.billing_currency = now.billing_currency
        and same.source_name = now.source_name and same.delivery_id = now.delivery_id
    left join (select distinct payer_account_id, billing_month, billing_currency, newest_no from known) as before
        on before.payer_account_id = now.payer_account_id and before.billing_month = now.billing_month
        and before.billing_currency = now.billing_currency
),

-- What a delivery before held of a month and this one does not: an account, a currency, or all of it.
held as (
    select known.*, told.delivery_id as told_delivery_id
    from known
    join aws_delivery as told
        on told.source_name = known.source_name and told.billing_period = strftime(known.billing_month, '%Y-%m')
    where known.delivery_no = known.newest_no and known.line_count > 0
),

gone as (
    select held.*
    from held
    anti join present as again
        on again.payer_account_id = held.payer_account_id and again.billing_month = held.billing_month
        and again.billing_currency = held.billing_currency
),

earlier as (
    select known.*
    from known
    anti join present as again
        on again.payer_account_id = known.payer_account_id and again.billing_month = known.billing_month
        and again.billing_currency = known.billing_currency
        and again.source_name = known.source_name and again.delivery_id = known.delivery_id
)

select
    payer_account_id, billing_month, billing_currency, delivery_no, source_name, delivery_id, line_count,
    list_cost_usd, effective_cost_usd, billed_cost_usd,
    usage_billed_cost_usd, purchase_billed_cost_usd, tax_billed_cost_usd, credit_billed_cost_usd,
    refund_billed_cost_usd, discount_billed_cost_usd, support_billed_cost_usd
from present

union all

select
    payer_account_id, billing_month, billing_currency, delivery_no, source_name, delivery_id, line_count,
    list_cost_usd, effective_cost_usd, billed_cost_usd,
    usage_billed_cost_usd, purchase_billed_cost_usd, tax_billed_cost_usd, credit_billed_cost_usd,
    refund_billed_cost_usd, discount_billed_cost_usd, support_billed_cost_usd
from earlier

union all

select
    payer_account_id, billing_month, billing_currency, delivery_no + 1 as delivery_no, source_name, told_delivery_id as delivery_id,
    0 as line_count, 0 as list_cost_usd, 0 as effective_cost_usd, 0 as billed_cost_usd,
    0 as usage_billed_cost_usd, 0 as purchase_billed_cost_usd, 0 as tax_billed_cost_usd, 0 as credit_billed_cost_usd,
    0 as refund_billed_cost_usd, 0 as discount_billed_cost_usd, 0 as support_billed_cost_usd
from gone
