-- One row per interval of a run that has a cost of its own: an epoch, a checkpoint, the time to the target.
with priced as (
    select
        part.run_id, part.interval_kind, part.interval_key, stay.billing_currency,
        sum(overlap_usd(stay.accelerator_hours, stay.started_ms, stay.ended_ms, part.started_ms, part.ended_ms)) as accelerator_hours,
        known_sum(overlap_usd(stay.list_cost_usd, stay.started_ms, stay.ended_ms, part.started_ms, part.ended_ms)) as list_cost_usd,
        sum(overlap_usd(stay.effective_cost_usd, stay.started_ms, stay.ended_ms, part.started_ms, part.ended_ms)) as effective_cost_usd,
        sum(overlap_usd(stay.billed_cost_usd, stay.started_ms, stay.ended_ms, part.started_ms, part.ended_ms)) as billed_cost_usd
    from fct_run_interval as part
    join fct_run_cost_hourly as stay
        on stay.run_id = part.run_id
        and stay.started_ms < part.ended_ms
        and stay.ended_ms > part.started_ms
    group by part.run_id, part.interval_kind, part.interval_key, stay.billing_currency
),

whole as (
    select run_id, interval_kind, interval_key, sum(ended_ms - started_ms) as duration_ms
    from fct_run_interval
    group by run_id, interval_kind, interval_key
)

select
    whole.run_id, whole.interval_kind, whole.interval_key, whole.duration_ms,
    priced.billing_currency, priced.accelerator_hours, priced.list_cost_usd, priced.effective_cost_usd, priced.billed_cost_usd
from whole
left join priced
    on priced.run_id = whole.run_id
    and priced.interval_kind = whole.interval_kind
    and priced.interval_key = whole.interval_key
