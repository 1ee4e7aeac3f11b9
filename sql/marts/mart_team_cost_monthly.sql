-- One row per team, billing month, accelerator family and currency: what it used, left idle and shares in (showback).
-- A run is its declared team's; else the team is the one the line's tag named on its own day, so a move splits a month. Shared cost
-- belongs to no team, and `[policy] shared_cost` distributes it. keep: to no team. pro_rata: to the teams by their cost of runs. owner:
-- to the team that a line's tag names, else to the one with most of its account's cost of runs. What has no taker stays with no team, so
-- a month and currency sums to its shared cost.
with entry as (
    select billing_month, billing_currency, payer_account_id, account_id, accelerator_family, bucket, coalesce(team, 'no team') as team,
        case when evidence is distinct from 'tag_only' then run_id end as run_id, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_ledger
),

shared as (
    select billing_month, billing_currency, payer_account_id, account_id, accelerator_family, team,
        sum(effective_cost_usd) as effective_cost_usd
    from entry
    where bucket = 'shared'
    group by billing_month, billing_currency, payer_account_id, account_id, accelerator_family, team
),

-- In millionths; a refund may leave less than nothing.
used as (
    select billing_month, billing_currency, team, accelerator_family,
        cast(floor(greatest(sum(effective_cost_usd), 0) * 1000000) as bigint) as units
    from entry
    where bucket = 'run'
    group by billing_month, billing_currency, team, accelerator_family
),

cut as (
    select *,
        sum(units) over (partition by billing_month, billing_currency order by team, accelerator_family
            rows between unbounded preceding and current row) as upper_units,
        sum(units) over (partition by billing_month, billing_currency) as whole_units
    from used
),

monthly as (
    select billing_month, billing_currency, sum(effective_cost_usd) as effective_cost_usd
    from shared
    group by billing_month, billing_currency
),

pro_rata as (
    select cut.billing_month, cut.billing_currency, cut.team, cut.accelerator_family,
        piece_usd(monthly.effective_cost_usd, cut.upper_units - cut.units, cut.upper_units, cut.whole_units) as effective_cost_usd
    from cut
    join monthly on monthly.billing_month = cut.billing_month and monthly.billing_currency = cut.billing_currency
    where cut.whole_units > 0
),

account_team as (
    select billing_month, billing_currency, payer_account_id, account_id, team
    from entry
    where bucket = 'run' and team <> 'no team'
    group by billing_month, billing_currency, payer_account_id, account_id, team
    qualify row_number() over (partition by billing_month, billing_currency, payer_account_id, account_id
        order by sum(effective_cost_usd) desc, team) = 1
),

distributed as (
    select 'pro_rata' as shared_cost_policy, * from pro_rata

    union all

    select 'pro_rata', shared.billing_month, shared.billing_currency, 'no team', shared.accelerator_family, shared.effective_cost_usd
    from shared
    anti join pro_rata on pro_rata.billing_month = shared.billing_month and pro_rata.billing_currency = shared.billing_currency

    union all

    select 'owner', shared.billing_month, shared.billing_currency,
        case when shared.team = 'no team' then coalesce(account_team.team, 'no team') else shared.team end,
        shared.accelerator_family, shared.effective_cost_usd
    from shared
    left join account_team using (billing_month, billing_currency, payer_account_id, account_id)

    union all

    select 'keep', billing_month, billing_currency, 'no team', accelerator_family, effective_cost_usd from shared
),

cost as (
    select billing_month, billing_currency, accelerator_family, bucket, case when bucket = 'shared' then 'no team' else team end as team,
        run_id, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd, 0 as distributed_shared_cost_usd
    from entry

    union all

    select billing_month, billing_currency, accelerator_family, 'distributed', team, null, 0, 0, 0, 0, effective_cost_usd
    from distributed
    join policy on policy.shared_cost = distributed.shared_cost_policy
)

select
    billing_month, team, accelerator_family, billing_currency,
    count(distinct run_id) as run_count,
    sum(accelerator_hours) as accelerator_hours,
    -- Unknown where no run of the team has a cost on the bill, or none is recorded at all; then so is what runs left idle.
    nullif(coalesce(sum(effective_cost_usd) filter (where bucket = 'run'), 0),
        case when recorded.run_count = 0 or bool_or(bucket = 'run' and effective_cost_usd is null) then 0 end) as run_cost_usd,
    coalesce(sum(effective_cost_usd) filter (where bucket = 'serving'), 0) as serving_cost_usd,
    nullif(coalesce(sum(effective_cost_usd) filter (where bucket = 'idle'), 0), case when recorded.run_count = 0 then 0 end)
        as idle_cost_usd,
    coalesce(sum(effective_cost_usd) filter (where bucket = 'shared'), 0) as shared_cost_usd,
    coalesce(sum(effective_cost_usd) filter (where bucket = 'unattributed'), 0) as unattributed_cost_usd,
    coalesce(sum(effective_cost_usd) filter (where bucket in ('capacity_unused', 'commitment_unused')), 0) as unused_cost_usd,
    coalesce(sum(effective_cost_usd) filter (where bucket = 'other'), 0) as other_cost_usd,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd, bool_or(effective_cost_usd is null) as is_cost_partial,
    sum(distributed_shared_cost_usd) as distributed_shared_cost_usd, policy.shared_cost as shared_cost_policy,
    sum(effective_cost_usd) - coalesce(sum(effective_cost_usd) filter (where bucket = 'shared'), 0) + sum(distributed_shared_cost_usd)
        as showback_cost_usd
from cost
cross join policy
cross join (select count(*) as run_count from dim_run) as recorded
group by billing_month, team, accelerator_family, billing_currency, policy.shared_cost, recorded.run_count
