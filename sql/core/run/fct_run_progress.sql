-- One row per run: how far it came, in the units it declares.
with epoch as (
    -- An epoch repeated after a restart counts once, as far as it came at most.
    select run_id, epoch_index, cast(max(fraction) as decimal(20, 6)) as fraction
    from stg_tracker__epoch
    group by run_id, epoch_index
),

completed as (
    select run_id, sum(fraction) as epoch_completed_count
    from epoch
    group by run_id
),

saved as (
    select run_id, count(distinct checkpoint_id) as checkpoint_durable_count
    from stg_tracker__checkpoint
    where is_resumable and is_complete
    group by run_id
),

unmeasured as (
    select run_id, count(*) as evaluation_unmeasured_count
    from stg_tracker__evaluation
    where value is null
    group by run_id
),

-- Tokens a run has seen are told by epochs and checkpoints alike.
token as (
    select run_id, max(tokens_seen) as tokens_seen_count
    from (
        select run_id, tokens_seen from stg_tracker__epoch
        union all
        select run_id, tokens_seen from stg_tracker__checkpoint
    ) as told
    group by run_id
)

select
    run.run_id, run.epoch_unit, run.epoch_unit_size, run.tokens_unit, run.tokens_unit_count,
    -- A run that tells no epoch is as many as its tokens fill.
    coalesce(completed.epoch_completed_count, ratio(token.tokens_seen_count, case run.epoch_unit
        when 'dataset_pass' then run.dataset_tokens when 'token_block' then run.epoch_unit_size end), 0) as epoch_completed_count,
    coalesce(saved.checkpoint_durable_count, 0) as checkpoint_durable_count,
    token.tokens_seen_count,
    coalesce(unmeasured.evaluation_unmeasured_count, 0) as evaluation_unmeasured_count
from stg_tracker__run as run
left join completed on completed.run_id = run.run_id
left join saved on saved.run_id = run.run_id
left join token on token.run_id = run.run_id
left join unmeasured on unmeasured.run_id = run.run_id
