-- One row per team, or per account and accelerator family whose machines idled, day of use and currency: its effective cost.
-- stored: no
with team_day as (
    select 'team_day' as watched_kind, team as subject,
        usage_date, billing_currency, effective_cost_usd
    from fct_ledger
    where bucket <> 'shared' and charge_category = 'Usage'
),

idle_day as (
    select 'idle_day' as watched_kind, 'account ' || account_id || ', ' || accelerator_family as subject,
        usage_date, billing_currency, effective_cost_usd
    from fct_ledger
    where bucket = 'idle'
),

watched as (
    select * from team_day where subject is not null
    union all
    select * from idle_day
)

select watched_kind, subject, usage_date, billing_currency, sum(effective_cost_usd) as effective_cost_usd
from watched
group by watched_kind, subject, usage_date, billing_currency
