-- One row per currency, dimension and value of it: how many runs there are, what they cost and what they wasted.
-- The rows without a currency count the runs of all currencies and those on no bill; money is never added across currencies.
with counted as (
    select
        accelerator_family, status,
        grouping(accelerator_family) as is_any_family, grouping(status) as is_any_status,
        cast(null as varchar) as billing_currency,
        count(*) as run_count,
        count(*) filter (where is_billed) as billed_run_count,
        count(*) filter (where not is_billed) as unbilled_run_count,
        count(*) filter (where is_end_inferred) as inferred_end_run_count,
        count(*) filter (where is_billed and status = 'completed') as completed_run_count,
        null as effective_cost_usd, null as estimated_cost_usd, null as unbilled_hours, null as unbilled_cost_usd,
        null as wasted_cost_usd, null as wasted_ratio
    from mart_run_cost
    group by grouping sets ((), (accelerator_family), (status))

    union all

    select
        accelerator_family, status,
        grouping(accelerator_family), grouping(status),
        billing_currency,
        count(*),
        count(*) filter (where is_billed),
        count(*) filter (where not is_billed),
        count(*) filter (where is_end_inferred),
        count(*) filter (where is_billed and status = 'completed'),
        known_sum(case when is_billed then effective_cost_usd else 0 end), known_sum(estimated_cost_usd),
        sum(unbilled_hours), unbilled_usd(unbilled_hours, unbilled_cost_usd),
        known_sum(case when is_billed then wasted_cost_usd else 0 end),
        ratio(known_sum(case when is_billed then wasted_cost_usd else 0 end),
            known_sum(case when is_billed then if_whole(effective_cost_usd, unbilled_hours > 0) else 0 end))
    from mart_run_cost
    where billing_currency is not null
    group by grouping sets ((billing_currency), (billing_currency, accelerator_family), (billing_currency, status))
),

cause as (
    select
        billing_currency, if_whole(effective_cost_usd, unbilled_hours > 0) as whole_cost_usd, unbilled_hours,
        unbilled_cost_usd, lost_work_cost_usd, failed_run_cost_usd, restart_cost_usd, compile_cost_usd,
        replay_cost_usd, idle_hold_cost_usd, cause
    from mart_run_cost
    cross join (values ('lost_work'), ('failed_run'), ('restart'), ('compile'), ('replay'), ('idle_hold')) as known(cause)
    where is_billed
),

wasted as (
    select billing_currency, cause, whole_cost_usd, unbilled_hours, unbilled_cost_usd,
        case cause when 'lost_work' then lost_work_cost_usd when 'failed_run' then failed_run_cost_usd when 'restart' then restart_cost_usd
            when 'compile' then compile_cost_usd when 'replay' then replay_cost_usd else idle_hold_cost_usd end as wasted_cost_usd
    from cause
)

select
    billing_currency,
    case when is_any_family = 0 then 'accelerator_family' when is_any_status = 0 then 'status' else 'total' end as dimension,
    case when is_any_family = 0 then accelerator_family when is_any_status = 0 then status else 'all' end as dimension_value,
    run_count, billed_run_count, unbilled_run_count, inferred_end_run_count, completed_run_count,
    effective_cost_usd, estimated_cost_usd, unbilled_hours, unbilled_cost_usd, wasted_cost_usd, wasted_ratio
from counted

union all

select
    billing_currency, 'waste_cause', cause, count(*) filter (where wasted_cost_usd <> 0), null, null, null, null, null, null,
    sum(unbilled_hours), unbilled_usd(unbilled_hours, unbilled_cost_usd),
    known_sum(wasted_cost_usd), ratio(known_sum(wasted_cost_usd), known_sum(whole_cost_usd))
from wasted
group by billing_currency, cause
