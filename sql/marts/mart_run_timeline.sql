-- One row per stretch of an attempt of a run: what it was doing, from when to when, and what that time cost.
-- Training, its waits, saves and evaluations follow each other by the hundred: an unbroken row of them is one stretch.
with told as (
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
    from told
),

numbered as (
    select
        run_id, attempt_no, phase, waste_cause, started_ms, ended_ms,
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

piece as (
    select
        stretch.run_id, stretch.attempt_no, stretch.part_no,
        greatest(stretch.started_ms, cost.started_ms) - cost.started_ms as lower_ms,
        least(stretch.ended_ms, cost.ended_ms) - cost.started_ms as upper_ms,
        cost.ended_ms - cost.started_ms as whole_ms,
        cost.billing_currency, cost.accelerator_hours, cost.list_cost_usd, cost.effective_cost_usd, cost.billed_cost_usd
    from stretch
    join fct_run_cost_hourly as cost
        on cost.run_id = stretch.run_id
        and cost.attempt_no = stretch.attempt_no
        and cost.started_ms < stretch.ended_ms
        and cost.ended_ms > stretch.started_ms
),

priced as (
    select
        run_id, attempt_no, part_no, billing_currency,
        sum(piece_usd(accelerator_hours, lower_ms, upper_ms, whole_ms)) as accelerator_hours,
        known_sum(piece_usd(list_cost_usd, lower_ms, upper_ms, whole_ms)) as list_cost_usd,
        sum(piece_usd(effective_cost_usd, lower_ms, upper_ms, whole_ms)) as effective_cost_usd,
        sum(piece_usd(billed_cost_usd, lower_ms, upper_ms, whole_ms)) as billed_cost_usd
    from piece
    group by run_id, attempt_no, part_no, billing_currency
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
