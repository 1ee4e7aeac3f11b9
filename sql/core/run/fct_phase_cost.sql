-- One row per stretch of an attempt in one phase, and currency: what its seconds cost. Over a run they sum to its compute.
select
    stretch.run_id, stretch.attempt_no, stretch.part_no, stretch.phase, stretch.waste_cause, stay.billing_currency,
    sum(case when stay.is_machine then least(stretch.ended_ms, stay.ended_ms) - greatest(stretch.started_ms, stay.started_ms)
        else 0 end) as node_ms,
    sum(overlap_usd(stay.accelerator_hours, stay.started_ms, stay.ended_ms, stretch.started_ms, stretch.ended_ms)) as accelerator_hours,
    known_sum(overlap_usd(stay.list_cost_usd, stay.started_ms, stay.ended_ms, stretch.started_ms, stretch.ended_ms)) as list_cost_usd,
    sum(overlap_usd(stay.effective_cost_usd, stay.started_ms, stay.ended_ms, stretch.started_ms, stretch.ended_ms)) as effective_cost_usd,
    sum(overlap_usd(stay.billed_cost_usd, stay.started_ms, stay.ended_ms, stretch.started_ms, stretch.ended_ms)) as billed_cost_usd
from fct_run_phase as stretch
join fct_run_cost_hourly as stay
    on stay.run_id = stretch.run_id
    and stay.attempt_no = stretch.attempt_no
    and stay.started_ms < stretch.ended_ms
    and stay.ended_ms > stretch.started_ms
group by stretch.run_id, stretch.attempt_no, stretch.part_no, stretch.phase, stretch.waste_cause, stay.billing_currency
