-- One row per run: its own cost, with that of the runs it came from, and with that of the trials it leads.
-- stored: no
-- An ancestor counts whole, whatever was trained after the checkpoint it was taken from.
with cradle as (
    select
        own.run_id,
        count(*) filter (where link.generation_count > 0) as ancestor_count,
        sum(ancestor.effective_cost_usd) filter (where link.generation_count > 0) as ancestor_cost_usd,
        count(*) filter (where ancestor.effective_cost_usd is null) as unknown_count
    from fct_run as own
    join dim_run_ancestor as link on link.run_id = own.run_id
    left join fct_run as ancestor
        on ancestor.run_id = link.ancestor_run_id and ancestor.billing_currency = own.billing_currency
    group by own.run_id, own.billing_currency
),

trial as (
    select run_id, parent_run_id
    from dim_run
    where purpose = 'sweep_trial' and parent_run_id <> run_id
),

sweep as (
    select
        own.run_id,
        -- Who leads a sweep may hold no machine; then it counts in its trials' currency, if that is one.
        coalesce(min(own.billing_currency), case when min(cost.billing_currency) = max(cost.billing_currency)
            then min(cost.billing_currency) end) as billing_currency
    from fct_run as own
    join trial on trial.parent_run_id = own.run_id
    join fct_run as cost on cost.run_id = trial.run_id
    group by own.run_id
),

trials as (
    select
        trial.parent_run_id as run_id, count(*) as trial_count,
        sum(cost.effective_cost_usd) filter (where cost.billing_currency = sweep.billing_currency) as trial_cost_usd
    from trial
    join sweep on sweep.run_id = trial.parent_run_id
    join fct_run as cost on cost.run_id = trial.run_id
    group by trial.parent_run_id, sweep.billing_currency
)

select
    run.run_id,
    coalesce(run.billing_currency, sweep.billing_currency) as billing_currency,
    run.effective_cost_usd,
    cradle.ancestor_count,
    coalesce(cradle.ancestor_cost_usd, 0) as ancestor_cost_usd,
    run.effective_cost_usd + coalesce(cradle.ancestor_cost_usd, 0) as cradle_cost_usd,
    cradle.unknown_count = 0 as is_cradle_complete,
    coalesce(trials.trial_count, 0) as trial_count,
    case when run.effective_cost_usd is not null or trials.trial_cost_usd is not null
        then coalesce(run.effective_cost_usd, 0) + coalesce(trials.trial_cost_usd, 0) end as sweep_cost_usd
from fct_run as run
join cradle on cradle.run_id = run.run_id
left join sweep on sweep.run_id = run.run_id
left join trials on trials.run_id = run.run_id
