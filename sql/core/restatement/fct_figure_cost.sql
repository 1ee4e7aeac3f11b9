-- One row per payer × billing month × currency × published figure: the month's cost of a run, or of a day and bucket.
with figure as (
    select payer_account_id, billing_month, billing_currency,
        case when evidence = 'tag_only' then 'detail_provisional_run' else 'mart_run_cost' end as figure_table, run_id as figure_key, run_id, cast(null as date) as usage_date,
        cast(null as varchar) as bucket, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_ledger
    where run_id is not null

    union all

    select payer_account_id, billing_month, billing_currency,
        'mart_cost_ledger_daily', cast(usage_date as varchar) || ' ' || bucket, null, usage_date, bucket,
        list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_ledger
)

select payer_account_id, billing_month, billing_currency, figure_table, figure_key, run_id, usage_date, bucket,
    known_sum(list_cost_usd) as list_cost_usd,
    known_sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from figure
group by payer_account_id, billing_month, billing_currency, figure_table, figure_key, run_id, usage_date, bucket
