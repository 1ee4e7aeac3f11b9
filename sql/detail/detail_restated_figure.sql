-- One row per payer × delivered month × currency × delivery × published figure × cost basis the delivery moved.
-- Worked out when a delivery is first built, against the publication before, and taken over from then on. The newest
-- delivery's figures move once more when a provisional run of the month is recorded.
with known as (
    select distinct payer_account_id, billing_month, billing_currency, delivery_no
    from published_restatement
),

-- The first delivery of a month moves nothing: there was nothing. Nor does one where nothing is known of the
-- publication before.
fresh as (
    select now.payer_account_id, now.billing_month, now.billing_currency, now.delivery_no
    from fct_restatement as now
    anti join known
        on known.payer_account_id = now.payer_account_id and known.billing_month = now.billing_month
        and known.billing_currency = now.billing_currency and known.delivery_no = now.delivery_no
    where now.delivery_no > 1 and exists (select 1 from published_figure_cost)
    union
    select now.payer_account_id, now.billing_month, now.billing_currency, max(now.delivery_no)
    from fct_restatement as now
    join published_figure_cost as before
        on before.payer_account_id = now.payer_account_id and before.billing_month = now.billing_month
        and before.billing_currency = now.billing_currency and before.figure_table = 'detail_provisional_run'
    join dim_run as run on folded(run.run_id) = folded(before.run_id)
    group by now.payer_account_id, now.billing_month, now.billing_currency
),

figure as (
    select *, true as is_now from fct_figure_cost
    union all
    select *, false from published_figure_cost
),

amount as (
    select figure.*, 'list' as cost_basis, list_cost_usd as cost_usd from figure
    union all
    select figure.*, 'effective', effective_cost_usd from figure
    union all
    select figure.*, 'billed', billed_cost_usd from figure
),

-- What was not there cost nothing; what was, and has no list price, has an unknown cost.
compared as (
    select payer_account_id, billing_month, billing_currency, figure_table, figure_key, run_id, usage_date, bucket,
        cost_basis,
        case when count(*) filter (where not is_now) = 0 then 0
            else max(cost_usd) filter (where not is_now) end as before_cost_usd,
        case when count(*) filter (where is_now) = 0 then 0
            else max(cost_usd) filter (where is_now) end as after_cost_usd
    from amount
    group by payer_account_id, billing_month, billing_currency, figure_table, figure_key, run_id, usage_date, bucket,
        cost_basis
),

moved as (
    select moved.*, fresh.delivery_no
    from compared as moved
    join fresh using (payer_account_id, billing_month, billing_currency)
    where moved.before_cost_usd is distinct from moved.after_cost_usd
)

select
    moved.payer_account_id, moved.billing_month, moved.billing_currency, moved.delivery_no, moved.figure_table,
    moved.figure_key, moved.cost_basis, moved.run_id, moved.usage_date, moved.bucket,
    case when known.figure_key is null then moved.before_cost_usd else known.before_cost_usd end as before_cost_usd,
    moved.after_cost_usd,
    moved.after_cost_usd - case when known.figure_key is null then moved.before_cost_usd else known.before_cost_usd end
        as cost_change_usd
from moved
-- What the delivery had moved before stays what it moved from, but for a provisional run that has been recorded.
left join published_restated_figure as known
    on known.payer_account_id = moved.payer_account_id and known.billing_month = moved.billing_month
    and known.billing_currency = moved.billing_currency and known.delivery_no = moved.delivery_no
    and known.figure_key = moved.figure_key and known.cost_basis = moved.cost_basis and known.figure_table
        = case when moved.figure_table <> 'detail_provisional_run' or moved.after_cost_usd <> 0 then moved.figure_table end

union all

select
    known.payer_account_id, known.billing_month, known.billing_currency, known.delivery_no, known.figure_table,
    known.figure_key, known.cost_basis, known.run_id, known.usage_date, known.bucket,
    known.before_cost_usd, known.after_cost_usd, known.cost_change_usd
from published_restated_figure as known
anti join moved
    on moved.payer_account_id = known.payer_account_id and moved.billing_month = known.billing_month
    and moved.billing_currency = known.billing_currency and moved.delivery_no = known.delivery_no
    and moved.figure_table = known.figure_table and moved.figure_key = known.figure_key
    and moved.cost_basis = known.cost_basis
