-- One row per run, attempt, resource and stay within an hour, in one currency: what that stay cost.
-- What is attached is held for its stay, as a machine is; what a tag alone names has no stay.
with piece as (
    select run_id, attempt_no, resource_id, piece_kind <> 'attached' as is_machine, hour_started_at, started_ms, ended_ms,
        billing_currency, instance_type, accelerator_family, evidence, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_ledger_piece
    where bucket = 'run' and piece_kind <> 'whole'

    union all

    select run_id, attempt_no, resource_id, true, hour_started_at, started_ms, ended_ms,
        billing_currency, instance_type, accelerator_family, evidence, 0, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_capacity_block_piece
    where bucket = 'run'
)

select
    run_id, attempt_no, resource_id, is_machine, hour_started_at, started_ms, ended_ms, billing_currency,
    max(instance_type) as instance_type,
    max(accelerator_family) as accelerator_family,
    max(evidence) as evidence,
    sum(accelerator_hours) as accelerator_hours,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from piece
group by run_id, attempt_no, resource_id, is_machine, hour_started_at, started_ms, ended_ms, billing_currency
