-- One row per run, phase, cause of waste and currency: what the seconds of that phase cost, over all its stays.
-- A stay's cost flows evenly over its seconds within the hour, and phases touch, so they sum to the run's compute.
with piece as (
    select
        stretch.run_id, stretch.phase, stretch.waste_cause,
        greatest(stretch.started_ms, cost.started_ms) - cost.started_ms as lower_ms,
        least(stretch.ended_ms, cost.ended_ms) - cost.started_ms as upper_ms,
        cost.ended_ms - cost.started_ms as whole_ms,
        cost.is_machine, cost.billing_currency, cost.accelerator_hours, cost.list_cost_usd, cost.effective_cost_usd, cost.billed_cost_usd
    from fct_run_phase as stretch
    join fct_run_cost_hourly as cost
        on cost.run_id = stretch.run_id
        and cost.attempt_no = stretch.attempt_no
        and cost.started_ms < stretch.ended_ms
        and cost.ended_ms > stretch.started_ms
)

select
    run_id, phase, waste_cause, billing_currency,
    sum(case when is_machine then upper_ms - lower_ms else 0 end) as node_ms,
    sum(piece_usd(accelerator_hours, lower_ms, upper_ms, whole_ms)) as accelerator_hours,
    known_sum(piece_usd(list_cost_usd, lower_ms, upper_ms, whole_ms)) as list_cost_usd,
    sum(piece_usd(effective_cost_usd, lower_ms, upper_ms, whole_ms)) as effective_cost_usd,
    sum(piece_usd(billed_cost_usd, lower_ms, upper_ms, whole_ms)) as billed_cost_usd
from piece
group by run_id, phase, waste_cause, billing_currency
