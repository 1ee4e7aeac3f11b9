-- One row per interval of a run and currency: when it was and what its seconds cost; null where they are not billed.
-- Over a run its phases sum to its compute, and so do its checkpoints with the tail.
-- So they are where a run is billed in two currencies, for then it has no cost (fct_run_cost).
-- What is attached is held for its stay, as a machine is; what a tag alone names has no stay.
with stay as (
    select
        run_id, attempt_no, piece_kind <> 'attached' as is_machine,
        piece_kind <> 'attached' and evidence not in ('tag', 'tag_folded') as is_recorded,
        started_ms, ended_ms, billing_currency,
        sum(accelerator_hours) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd,
        known_sum(effective_cost_usd) as effective_cost_usd,
        known_sum(known_billed_usd(market, effective_cost_usd, billed_cost_usd)) as billed_cost_usd
    from fct_ledger
    where bucket = 'run' and evidence <> 'tag_only' and piece_kind <> 'whole'
        and run_id not in (select run_id from fct_ledger where bucket = 'run' group by run_id
            having min(billing_currency) <> max(billing_currency))
    group by run_id, attempt_no, resource_id, piece_kind <> 'attached', evidence not in ('tag', 'tag_folded'),
        hour_started_at, started_ms, ended_ms, billing_currency
),

-- Each cost of a stay in steps and as a double, converted once: intervals cut it millions of times.
counted as (
    select
        run_id, attempt_no, is_machine, is_recorded, started_ms, ended_ms, billing_currency,
        steps_of(accelerator_hours) as hour_steps, cast(accelerator_hours as double) as hours,
        steps_of(list_cost_usd) as list_steps, cast(list_cost_usd as double) as list_usd,
        steps_of(effective_cost_usd) as effective_steps, cast(effective_cost_usd as double) as effective_usd,
        steps_of(billed_cost_usd) as billed_steps, cast(billed_cost_usd as double) as billed_usd
    from stay
),

-- A cost flows evenly over its stay, so touching intervals sum to it.
met as (
    select
        part.interval_no, stay.billing_currency, stay.is_machine, stay.is_recorded,
        greatest(part.started_ms, stay.started_ms) - stay.started_ms as lower,
        least(part.ended_ms, stay.ended_ms) - stay.started_ms as upper, stay.ended_ms - stay.started_ms as whole,
        hour_steps, hours, list_steps, list_usd, effective_steps, effective_usd, billed_steps, billed_usd
    from fct_run_interval as part
    join counted as stay
        on stay.run_id = part.run_id
        and (part.attempt_no is null or stay.attempt_no = part.attempt_no)
        and stay.started_ms < part.ended_ms
        and stay.ended_ms > part.started_ms
),

priced as (
    select
        interval_no, billing_currency,
        sum(case when is_machine then upper - lower else 0 end) as node_ms,
        sum(case when is_recorded then upper - lower else 0 end) as recorded_node_ms,
        usd_of_steps(sum(piece_steps(hour_steps, hours, lower, upper, whole))) as accelerator_hours,
        usd_of_steps(known_sum(piece_steps(list_steps, list_usd, lower, upper, whole))) as list_cost_usd,
        usd_of_steps(known_sum(piece_steps(effective_steps, effective_usd, lower, upper, whole)))
            as effective_cost_usd,
        usd_of_steps(known_sum(piece_steps(billed_steps, billed_usd, lower, upper, whole))) as billed_cost_usd
    from met
    group by interval_no, billing_currency
),

gap as (
    select distinct run_id from fct_unbilled_claim_monthly
),

-- Of runs that the bill lacks time of: up to a minute a stay is none (fct_unbilled_claim_monthly).
claimed as (
    select
        part.interval_no,
        sum(least(part.ended_ms, unix_ms(stay.left_at)) - greatest(part.started_ms, unix_ms(stay.joined_at)) - 60000)
            as least_node_ms
    from fct_run_interval as part
    join gap on gap.run_id = part.run_id
    join stg_tracker__resource as stay
        on stay.run_id = part.run_id
        and (part.attempt_no is null or stay.attempt_no = part.attempt_no)
        and unix_ms(stay.joined_at) < part.ended_ms
        and unix_ms(stay.left_at) > part.started_ms
    group by part.interval_no
),

-- Few intervals have more parts than one; the first part begins first.
later as (
    select interval_no, max(ended_ms) as ended_ms, sum(ended_ms - started_ms) as duration_ms
    from fct_run_interval
    where part_no > 1
    group by interval_no
)

select
    part.run_id, part.interval_kind, part.interval_key, part.attempt_no, part.phase, part.waste_cause,
    part.started_ms, greatest(part.ended_ms, coalesce(later.ended_ms, part.ended_ms)) as ended_ms,
    part.ended_ms - part.started_ms + coalesce(later.duration_ms, 0) as duration_ms,
    priced.billing_currency, priced.node_ms,
    priced.accelerator_hours, priced.list_cost_usd, priced.effective_cost_usd, priced.billed_cost_usd,
    gap.run_id is not null and coalesce(claimed.least_node_ms > priced.recorded_node_ms, true) as is_partial
from fct_run_interval as part
left join later using (interval_no)
left join priced using (interval_no)
left join claimed using (interval_no)
left join gap on gap.run_id = part.run_id
where part.part_no = 1
