-- One row per day × payer × currency × commitment: what it cost, what used it, and what that saved.
-- The terms are those of its fees on any bill; where the bill has none, those of AWS's own answer.
with fee as (
    select
        payer_account_id, billing_currency, commitment_discount_id, commitment_kind,
        max(account_id) as account_id,
        max(payment_option) as payment_option,
        max(purchase_term) as purchase_term,
        max(region_id) as region_id,
        max(instance_family) as instance_family,
        max(started_at) as started_at,
        max(ended_at) as ended_at
    from stg_aws__commitment_fee
    group by payer_account_id, billing_currency, commitment_discount_id, commitment_kind
),

terms as (
    select
        fee.payer_account_id, fee.billing_currency, fee.commitment_discount_id, fee.commitment_kind, fee.account_id,
        coalesce(fee.payment_option, answer.payment_option) as payment_option,
        coalesce(fee.purchase_term, answer.purchase_term) as purchase_term,
        coalesce(fee.region_id, answer.region_id) as region_id,
        coalesce(fee.instance_family, answer.instance_family) as instance_family,
        coalesce(fee.started_at, answer.started_at) as started_at,
        coalesce(fee.ended_at, answer.ended_at) as ended_at
    from fee
    left join stg_aws__commitment as answer on answer.commitment_key = commitment_key(fee.commitment_discount_id)
),

day as (
    select *, cast(usage_date + interval '1' day as timestamp) as day_ended_at
    from fct_commitment_daily
)

select
    day.billing_month, day.usage_date, day.payer_account_id, day.billing_currency, day.commitment_discount_id as commitment_id,
    day.commitment_kind, terms.account_id, terms.region_id, terms.instance_family, terms.payment_option, terms.purchase_term,
    terms.started_at, terms.ended_at,
    day.commitment_cost_usd, day.used_cost_usd, day.unused_cost_usd, ratio(day.used_cost_usd, day.commitment_cost_usd) as utilization_ratio,
    day.covered_hours, day.covered_cost_usd, day.covered_list_cost_usd,
    day.covered_list_cost_usd - day.commitment_cost_usd as net_savings_usd,
    -- 1 - discount: used less than this, the commitment costs more than the list price of what it covered.
    ratio(day.covered_cost_usd, day.covered_list_cost_usd) as break_even_utilization_ratio,
    ratio(day.commitment_cost_usd, day.covered_list_cost_usd) as effective_rate_ratio,
    lost_savings_reason(day.commitment_cost_usd, day.used_cost_usd, day.covered_cost_usd, day.covered_list_cost_usd) as lost_savings_reason,
    days_left(day.day_ended_at, terms.ended_at) as days_to_expiry,
    coalesce(terms.ended_at <= day.day_ended_at, false) as is_expired
from day
left join terms
    on terms.payer_account_id = day.payer_account_id and terms.billing_currency = day.billing_currency
    and terms.commitment_discount_id = day.commitment_discount_id and terms.commitment_kind = day.commitment_kind
