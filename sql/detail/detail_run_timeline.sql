-- One row per stretch of an attempt of a run: what it was doing, from when to when, and what that time cost.
-- Training, its waits, saves and evaluations follow each other by the hundred: an unbroken row of them is one stretch.
with folded as (
    select
        run_id, attempt_no, part_no, started_ms, ended_ms, waste_cause,
        case when phase in ('data_wait', 'checkpoint_stall', 'evaluation') then 'train' else phase end as phase
    from fct_run_phase
),

marked as (
    select
        *,
        case
            when lag(phase) over (partition by run_id, attempt_no order by part_no) = phase
                and lag(waste_cause) over (partition by run_id, attempt_no order by part_no) = waste_cause
                and lag(ended_ms) over (partition by run_id, attempt_no order by part_no) = started_ms
                then 0
            else 1
        end as is_new
    from folded
),

numbered as (
    select
        run_id, attempt_no, part_no as phase_part_no, phase, waste_cause, started_ms, ended_ms,
        sum(is_new) over (
            partition by run_id, attempt_no order by part_no rows between unbounded preceding and current row
        ) as part_no
    from marked
),

stretch as (
    select run_id, attempt_no, part_no, phase, waste_cause, min(started_ms) as started_ms, max(ended_ms) as ended_ms
    from numbered
    group by run_id, attempt_no, part_no, phase, waste_cause
),

priced as (
    select
        numbered.run_id, numbered.attempt_no, numbered.part_no, cost.billing_currency,
        sum(cost.accelerator_hours) as accelerator_hours,
        known_sum(cost.list_cost_usd) as list_cost_usd,
        sum(cost.effective_cost_usd) as effective_cost_usd,
        sum(cost.billed_cost_usd) as billed_cost_usd
    from numbered
    join fct_phase_cost as cost
        on cost.run_id = numbered.run_id
        and cost.attempt_no = numbered.attempt_no
        and cost.part_no = numbered.phase_part_no
    group by numbered.run_id, numbered.attempt_no, numbered.part_no, cost.billing_currency
)

select
    stretch.run_id, stretch.attempt_no,
    cast(stretch.part_no as bigint) as part_no,
    priced.billing_currency, run.team, run.owner,
    attempt.end_reason, attempt.is_end_inferred,
    stretch.phase, stretch.waste_cause,
    cast(epoch_ms(stretch.started_ms) as timestamp) as started_at,
    cast(epoch_ms(stretch.ended_ms) as timestamp) as ended_at,
    cast(stretch.ended_ms - stretch.started_ms as double) / 1000 as duration_seconds,
    priced.accelerator_hours, priced.list_cost_usd, priced.effective_cost_usd, priced.billed_cost_usd
from stretch
join fct_run as run on run.run_id = stretch.run_id
left join stg_tracker__attempt as attempt
    on attempt.run_id = stretch.run_id and attempt.attempt_no = stretch.attempt_no
left join priced
    on priced.run_id = stretch.run_id and priced.attempt_no = stretch.attempt_no and priced.part_no = stretch.part_no
