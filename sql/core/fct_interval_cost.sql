-- One row per interval of a run that somebody asks the price of: an epoch, a checkpoint, the way to the target, waste.
-- A stay's cost flows evenly over its seconds within the hour, so touching intervals sum to the stay.
with piece as (
    select
        stretch.run_id, stretch.interval_kind, stretch.interval_key,
        greatest(stretch.started_ms, cost.started_ms) - cost.started_ms as lower_ms,
        least(stretch.ended_ms, cost.ended_ms) - cost.started_ms as upper_ms,
        cost.ended_ms - cost.started_ms as whole_ms,
        cost.billing_currency, cost.accelerator_hours, cost.list_cost_usd, cost.effective_cost_usd, cost.billed_cost_usd
    from fct_run_interval as stretch
    join fct_run_cost_hourly as cost
        on cost.run_id = stretch.run_id
        and cost.started_ms < stretch.ended_ms
        and cost.ended_ms > stretch.started_ms
),

priced as (
    select
        run_id, interval_kind, interval_key, billing_currency,
        sum(piece_usd(accelerator_hours, lower_ms, upper_ms, whole_ms)) as accelerator_hours,
        known_sum(piece_usd(list_cost_usd, lower_ms, upper_ms, whole_ms)) as list_cost_usd,
        sum(piece_usd(effective_cost_usd, lower_ms, upper_ms, whole_ms)) as effective_cost_usd,
        sum(piece_usd(billed_cost_usd, lower_ms, upper_ms, whole_ms)) as billed_cost_usd
    from piece
    group by run_id, interval_kind, interval_key, billing_currency
),

asked as (
    select run_id, interval_kind, interval_key, sum(ended_ms - started_ms) as duration_ms
    from fct_run_interval
    group by run_id, interval_kind, interval_key
)

select
    asked.run_id, asked.interval_kind, asked.interval_key, asked.duration_ms,
    priced.billing_currency, priced.accelerator_hours, priced.list_cost_usd, priced.effective_cost_usd, priced.billed_cost_usd
from asked
left join priced
    on priced.run_id = asked.run_id
    and priced.interval_kind = asked.interval_kind
    and priced.interval_key = asked.interval_key
