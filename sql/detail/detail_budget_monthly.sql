-- One row per team with a budget, billing month and currency: what is spent of it, and which threshold that reached.
-- Nothing is forecast: fees, credits and the days a bill is behind make a straight line of the days so far wrong.
-- A team without a line spent nothing, where a bill of the month is in the currency of its budget.
-- A threshold that the known part of a cost has reached is reached whatever the rest comes to; all else of it is then unknown.
with seen as (
    select billing_month, billing_currency,
        max(case when charge_category = 'Usage' then extract(day from usage_date) end) as seen_day_count
    from fct_ledger
    where cast(date_trunc('month', usage_date) as date) = billing_month
    group by billing_month, billing_currency
),

billed as (
    select billing_month, billing_currency, bool_or(is_open_month) as is_open_month
    from fct_bill_total_monthly
    group by billing_month, billing_currency
),

spent as (
    select team, billing_month, billing_currency, known_part(showback_cost_usd) as spent_cost_usd, bool_or(is_cost_partial) as is_cost_partial
    from mart_team_cost_monthly
    group by team, billing_month, billing_currency
),

threshold as (
    select month.billing_month, billed.is_open_month,
        budget.team, budget.billing_currency, budget.budget_usd, budget.threshold_ratio, budget.threshold_usd
    from declared_budget as budget
    cross join (select distinct billing_month from billed) as month
    left join billed on billed.billing_month = month.billing_month and billed.billing_currency = budget.billing_currency
    where month.billing_month between budget.first_month_date and budget.last_month_date
),

compared as (
    select threshold.*,
        case when threshold.is_open_month is not null and spent.team is null then 0
            else spent.spent_cost_usd end as spent_cost_usd,
        coalesce(spent.is_cost_partial, false) as is_cost_partial
    from threshold
    left join spent using (team, billing_month, billing_currency)
),

budget as (
    select billing_month, team, billing_currency, budget_usd, spent_cost_usd, is_cost_partial, is_open_month,
        case when not is_cost_partial then spent_cost_usd end as whole_cost_usd,
        max(threshold_ratio) filter (where spent_cost_usd >= threshold_usd) as passed_threshold_ratio,
        min(threshold_ratio) filter (where spent_cost_usd < threshold_usd and not is_cost_partial) as next_threshold_ratio
    from compared
    group by billing_month, team, billing_currency, budget_usd, spent_cost_usd, is_cost_partial, is_open_month
)

select
    budget.billing_month, budget.team, budget.billing_currency, budget.budget_usd, budget.spent_cost_usd, budget.is_cost_partial,
    budget.budget_usd - budget.whole_cost_usd as remaining_cost_usd,
    ratio(budget.whole_cost_usd, budget.budget_usd) as budget_spent_ratio,
    budget.passed_threshold_ratio, budget.next_threshold_ratio, budget.is_open_month,
    seen.seen_day_count,
    extract(day from budget.billing_month + interval '1' month - interval '1' day) as month_day_count
from budget
left join seen on seen.billing_month = budget.billing_month and seen.billing_currency = budget.billing_currency
