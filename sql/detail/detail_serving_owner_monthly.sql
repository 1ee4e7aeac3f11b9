-- One row per billing month, currency, payer, account, service, caller, owner and team of what serves models: its cost, and how its owner
-- is known.
with charge as (
    select
        charge.billing_month, charge.billing_currency, charge.payer_account_id, charge.account_id, charge.service,
        charge.iam_principal, coalesce(charge.tag_owner, caller_name(charge.iam_principal)) as owner,
        coalesce(team_name(charge.tag_team, policy.team_spelling), team_name(account.team, policy.team_spelling)) as team,
        case
            when charge.tag_owner is not null or charge.tag_team is not null then 'tag'
            when charge.iam_principal is not null then 'caller'
            when account.team is not null then 'account'
        end as owner_evidence,
        charge.effective_cost_usd, charge.billed_cost_usd
    from fct_charge as charge
    cross join policy
    left join declared_account_team as account
        on account.account_id = charge.account_id and charge.usage_date between account.first_date and account.last_date
    where charge.bucket = 'serving'
)

select
    billing_month, billing_currency, payer_account_id, account_id, service, iam_principal, owner, team, owner_evidence,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd,
    ratio(sum(sum(case when owner_evidence is not null then effective_cost_usd else 0 end)) over of_month,
        sum(sum(effective_cost_usd)) over of_month) as month_owned_ratio
from charge
group by billing_month, billing_currency, payer_account_id, account_id, service, iam_principal, owner, team, owner_evidence
window of_month as (partition by billing_month, billing_currency)
