-- One row per run: how far apart its checkpoints were, what that cost, and the distances the rules advise (facts training-runs 5).
-- A run's history is its own attempts; one that was never interrupted takes the rate of all runs of its workload on its instance type,
-- and where none of those was interrupted either a published one. Restarts cost the same at any distance and are in no cost here.
with saved as (
    select
        run_id, attempt_no, stall_seconds, unix_ms(durable_at) as durable_ms,
        lag(unix_ms(durable_at)) over (partition by run_id, attempt_no order by durable_at, checkpoint_id) as before_ms
    from stg_tracker__checkpoint
    where is_resumable and is_complete
),

attempt as (
    select
        run_id, attempt_no, unix_ms(started_at) as started_ms, unix_ms(ended_at) as ended_ms, begun.train_ms,
        -- These ends are known beforehand; every other one interrupts the run, an unexplained one if the run went on.
        end_reason not in ('completed', 'user_stop', 'timeout', 'capacity_block_end')
            and (end_reason <> 'unknown' or attempt_no < max(attempt_no) over (partition by run_id)) as is_interrupted,
        -- Spot gives two minutes of notice: a save in that time was made for it (facts training-runs 1.13).
        coalesce(last_save.saved_ms >= unix_ms(ended_at) - 120000, false) as was_saved
    from stg_tracker__attempt
    left join (
        select run_id, attempt_no, min(unix_ms(started_at)) as train_ms from stg_tracker__phase where phase = 'train' group by all
    ) as begun using (run_id, attempt_no)
    left join (select run_id, attempt_no, max(durable_ms) as saved_ms from saved group by all) as last_save using (run_id, attempt_no)
),

attempts as (
    select
        run_id,
        count(*) filter (where is_interrupted) as interruption_count,
        count(*) filter (where is_interrupted and was_saved) as noticed_count,
        sum(ended_ms - started_ms) / 1000 as attempt_seconds,
        sum(ended_ms - least(greatest(train_ms, started_ms), ended_ms)) / 1000 as training_seconds,
        median(train_ms - started_ms) / 1000 as restart_seconds
    from attempt
    group by run_id
),

saves as (
    select
        run_id, count(*) as save_count, median(stall_seconds) as save_seconds, avg(stall_seconds) as mean_save_seconds,
        median(nullif(greatest((durable_ms - coalesce(before_ms, train_ms, started_ms)) / 1000 - coalesce(stall_seconds, 0), 0), 0))
            as done_interval_seconds
    from saved
    left join attempt using (run_id, attempt_no)
    group by run_id
),

nodes as (
    select run_id, sum(unix_ms(left_at) - unix_ms(joined_at)) as node_ms
    from stg_tracker__resource
    group by run_id
    having sum(unix_ms(left_at) - unix_ms(joined_at)) > 0
),

history as (
    select
        run_id, workload_id, billing_currency, accelerator_family, instance_type, status, team, owner,
        cast(if_whole(effective_cost_usd, unbilled_hours > 0) as double) / nullif(attempt_seconds, 0)
            as cost_per_second_usd, unbilled_hours,
        coalesce(lost_work_cost_usd, 0) as lost_work_cost_usd,
        case when checkpoint_durable_count is not null then coalesce(save_count, 0) end as save_count,
        save_seconds, nullif(save_seconds, 0) as stop_seconds, mean_save_seconds, done_interval_seconds, restart_seconds,
        nullif(attempt_seconds, 0) as attempt_seconds, training_seconds, node_ms,
        coalesce(interruption_count, 0) as interruption_count, noticed_count, sum(node_ms) over pool as pool_node_ms,
        sum(case when node_ms > 0 then interruption_count else 0 end) over pool as pool_interruption_count,
        sum(case when node_ms > 0 then noticed_count else 0 end) over pool as pool_noticed_count
    from fct_run
    left join attempts using (run_id)
    left join saves using (run_id)
    left join nodes using (run_id)
    window pool as (partition by workload_id, instance_type)
),

rated as (
    select
        *,
        -- Llama 3 405B: 419 unexpected interruptions in 54 days of 2048 nodes with 8 H100 each.
        coalesce(attempt_seconds / nullif(interruption_count, 0), attempt_seconds / node_ms
            * coalesce(pool_node_ms / nullif(pool_interruption_count, 0), 86400e3 * 54 * 2048 / 419)) as lasting_seconds,
        -- One interruption more than was seen, so that the notice is never trusted fully.
        case when interruption_count > 0 then noticed_count / (interruption_count + 1)
            else coalesce(pool_noticed_count / (pool_interruption_count + 1), 0) end as noticed_ratio
    from history
),

advised as (
    select
        *,
        young_interval(stop_seconds, lasting_seconds) as young_interval_seconds,
        daly_interval(stop_seconds, lasting_seconds) as daly_interval_seconds,
        availability_interval(stop_seconds, lasting_seconds, restart_seconds) as availability_interval_seconds,
        young_interval(stop_seconds, lasting_seconds / (1 - noticed_ratio)) as dollar_interval_seconds
    from rated
)

select
    run_id, workload_id, billing_currency, accelerator_family, instance_type, status, team, owner, save_count, save_seconds,
    restart_seconds, interruption_count, node_ms / 3600000 as node_hours,
    case when lasting_seconds is null then null when interruption_count > 0 then 'run'
        when pool_interruption_count > 0 then 'workload' else 'default' end as interruption_basis,
    lasting_seconds as between_interruptions_seconds, case when lasting_seconds is null then 0 else noticed_ratio end as noticed_ratio,
    cost_per_second_usd, done_interval_seconds, young_interval_seconds, daly_interval_seconds, availability_interval_seconds,
    dollar_interval_seconds, cost_per_second_usd * mean_save_seconds * save_count + lost_work_cost_usd as done_cost_usd,
    expected_checkpoint_cost_usd(advised, done_interval_seconds) as done_expected_cost_usd,
    expected_checkpoint_cost_usd(advised, young_interval_seconds) as young_expected_cost_usd,
    expected_checkpoint_cost_usd(advised, daly_interval_seconds) as daly_expected_cost_usd,
    -- Its period holds the save itself.
    expected_checkpoint_cost_usd(advised, availability_interval_seconds - save_seconds) as availability_expected_cost_usd,
    expected_checkpoint_cost_usd(advised, dollar_interval_seconds) as dollar_expected_cost_usd,
    nullif(concat_ws('; ',
        case when save_count is null then 'no source of the run records checkpoints'
            when save_count = 0 then 'no durable checkpoint was saved'
            when save_seconds is null then 'no save records how long it stopped the run'
            when save_seconds = 0 then 'saves stop nothing, so only storage bounds them' end,
        case when lasting_seconds is null then 'neither nodes nor an interruption are recorded' end,
        case when unbilled_hours > 0 then 'the bill lacks recorded machine time of the run'
            when cost_per_second_usd is null then 'the cost of the run is unknown' end), '') as missing_evidence
from advised
