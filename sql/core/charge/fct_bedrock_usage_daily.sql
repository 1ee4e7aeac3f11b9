-- One row per day × payer × account × region × Bedrock usage type × currency: tokens of one kind and what they cost.
-- partition: billing_period
-- Cached tokens are kinds of their own; leaving them out is the commonest gap to the bill (facts aws-billing 4.6).
select
    billing_period, billing_month, usage_date, payer_account_id, account_id, region_id, billing_currency, service,
    token_usage_type as usage_type,
    token_kind(token_usage_type) as token_kind,
    cast(sum(line_count) as bigint) as line_count,
    sum(million_tokens) as million_tokens,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from fct_charge
where token_usage_type is not null and charge_category = 'Usage'
group by billing_period, billing_month, usage_date, payer_account_id, account_id, region_id, billing_currency, service,
    token_usage_type, token_kind
