-- One row per payer × delivered month × currency × delivery × published figure × cost basis the delivery moved.
-- Worked out when a delivery is first built, against the publication before, and taken over from then on.
with known as (
    select distinct payer_account_id, billing_month, billing_currency, delivery_no
    from published_restatement
),

-- The first delivery of a month moves nothing: there was nothing.
fresh as (
    select now.payer_account_id, now.billing_month, now.billing_currency, now.delivery_no
    from fct_restatement as now
    anti join known
        on known.payer_account_id = now.payer_account_id and known.billing_month = now.billing_month
        and known.billing_currency = now.billing_currency and known.delivery_no = now.delivery_no
    where now.delivery_no > 1
)

select
    moved.payer_account_id, moved.billing_month, moved.billing_currency, fresh.delivery_no, moved.figure_table,
    moved.figure_key, moved.run_id, moved.usage_date, moved.bucket, moved.cost_basis,
    moved.before_cost_usd, moved.after_cost_usd, moved.cost_change_usd
from fct_moved_figure as moved
join fresh
    on fresh.payer_account_id = moved.payer_account_id and fresh.billing_month = moved.billing_month
    and fresh.billing_currency = moved.billing_currency

union all

select
    payer_account_id, billing_month, billing_currency, delivery_no, figure_table,
    figure_key, run_id, usage_date, bucket, cost_basis,
    before_cost_usd, after_cost_usd, cost_change_usd
from published_restated_figure
