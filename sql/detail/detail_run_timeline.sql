-- One row per stretch of an attempt of a run: what it was doing, from when to when, and what that time cost.
-- Training, its waits, saves and evaluations follow each other by the hundred: an unbroken row of them is one stretch.
with folded as (
    select *,
        case when phase in ('data_wait', 'checkpoint_stall', 'evaluation') then 'train' else phase end as shown_phase
    from fct_interval_cost
    where interval_kind = 'phase'
),

marked as (
    select
        *,
        case
            when lag(shown_phase) over attempt = shown_phase and lag(waste_cause) over attempt = waste_cause
                and lag(ended_ms) over attempt = started_ms
                then 0
            else 1
        end as is_new
    from folded
    window attempt as (partition by run_id, attempt_no order by started_ms)
),

numbered as (
    select *, sum(is_new) over (
        partition by run_id, attempt_no order by started_ms rows between unbounded preceding and current row) as part_no
    from marked
)

select
    part.run_id, part.attempt_no, cast(part.part_no as bigint) as part_no,
    max(part.billing_currency) as billing_currency, run.team, run.owner,
    attempt.end_reason, attempt.is_end_inferred, part.shown_phase as phase, part.waste_cause,
    cast(epoch_ms(min(part.started_ms)) as timestamp) as started_at,
    cast(epoch_ms(max(part.ended_ms)) as timestamp) as ended_at,
    cast(max(part.ended_ms) - min(part.started_ms) as double) / 1000 as duration_seconds,
    known_sum(part.accelerator_hours) as accelerator_hours,
    case when count(part.list_cost_usd) = count(part.billing_currency) then sum(part.list_cost_usd) end as list_cost_usd,
    sum(part.effective_cost_usd) as effective_cost_usd,
    sum(part.billed_cost_usd) as billed_cost_usd
from numbered as part
join fct_run as run on run.run_id = part.run_id
left join stg_tracker__attempt as attempt on attempt.run_id = part.run_id and attempt.attempt_no = part.attempt_no
group by part.run_id, part.attempt_no, part.part_no, run.team, run.owner, attempt.end_reason, attempt.is_end_inferred,
    part.shown_phase, part.waste_cause, run.billing_currency
