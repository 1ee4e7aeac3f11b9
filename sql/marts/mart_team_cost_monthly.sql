-- One row per team, billing month, accelerator family and currency: what it used, left idle and shares in (showback).
-- A run is its declared team's; else the team is the one the line's tag named on its own day, so a move splits a month. Shared cost
-- belongs to the team that its line's tag names, else to no team, and `[policy] shared_cost` distributes that. keep: to no team.
-- pro_rata: to the teams by their cost of runs. owner: to the line's team, else to the one with most of its account's cost of runs. What
-- has no taker, or whose parts an unknown cost of runs leaves open, stays with no team, so a month and currency sums to its shared cost.
with entry as (
    select billing_month, billing_currency, payer_account_id, account_id, accelerator_family, bucket, coalesce(team, 'no team') as team,
        case when bucket <> 'shared' or team_evidence = 'tag' then coalesce(team, 'no team') else 'no team' end as own_team,
        case when evidence is distinct from 'tag_only' then run_id end as run_id, accelerator_hours, list_cost_usd, billed_cost_usd,
        -- As mart_cost_ledger_daily has it.
        case when bucket = 'commitment_unused' and unallocated_fee_usd > 0 then nullif(effective_cost_usd, 0)
            else effective_cost_usd end as effective_cost_usd
    from fct_ledger
    left join (select billing_month, payer_account_id, currency as billing_currency, unallocated_fee_usd from detail_billing_month) as fee
        using (billing_month, payer_account_id, billing_currency)
),

-- Unknown cost in rows of its own.
shared as (
    select billing_month, billing_currency, payer_account_id, account_id, accelerator_family, team, own_team,
        sum(effective_cost_usd) as effective_cost_usd
    from entry where bucket = 'shared'
    group by billing_month, billing_currency, payer_account_id, account_id, accelerator_family, team, own_team, effective_cost_usd is null
),

-- In millionths; a refund may leave less than nothing.
used as (
    select billing_month, billing_currency, team, accelerator_family, known_sum(effective_cost_usd) is null as is_unknown,
        cast(floor(greatest(sum(effective_cost_usd), 0) * 1000000) as bigint) as units
    from entry where bucket = 'run'
    group by billing_month, billing_currency, team, accelerator_family
),

cut as (
    select *, bool_or(is_unknown) over month as is_open, sum(units) over month as whole_units,
        sum(units) over (partition by billing_month, billing_currency order by team, accelerator_family
            rows between unbounded preceding and current row) as upper_units
    from used
    window month as (partition by billing_month, billing_currency)
),

monthly as (
    select billing_month, billing_currency, known_sum(effective_cost_usd) as cost_usd
    from shared where own_team = 'no team' group by billing_month, billing_currency
),

pro_rata as (
    select billing_month, billing_currency, team, accelerator_family,
        case when not is_open then piece_usd(cost_usd, upper_units - units, upper_units, whole_units) end as effective_cost_usd
    from cut join monthly using (billing_month, billing_currency)
    where whole_units > 0 or is_open
),

account_team as (
    select *, row_number() over (partition by billing_month, billing_currency, payer_account_id, account_id order by cost_usd desc, team) as team_no,
        count(*) over account > 1 and count(known_cost_usd) over account < count(*) over account as is_open
    from (
        select billing_month, billing_currency, payer_account_id, account_id, team, sum(effective_cost_usd) as cost_usd, known_sum(effective_cost_usd) as known_cost_usd
        from entry where bucket = 'run' and team <> 'no team'
        group by billing_month, billing_currency, payer_account_id, account_id, team) as team_cost
    window account as (partition by billing_month, billing_currency, payer_account_id, account_id)
),

distributed as (
    select 'pro_rata' as shared_cost_policy, * from pro_rata

    union all

    select 'pro_rata', shared.billing_month, shared.billing_currency, shared.own_team, shared.accelerator_family, shared.effective_cost_usd
    from shared
    anti join pro_rata on pro_rata.billing_month = case when shared.own_team = 'no team' then shared.billing_month end
        and pro_rata.billing_currency = shared.billing_currency and pro_rata.effective_cost_usd is not null

    union all

    select 'owner', billing_month, billing_currency, case when shared.team = 'no team' then coalesce(owner.team, 'no team') else shared.team end,
        shared.accelerator_family, shared.effective_cost_usd
    from shared
    left join (select * from account_team where team_no = 1 and not is_open) as owner using (billing_month, billing_currency, payer_account_id, account_id)

    union all

    select 'owner', billing_month, billing_currency, account_team.team, shared.accelerator_family, null
    from shared join account_team using (billing_month, billing_currency, payer_account_id, account_id)
    where account_team.is_open and shared.team = 'no team'

    union all

    select 'keep', billing_month, billing_currency, own_team, accelerator_family, effective_cost_usd from shared
),

cost as (
    select billing_month, billing_currency, accelerator_family, bucket, own_team as team,
        run_id, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd, 0 as distributed_shared_cost_usd
    from entry

    union all

    select billing_month, billing_currency, accelerator_family, 'distributed', team, null, 0, 0, 0, 0, effective_cost_usd
    from distributed join policy on policy.shared_cost = distributed.shared_cost_policy
)

select
    billing_month, team, accelerator_family, billing_currency, count(distinct run_id) as run_count, sum(accelerator_hours) as accelerator_hours,
    -- What runs used and left idle is unknown while no recorded run is on the bill.
    nullif(known_part(case when bucket = 'run' then effective_cost_usd else 0 end), unrecorded.cost_usd) as run_cost_usd,
    known_part(case when bucket = 'serving' then effective_cost_usd else 0 end) as serving_cost_usd,
    nullif(known_part(case when bucket = 'idle' then effective_cost_usd else 0 end), unrecorded.cost_usd) as idle_cost_usd,
    known_part(case when bucket = 'shared' then effective_cost_usd else 0 end) as shared_cost_usd,
    known_part(case when bucket = 'unattributed' then effective_cost_usd else 0 end) as unattributed_cost_usd,
    known_part(case when bucket in ('capacity_unused', 'commitment_unused') then effective_cost_usd else 0 end) as unused_cost_usd,
    known_part(case when bucket = 'other' then effective_cost_usd else 0 end) as other_cost_usd,
    known_sum(list_cost_usd) as list_cost_usd, known_part(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd, known_sum(effective_cost_usd + distributed_shared_cost_usd) is null as is_cost_partial,
    known_part(distributed_shared_cost_usd) as distributed_shared_cost_usd, policy.shared_cost as shared_cost_policy,
    known_part(case when bucket = 'shared' then 0 else effective_cost_usd end + distributed_shared_cost_usd) as showback_cost_usd
from cost
cross join policy
cross join (select case when count(*) = 0 then 0 end as cost_usd from dim_run where run_id in (select run_id from entry)) as unrecorded
group by billing_month, team, accelerator_family, billing_currency, policy.shared_cost, unrecorded.cost_usd
