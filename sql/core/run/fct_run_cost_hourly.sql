-- One row per run, attempt, resource and stay within an hour, in one currency: what that stay cost.
with piece as (
    select true as is_machine, run_id, attempt_no, evidence, resource_id, instance_type, accelerator_family, market, hour_started_at, started_ms, ended_ms,
        billing_currency, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_charge_piece
    where bucket = 'run'

    union all

    select true, run_id, attempt_no, evidence, resource_id, instance_type, accelerator_family, market, hour_started_at, started_ms, ended_ms,
        billing_currency, 0 as accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_capacity_block_piece
    where bucket = 'run'

    union all

    -- What is attached is held for its stay, as a machine is.
    select false, run_id, attempt_no, evidence, resource_id, null, accelerator_family, market, hour_started_at, started_ms, ended_ms,
        billing_currency, 0 as accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_attached_piece
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
