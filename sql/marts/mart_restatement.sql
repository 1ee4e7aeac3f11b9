-- One row per payer × billing month × currency × delivery: what it held, and what changed since the delivery before.
-- New are the days from the one on at which use ended in the delivery before, where this one has later use.
with delivery as (
    select *, case when usage_until_at > lag(usage_until_at) over delivered
        then cast(lag(usage_until_at) over delivered as date) end as new_from_date
    from fct_restatement
    window delivered as (partition by payer_account_id, billing_month, billing_currency order by delivery_no)
),

moved as (
    select figure.*,
        usage_date is not null and coalesce(usage_date < delivery.new_from_date, true) as is_restated_day
    from detail_restated_figure as figure
    join delivery using (payer_account_id, billing_month, billing_currency, delivery_no)
),

counted as (
    select payer_account_id, billing_month, billing_currency, delivery_no,
        count(distinct run_id) as run_count, count(distinct usage_date) as day_count,
        count(distinct case when is_restated_day then usage_date end) as restated_day_count,
        known_sum(case when is_restated_day and cost_basis = 'effective' then cost_change_usd else 0 end)
            as effective_change_usd,
        sum(case when is_restated_day and cost_basis = 'billed' then cost_change_usd else 0 end) as billed_change_usd
    from moved
    group by payer_account_id, billing_month, billing_currency, delivery_no
),

-- Runs that a tag alone named, and whose events came later.
recorded as (
    select moved.payer_account_id, moved.billing_month, moved.billing_currency, moved.delivery_no,
        count(distinct moved.run_id) as run_count,
        sum(moved.before_cost_usd) as run_cost_usd
    from detail_restated_figure as moved
    semi join dim_run as run on folded(run.run_id) = folded(moved.run_id)
    where moved.figure_table = 'detail_provisional_run' and moved.cost_basis = 'effective' and moved.after_cost_usd = 0
    group by moved.payer_account_id, moved.billing_month, moved.billing_currency, moved.delivery_no
),

-- A recorded run costs what it does now instead of what it did while it was provisional.
run_moved as (
    select payer_account_id, billing_month, billing_currency, delivery_no, run_id, known_sum(cost_change_usd) as cost_change_usd
    from detail_restated_figure
    where run_id is not null and cost_basis = 'effective'
    group by payer_account_id, billing_month, billing_currency, delivery_no, run_id
    having known_sum(cost_change_usd) is distinct from 0
),

-- Of two that moved alike the first by name.
most_moved as (
    select payer_account_id, billing_month, billing_currency, delivery_no, run_id, cost_change_usd
    from run_moved
    qualify row_number() over (
        partition by payer_account_id, billing_month, billing_currency, delivery_no order by abs(cost_change_usd) desc, run_id
    ) = 1
)

select
    held.payer_account_id, held.billing_month, held.billing_currency, held.delivery_no, source_name, delivery_id,
    line_count,
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
    case when held.delivery_no > 1 or counted.run_count > 0 then coalesce(counted.run_count, 0) end as moved_run_count,
    case when held.delivery_no > 1 or counted.run_count > 0 then coalesce(counted.day_count, 0) end as moved_day_count,
    case when held.delivery_no > 1
        then coalesce(counted.day_count - counted.restated_day_count, 0) end as new_day_count,
    case when held.delivery_no > 1 then coalesce(counted.restated_day_count, 0) end as restated_day_count,
    case when held.new_from_date is null then effective_cost_usd - lag(effective_cost_usd) over delivered
        when counted.day_count > 0 then counted.effective_change_usd else 0 end as restated_effective_change_usd,
    case when held.new_from_date is null then billed_cost_usd - lag(billed_cost_usd) over delivered
        else coalesce(counted.billed_change_usd, 0) end as restated_billed_change_usd,
    most_moved.run_id as most_moved_run_id,
    most_moved.cost_change_usd as most_moved_run_change_usd,
    coalesce(recorded.run_count, 0) as recorded_run_count,
    coalesce(recorded.run_cost_usd, 0) as recorded_run_cost_usd
from delivery as held
left join counted using (payer_account_id, billing_month, billing_currency, delivery_no)
left join recorded using (payer_account_id, billing_month, billing_currency, delivery_no)
left join most_moved using (payer_account_id, billing_month, billing_currency, delivery_no)
window delivered as (
    partition by held.payer_account_id, held.billing_month, held.billing_currency order by held.delivery_no
)
