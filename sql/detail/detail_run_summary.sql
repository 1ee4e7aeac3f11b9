-- One row per currency, dimension and value of it: how many runs there are, what they cost and what they wasted.
-- Runs are counted over all currencies in the row without one; money is never added across currencies.
with run as (
    select
        billing_currency, accelerator_family, status, is_billed, is_end_inferred, effective_cost_usd, estimated_cost_usd,
        wasted_cost_usd
    from mart_run_cost
),

summed as (
    select
        billing_currency,
        case when grouping(accelerator_family) = 0 then 'accelerator_family' when grouping(status) = 0 then 'status' else 'total' end
            as dimension,
        coalesce(accelerator_family, status, 'all') as dimension_value,
        grouping(billing_currency) = 0 as has_currency,
        count(*) as run_count,
        count(*) filter (where is_billed) as billed_run_count,
        count(*) filter (where not is_billed) as unbilled_run_count,
        count(*) filter (where is_end_inferred) as inferred_end_run_count,
        count(*) filter (where is_billed and status = 'completed') as completed_run_count,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(estimated_cost_usd) as estimated_cost_usd,
        sum(wasted_cost_usd) filter (where is_billed) as wasted_cost_usd,
        ratio(sum(wasted_cost_usd) filter (where is_billed), sum(effective_cost_usd) filter (where is_billed)) as wasted_ratio
    from run
    group by grouping sets (
        (), (accelerator_family), (status),
        (billing_currency), (billing_currency, accelerator_family), (billing_currency, status)
    )
)

select
    billing_currency, dimension, dimension_value, run_count, billed_run_count, unbilled_run_count, inferred_end_run_count,
    completed_run_count,
    case when has_currency then effective_cost_usd end as effective_cost_usd,
    case when has_currency then estimated_cost_usd end as estimated_cost_usd,
    case when has_currency then wasted_cost_usd end as wasted_cost_usd,
    case when has_currency then wasted_ratio end as wasted_ratio
from summed
-- A run on no bill has no currency of its own; it is counted in the rows of all currencies.
where not has_currency or billing_currency is not null
