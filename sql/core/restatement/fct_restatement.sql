-- One row per payer × delivered month × currency × delivery that was ever published: what it held.
-- The row of a delivery is made when it is first built, and the rows of earlier deliveries are taken over from the last
-- publication. Where several exports deliver the payer's month, their versions together are the delivery. A warehouse
-- made anew knows the deliveries of today alone. What a delivery left out altogether has a row of it too, of no line.
with delivery as (
    select billing_period, payer_account_id, billing_currency, string_agg(source_name, ', ' order by source_name) as source_name,
        string_agg(delivery_id, ', ' order by source_name) as delivery_id,
        -- Before any use of the month is delivered: its start.
        coalesce(max(usage_until_at), cast(cast(billing_period || '-01' as date) as timestamp)) as usage_until_at
    from (select billing_period, payer_account_id, billing_currency, source_name, delivery_id,
            max(usage_until_at) as usage_until_at
        from stg_aws__invoice_total group by 1, 2, 3, 4, 5) as delivered_by
    group by billing_period, payer_account_id, billing_currency
),

charge as (
    select
        billing_period, payer_account_id, billing_currency,
        cast(sum(line_count) as bigint) as line_count,
        known_sum(list_cost_usd) as list_cost_usd,
        known_sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Usage'), 0) as usage_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Purchase'), 0) as purchase_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Tax'), 0) as tax_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Credit'), 0) as credit_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Refund'), 0) as refund_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Discount'), 0) as discount_billed_cost_usd,
        coalesce(sum(billed_cost_usd) filter (where charge_category = 'Support'), 0) as support_billed_cost_usd
    from fct_charge_sum_monthly
    group by billing_period, payer_account_id, billing_currency
),

-- The delivery that is read now.
delivered as (
    select *, cast(billing_period || '-01' as date) as billing_month
    from delivery
    join charge using (billing_period, payer_account_id, billing_currency)
),

known as (
    select *, max(delivery_no) over (partition by payer_account_id, billing_month, billing_currency) as newest_no
    from published_restatement
),

present as (
    select
        now.*,
        coalesce(same.delivery_no, before.newest_no + 1, 1) as delivery_no
    from delivered as now
    left join known as same
        on same.payer_account_id = now.payer_account_id and same.billing_month = now.billing_month
        and same.billing_currency = now.billing_currency
        and same.source_name = now.source_name and same.delivery_id = now.delivery_id
        -- One that comes back after another has replaced it is new, and so is one that bills something else.
        and same.delivery_no = same.newest_no and same.billed_cost_usd = now.billed_cost_usd
    left join (select distinct payer_account_id, billing_month, billing_currency, newest_no from known) as before
        on before.payer_account_id = now.payer_account_id and before.billing_month = now.billing_month
        and before.billing_currency = now.billing_currency
),

-- What a delivery before held of a month and this one does not: an account, a currency, or all of it.
held as (
    select known.*, string_agg(listed.delivery_id, ', ' order by listed.source_name) as listed_delivery_id
    from known
    join aws_delivery as listed
        on is_named(listed.source_name, known.source_name) and listed.billing_period = strftime(known.billing_month, '%Y-%m')
    where known.delivery_no = known.newest_no and known.line_count > 0
    group by all
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
        and again.delivery_no = known.delivery_no
)

select
    payer_account_id, billing_month, billing_currency, delivery_no, source_name, delivery_id, usage_until_at,
    line_count, list_cost_usd, effective_cost_usd, billed_cost_usd,
    usage_billed_cost_usd, purchase_billed_cost_usd, tax_billed_cost_usd, credit_billed_cost_usd,
    refund_billed_cost_usd, discount_billed_cost_usd, support_billed_cost_usd
from present

union all

select
    payer_account_id, billing_month, billing_currency, delivery_no, source_name, delivery_id, usage_until_at,
    line_count, list_cost_usd, effective_cost_usd, billed_cost_usd,
    usage_billed_cost_usd, purchase_billed_cost_usd, tax_billed_cost_usd, credit_billed_cost_usd,
    refund_billed_cost_usd, discount_billed_cost_usd, support_billed_cost_usd
from earlier

union all

select
    payer_account_id, billing_month, billing_currency, delivery_no + 1 as delivery_no, source_name, listed_delivery_id as delivery_id,
    cast(billing_month as timestamp) as usage_until_at, 0 as line_count,
    0 as list_cost_usd, 0 as effective_cost_usd, 0 as billed_cost_usd,
    0 as usage_billed_cost_usd, 0 as purchase_billed_cost_usd, 0 as tax_billed_cost_usd, 0 as credit_billed_cost_usd,
    0 as refund_billed_cost_usd, 0 as discount_billed_cost_usd, 0 as support_billed_cost_usd
from gone
