-- One row per billing month, currency, payer, account, service, caller, owner and team of what serves models and of services for AI: its
-- cost, and how its owner is known.
with piece as (
    select
        ledger.billing_month, ledger.billing_currency, ledger.payer_account_id, ledger.account_id, ledger.service,
        ledger.iam_principal, coalesce(ledger.tag_owner, run.owner, caller_name(ledger.iam_principal)) as owner, ledger.team,
        case
            when ledger.team_evidence <> 'account' then ledger.team_evidence
            when ledger.tag_owner is not null then 'tag'
            when run.owner is not null then 'run'
            when ledger.iam_principal is not null then 'caller'
            else ledger.team_evidence
        end as owner_evidence,
        ledger.effective_cost_usd, ledger.billed_cost_usd
    from fct_ledger as ledger
    left join dim_run as run on run.run_id = ledger.run_id
    left join (select service, service_category from ref_service) as listed on listed.service = ledger.service
    where ledger.bucket = 'serving'
        or (listed.service_category = 'AI and Machine Learning' and ledger.charge_category = 'Usage')
)

select
    billing_month, billing_currency, payer_account_id, account_id, service, iam_principal, owner, team, owner_evidence,
    known_sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd,
    case when sum(count(*) - count(effective_cost_usd)) over of_month = 0
        then ratio(sum(sum(case when owner_evidence is not null then effective_cost_usd else 0 end)) over of_month,
            sum(sum(effective_cost_usd)) over of_month) end as month_owned_ratio
from piece
group by billing_month, billing_currency, payer_account_id, account_id, service, iam_principal, owner, team, owner_evidence
window of_month as (partition by billing_month, billing_currency)
