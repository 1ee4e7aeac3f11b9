-- One row per payer × billing month × currency × published figure × cost basis that is not what it was.
-- The month's cost of each run and of each day and bucket, by the ledger published last and by the one now.
-- stored: no
with entry as (
    select payer_account_id, billing_month, billing_currency, usage_date, bucket, run_id, true as is_now,
        list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_ledger_daily

    union all

    select payer_account_id, billing_month, billing_currency, usage_date, bucket, run_id, false as is_now,
        list_cost_usd, effective_cost_usd, billed_cost_usd
    from published_ledger_daily
),

figure as (
    select payer_account_id, billing_month, billing_currency,
        'mart_run_cost' as figure_table, run_id as figure_key, run_id, cast(null as date) as usage_date,
        cast(null as varchar) as bucket, is_now, list_cost_usd, effective_cost_usd, billed_cost_usd
    from entry
    where run_id is not null

    union all

    select payer_account_id, billing_month, billing_currency,
        'mart_cost_ledger_daily', cast(usage_date as varchar) || ' ' || bucket, null, usage_date, bucket,
        is_now, list_cost_usd, effective_cost_usd, billed_cost_usd
    from entry
),

summed as (
    select payer_account_id, billing_month, billing_currency, figure_table, figure_key, run_id, usage_date, bucket, is_now,
        known_sum(list_cost_usd) as list_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd
    from figure
    group by payer_account_id, billing_month, billing_currency, figure_table, figure_key, run_id, usage_date, bucket, is_now
),

amount as (
    select summed.*, 'list' as cost_basis, list_cost_usd as cost_usd from summed
    union all
    select summed.*, 'effective', effective_cost_usd from summed
    union all
    select summed.*, 'billed', billed_cost_usd from summed
),

-- What was not there cost nothing; what was, and has no list price, cost nobody knows what.
compared as (
    select payer_account_id, billing_month, billing_currency, figure_table, figure_key, run_id, usage_date, bucket, cost_basis,
        case when count(*) filter (where not is_now) = 0 then 0
            else max(cost_usd) filter (where not is_now) end as before_cost_usd,
        case when count(*) filter (where is_now) = 0 then 0
            else max(cost_usd) filter (where is_now) end as after_cost_usd
    from amount
    group by payer_account_id, billing_month, billing_currency, figure_table, figure_key, run_id, usage_date, bucket, cost_basis
)

select
    payer_account_id, billing_month, billing_currency, figure_table, figure_key, run_id, usage_date, bucket, cost_basis,
    before_cost_usd, after_cost_usd, after_cost_usd - before_cost_usd as cost_change_usd
from compared
where before_cost_usd is distinct from after_cost_usd
