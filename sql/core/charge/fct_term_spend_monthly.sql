-- One row per agreement or pool of credits × month with a bill, in the currency of the term: the spend that counts toward it.
-- No export has the rules, so the configuration declares them: services, payers, Marketplace, credits, cost basis. Tax and other
-- providers than AWS never count.
-- Spend is null where the bill of a payer is missing and, on the effective basis, where a bill has no cost of some of it.
with term as (
    select 'agreement' as term_kind, agreement_name as term_name, billing_currency, cost_basis, credit_rule, is_marketplace_counted
    from declared_agreement

    union all

    select 'credits', pool_name, billing_currency, 'billed', 'before', false
    from declared_credit_pool
),

spent as (
    select billing_month, payer_account_id, billing_currency, service, charge_category,
        coalesce(billing_entity, '') not in ('', 'AWS') as is_marketplace, bucket = 'run' as is_training,
        sum(billed_cost_usd) as billed_cost_usd, known_sum(effective_cost_usd) as effective_cost_usd
    from fct_ledger
    where charge_category <> 'Tax' and not is_other_provider(billing_entity)
    group by all
),

-- A bill of another provider alone keeps no month open.
month as (
    select total.billing_month, total.billing_currency,
        bool_or(total.is_open) and total.billing_month = max(total.billing_month) over () as is_open_month
    from fct_bill_total_monthly as total
    semi join spent on spent.billing_month = total.billing_month and spent.billing_currency = total.billing_currency
        and spent.payer_account_id = total.payer_account_id
    group by total.billing_month, total.billing_currency
),

-- A term without payers counts every payer, and waits for each from its first month to its last.
payer as (
    select term_kind, term_name, payer_account_id, cast(null as date) as first_month, cast(null as date) as last_month
    from declared_term_payer
    where payer_account_id is not null

    union all

    select every.term_kind, every.term_name, spent.payer_account_id, min(spent.billing_month), max(spent.billing_month)
    from declared_term_payer as every
    join term on term.term_kind = every.term_kind and term.term_name = every.term_name
    join spent on spent.billing_currency = term.billing_currency
    where every.payer_account_id is null
    group by every.term_kind, every.term_name, spent.payer_account_id
),

-- One payer is enough to find the others.
undelivered as (
    select payer.term_kind, payer.term_name, month.billing_month, month.billing_currency, count(*) as payer_count,
        min(payer.payer_account_id) as payer_account_id
    from payer
    join month
        on month.billing_month between coalesce(payer.first_month, month.billing_month)
        and coalesce(payer.last_month, month.billing_month)
    anti join fct_bill_total_monthly as delivered
        on delivered.payer_account_id = payer.payer_account_id and delivered.billing_month = month.billing_month
        and delivered.billing_currency = month.billing_currency
    group by payer.term_kind, payer.term_name, month.billing_month, month.billing_currency
),

-- Whether services that the term does not list count.
unnamed as (
    select term_kind, term_name, is_eligible
    from declared_term_service
    where service is null
),

-- A misspelled service would count nothing without a message; one name is enough to find it.
unbilled as (
    select listed.term_kind, listed.term_name, min(listed.service) as unbilled_service
    from declared_term_service as listed
    left join (select distinct service from spent) as billed on billed.service = listed.service
    where listed.service is not null and billed.service is null
    group by listed.term_kind, listed.term_name
),

counted as (
    select
        term.term_kind, term.term_name, spent.billing_currency, spent.billing_month, spent.is_training,
        case when spent.charge_category = 'Credit' then case when term.credit_rule = 'after' then spent.billed_cost_usd else 0 end
            when term.cost_basis = 'effective' then spent.effective_cost_usd
            else spent.billed_cost_usd end as eligible_cost_usd
    from spent
    join term on term.billing_currency = spent.billing_currency
    join payer
        on payer.term_kind = term.term_kind and payer.term_name = term.term_name and payer.payer_account_id = spent.payer_account_id
    left join declared_term_service as listed
        on listed.term_kind = term.term_kind and listed.term_name = term.term_name and listed.service = spent.service
    join unnamed on unnamed.term_kind = term.term_kind and unnamed.term_name = term.term_name
    where coalesce(listed.is_eligible, unnamed.is_eligible) and (term.is_marketplace_counted or not spent.is_marketplace)
),

summed as (
    select term_kind, term_name, billing_currency, billing_month, true as is_spent,
        known_sum(eligible_cost_usd) as eligible_cost_usd,
        known_sum(case when is_training then eligible_cost_usd else 0 end) as training_cost_usd
    from counted
    group by term_kind, term_name, billing_currency, billing_month
)

select
    term.term_kind, term.term_name, term.billing_currency, month.billing_month, month.is_open_month,
    case when undelivered.payer_count > 0 then null when summed.is_spent then summed.eligible_cost_usd else 0 end
        as eligible_cost_usd,
    case when undelivered.payer_count > 0 then null when summed.is_spent then summed.training_cost_usd else 0 end
        as training_cost_usd,
    coalesce(undelivered.payer_count, 0) as undelivered_payer_count,
    undelivered.payer_account_id as undelivered_payer_account_id, unbilled.unbilled_service
from term
join month on month.billing_currency = term.billing_currency
left join summed
    on summed.term_kind = term.term_kind and summed.term_name = term.term_name and summed.billing_month = month.billing_month
left join undelivered
    on undelivered.term_kind = term.term_kind and undelivered.term_name = term.term_name
    and undelivered.billing_month = month.billing_month and undelivered.billing_currency = month.billing_currency
left join unbilled on unbilled.term_kind = term.term_kind and unbilled.term_name = term.term_name
