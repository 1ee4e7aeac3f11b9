-- One row per payer × billing month × currency: published figures that are not what they were.
-- The effective cost of runs and of days, by the ledger now and by the one published last.
-- stored: no
with figure as (
    select payer_account_id, billing_month, billing_currency, usage_date, run_id, effective_cost_usd as now_usd, 0 as before_usd
    from fct_ledger_daily

    union all

    select payer_account_id, billing_month, billing_currency, usage_date, run_id, 0 as now_usd, effective_cost_usd as before_usd
    from published_ledger_daily
),

run as (
    select payer_account_id, billing_month, billing_currency, run_id, sum(now_usd) - sum(before_usd) as change_usd
    from figure
    where run_id is not null
    group by payer_account_id, billing_month, billing_currency, run_id
    having sum(now_usd) <> sum(before_usd)
),

-- Of two that moved alike the first by name is told.
ranked as (
    select *, row_number() over (partition by payer_account_id, billing_month, billing_currency
        order by abs(change_usd) desc, run_id) as place
    from run
),

-- A day has moved when its cost has, or how much of it is on runs.
day as (
    select payer_account_id, billing_month, billing_currency, usage_date
    from figure
    group by payer_account_id, billing_month, billing_currency, usage_date
    having sum(now_usd) <> sum(before_usd)
        or sum(case when run_id is null then now_usd else 0 end) <> sum(case when run_id is null then before_usd else 0 end)
),

moved as (
    select payer_account_id, billing_month, billing_currency, 1 as run_count, 0 as day_count,
        case when place = 1 then run_id end as run_id, case when place = 1 then change_usd end as change_usd
    from ranked

    union all

    select payer_account_id, billing_month, billing_currency, 0, 1, null, null
    from day
)

select
    payer_account_id, billing_month, billing_currency,
    cast(sum(run_count) as bigint) as moved_run_count,
    cast(sum(day_count) as bigint) as moved_day_count,
    max(run_id) as most_moved_run_id,
    max(change_usd) as most_moved_run_change_usd
from moved
group by payer_account_id, billing_month, billing_currency
