-- One row per day, and per billing month, × payer × currency × commitment: what it cost, what used it, and what that saved.
-- stored: no
with dated as (
    select 'day' as period_grain, usage_date as period_date, * from fct_commitment_daily

    union all

    select 'month', billing_month, * from fct_commitment_daily
),

used as (
    select
        period_grain, period_date, payer_account_id, billing_currency, commitment_discount_id, commitment_kind,
        cast(max(usage_date) + interval '1' day as timestamp) as told_until_at,
        sum(commitment_cost_usd) as commitment_cost_usd,
        sum(used_cost_usd) as used_cost_usd,
        sum(unused_cost_usd) as unused_cost_usd,
        utilization_ratio(used_cost_usd, commitment_cost_usd) as utilization_ratio,
        known_sum(covered_list_cost_usd) as covered_list_cost_usd,
        sum(covered_cost_usd) as covered_cost_usd,
        sum(covered_hours) as covered_hours
    from dated
    group by period_grain, period_date, payer_account_id, billing_currency, commitment_discount_id, commitment_kind
)

select
    used.period_grain, used.period_date, used.payer_account_id, used.billing_currency, used.commitment_discount_id, used.commitment_kind,
    terms.account_id, terms.region_id, terms.instance_family, terms.payment_option, terms.purchase_term, terms.started_at, terms.ended_at,
    used.commitment_cost_usd, used.used_cost_usd, used.unused_cost_usd, used.utilization_ratio,
    used.covered_hours, used.covered_list_cost_usd,
    used.covered_list_cost_usd - used.commitment_cost_usd as net_savings_usd,
    -- One less the discount: used less than this, the commitment costs more than the list price of what it covered.
    ratio(used.covered_cost_usd, used.covered_list_cost_usd) as break_even_utilization_ratio,
    ratio(used.commitment_cost_usd, used.covered_list_cost_usd) as effective_rate_ratio,
    lost_savings_reason(used.commitment_cost_usd, used.used_cost_usd, used.covered_cost_usd, used.covered_list_cost_usd) as lost_savings_reason,
    days_left(used.told_until_at, terms.ended_at) as days_to_expiry,
    coalesce(terms.ended_at <= used.told_until_at, false) as is_expired
from used
left join dim_commitment as terms
    on terms.payer_account_id = used.payer_account_id and terms.billing_currency = used.billing_currency
    and terms.commitment_discount_id = used.commitment_discount_id and terms.commitment_kind = used.commitment_kind
