-- One row per commitment in force at the end of what its payer's bills tell: what it costs an hour, and when it ends.
with newest as (
    select payer_account_id, billing_currency, max(usage_date) as newest_date
    from fct_commitment_daily
    group by payer_account_id, billing_currency
)

select
    daily.payer_account_id, daily.billing_currency, daily.commitment_kind, daily.commitment_discount_id, max(terms.ended_at) as ended_at,
    projected_usd(sum(daily.commitment_cost_usd), 24, 1) as commitment_per_hour_usd
from fct_commitment_daily as daily
join newest
    on newest.payer_account_id = daily.payer_account_id and newest.billing_currency = daily.billing_currency
    and newest.newest_date = daily.usage_date
left join dim_commitment as terms
    on terms.payer_account_id = daily.payer_account_id and terms.billing_currency = daily.billing_currency
    and terms.commitment_discount_id = daily.commitment_discount_id and terms.commitment_kind = daily.commitment_kind
where daily.commitment_cost_usd > 0 and coalesce(terms.ended_at > cast(newest.newest_date + interval '1' day as timestamp), true)
group by daily.payer_account_id, daily.billing_currency, daily.commitment_kind, daily.commitment_discount_id
