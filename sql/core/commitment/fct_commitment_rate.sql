-- One row per payer × currency × kind of commitment × term × payment option × region × instance type: its price over the list price.
-- What the payer's own commitments charged in their last 28 days on the bill; else what the configuration declares, else the reviewed list.
with told as (
    select payer_account_id, billing_currency, max(usage_date) as newest_date
    from fct_commitment_use_hourly
    group by payer_account_id, billing_currency
),

seen as (
    select
        use.payer_account_id, use.billing_currency, use.covering_kind as commitment_kind,
        coalesce(terms.purchase_term, '') as purchase_term, coalesce(terms.payment_option, '') as payment_option,
        use.region_id, coalesce(use.instance_type, use.commitment_eligibility) as usage_type_key,
        ratio(sum(use.amortised_cost_usd), sum(use.list_cost_usd)) as paid_ratio
    from fct_commitment_use_hourly as use
    join told on told.payer_account_id = use.payer_account_id and told.billing_currency = use.billing_currency
    left join dim_commitment as terms
        on terms.payer_account_id = use.payer_account_id and terms.billing_currency = use.billing_currency
        and terms.commitment_discount_id = use.commitment_discount_id and terms.commitment_kind = use.covering_kind
    where use.covering_kind is not null and use.list_cost_usd > 0 and use.amortised_cost_usd > 0
        and use.usage_date > told.newest_date - interval '28' day
    group by use.payer_account_id, use.billing_currency, use.covering_kind, coalesce(terms.purchase_term, ''),
        coalesce(terms.payment_option, ''), use.region_id, coalesce(use.instance_type, use.commitment_eligibility)
),

declared as (
    select told.payer_account_id, told.billing_currency, rate.commitment_kind, rate.purchase_term, rate.payment_option,
        rate.region_id, rate.usage_type_key, cast(rate.paid_ratio as decimal(38, 6)) as paid_ratio
    from declared_commitment_rate as rate
    cross join told
),

listed as (
    select told.payer_account_id, told.billing_currency, rate.commitment_kind, rate.purchase_term, rate.payment_option,
        '' as region_id, rate.usage_type_key, cast(rate.paid_ratio as decimal(38, 6)) as paid_ratio
    from ref_commitment_rate as rate
    cross join told
)

select payer_account_id, billing_currency, commitment_kind, purchase_term, payment_option, region_id, usage_type_key, paid_ratio,
    'own bill' as rate_basis
from seen

union all

select payer_account_id, billing_currency, commitment_kind, purchase_term, payment_option, region_id, usage_type_key, paid_ratio,
    'declared' as rate_basis
from declared

union all

select payer_account_id, billing_currency, commitment_kind, purchase_term, payment_option, region_id, usage_type_key, paid_ratio,
    'reviewed list' as rate_basis
from listed
