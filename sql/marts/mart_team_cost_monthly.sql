-- One row per team, billing month, accelerator family and currency: what it used, left idle and shares in (showback).
-- A run is its declared team's; else the team is the one the line's tag named on its own day, so a move splits a month.
-- Shared cost belongs to no team; distributed_shared_cost_usd shows how `[policy] shared_cost` distributes it.
with entry as (
    select
        billing_month, billing_currency, accelerator_family, bucket,
        case when bucket = 'shared' then 'no team' else coalesce(team, 'no team') end as team,
        run_id, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd,
        0 as distributed_shared_cost_usd
    from fct_ledger

    union all

    select billing_month, billing_currency, accelerator_family, 'distributed', team, null, 0, 0, 0, 0, distributed_shared_cost_usd
    from fct_shared_cost_monthly
),

summed as (
    select
        billing_month, team, accelerator_family, billing_currency,
        count(distinct run_id) as run_count,
        sum(accelerator_hours) as accelerator_hours,
        coalesce(sum(effective_cost_usd) filter (where bucket = 'run'), 0) as run_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where bucket = 'idle'), 0) as idle_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where bucket = 'shared'), 0) as shared_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where bucket = 'unattributed'), 0) as unattributed_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where bucket in ('capacity_unused', 'commitment_unused')), 0) as unused_cost_usd,
        coalesce(sum(effective_cost_usd) filter (where bucket = 'other'), 0) as other_cost_usd,
        known_sum(list_cost_usd) as list_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd,
        sum(distributed_shared_cost_usd) as distributed_shared_cost_usd
    from entry
    group by billing_month, team, accelerator_family, billing_currency
)

select
    billing_month, team, accelerator_family, billing_currency, run_count, accelerator_hours, run_cost_usd, idle_cost_usd,
    shared_cost_usd, unattributed_cost_usd, unused_cost_usd, other_cost_usd, list_cost_usd, effective_cost_usd, billed_cost_usd,
    distributed_shared_cost_usd, policy.shared_cost as shared_cost_policy,
    effective_cost_usd - shared_cost_usd + distributed_shared_cost_usd as showback_cost_usd
from summed
cross join policy
