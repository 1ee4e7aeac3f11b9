-- One row per payer × billing month × currency × delivery: what it held, and what changed since the delivery before.
select
    payer_account_id, billing_month, billing_currency, delivery_no, source_name, delivery_id, line_count,
    list_cost_usd, effective_cost_usd, billed_cost_usd,
    usage_billed_cost_usd, purchase_billed_cost_usd, tax_billed_cost_usd, credit_billed_cost_usd,
    refund_billed_cost_usd, discount_billed_cost_usd, support_billed_cost_usd,
    line_count - lag(line_count) over delivered as line_count_change,
    list_cost_usd - lag(list_cost_usd) over delivered as list_change_usd,
    effective_cost_usd - lag(effective_cost_usd) over delivered as effective_change_usd,
    billed_cost_usd - lag(billed_cost_usd) over delivered as billed_change_usd,
    usage_billed_cost_usd - lag(usage_billed_cost_usd) over delivered as usage_billed_change_usd,
    purchase_billed_cost_usd - lag(purchase_billed_cost_usd) over delivered as purchase_billed_change_usd,
    tax_billed_cost_usd - lag(tax_billed_cost_usd) over delivered as tax_billed_change_usd,
    credit_billed_cost_usd - lag(credit_billed_cost_usd) over delivered as credit_billed_change_usd,
    refund_billed_cost_usd - lag(refund_billed_cost_usd) over delivered as refund_billed_change_usd,
    discount_billed_cost_usd - lag(discount_billed_cost_usd) over delivered as discount_billed_change_usd,
    support_billed_cost_usd - lag(support_billed_cost_usd) over delivered as support_billed_change_usd,
    moved_run_count, moved_day_count, most_moved_run_id, most_moved_run_change_usd
from fct_restatement
window delivered as (partition by payer_account_id, billing_month, billing_currency order by delivery_no)
