-- One row per payer × billing month × currency × delivery × published figure × cost basis the delivery moved.
select
    payer_account_id, billing_month, billing_currency, delivery_no, figure_table, figure_key, cost_basis,
    run_id, usage_date, bucket, before_cost_usd, after_cost_usd, cost_change_usd
from fct_restated_figure
