-- One row per interval of a run and currency: when it was and what its seconds cost; null where they are not billed.
-- Over a run its phases sum to its compute, and so do its checkpoints with the tail.
-- What is attached is held for its stay, as a machine is; what a tag alone names has no stay.
with stay as (
    select
        run_id, attempt_no, piece_kind <> 'attached' as is_machine, started_ms, ended_ms, billing_currency,
        sum(accelerator_hours) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd,
        known_sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd
    from fct_ledger
    where bucket = 'run' and evidence <> 'tag_only' and piece_kind <> 'whole'
    group by run_id, attempt_no, resource_id, piece_kind <> 'attached', hour_started_at, started_ms, ended_ms, billing_currency
),

priced as (
    select
        part.run_id, part.interval_kind, part.interval_key, stay.billing_currency,
        sum(case when stay.is_machine then least(part.ended_ms, stay.ended_ms) - greatest(part.started_ms, stay.started_ms)
            else 0 end) as node_ms,
        sum(overlap_usd(stay.accelerator_hours, stay.started_ms, stay.ended_ms, part.started_ms, part.ended_ms))
            as accelerator_hours,
        known_sum(overlap_usd(stay.list_cost_usd, stay.started_ms, stay.ended_ms, part.started_ms, part.ended_ms))
            as list_cost_usd,
        known_sum(overlap_usd(stay.effective_cost_usd, stay.started_ms, stay.ended_ms, part.started_ms, part.ended_ms))
            as effective_cost_usd,
        sum(overlap_usd(stay.billed_cost_usd, stay.started_ms, stay.ended_ms, part.started_ms, part.ended_ms))
            as billed_cost_usd
    from fct_run_interval as part
    join stay
        on stay.run_id = part.run_id
        and (part.attempt_no is null or stay.attempt_no = part.attempt_no)
        and stay.started_ms < part.ended_ms
        and stay.ended_ms > part.started_ms
    group by part.run_id, part.interval_kind, part.interval_key, stay.billing_currency
),

whole as (
    select
        run_id, interval_kind, interval_key, attempt_no, phase, waste_cause,
        min(started_ms) as started_ms, max(ended_ms) as ended_ms, sum(ended_ms - started_ms) as duration_ms
    from fct_run_interval
    group by run_id, interval_kind, interval_key, attempt_no, phase, waste_cause
)

select
    whole.run_id, whole.interval_kind, whole.interval_key, whole.attempt_no, whole.phase, whole.waste_cause,
    whole.started_ms, whole.ended_ms, whole.duration_ms, priced.billing_currency, priced.node_ms,
    priced.accelerator_hours, priced.list_cost_usd, priced.effective_cost_usd, priced.billed_cost_usd
from whole
left join priced
    on priced.run_id = whole.run_id
    and priced.interval_kind = whole.interval_kind
    and priced.interval_key = whole.interval_key
