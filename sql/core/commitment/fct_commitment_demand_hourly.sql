-- One row per payer × currency × hour × region × usage: what ran at list price that commitments could cover and nothing did.
-- With the hours from and to which the payer's bills tell of any such usage, covered or not: between them nothing is nothing.
with told as (
    select payer_account_id, billing_currency, min(hour_started_at) as told_from_at, max(hour_started_at) as told_until_at
    from fct_commitment_use_hourly
    group by payer_account_id, billing_currency
)

select
    use.payer_account_id, use.billing_currency, use.hour_started_at, use.region_id, use.commitment_eligibility, use.accelerator_family,
    coalesce(use.instance_type, use.commitment_eligibility) as usage_type_key,
    told.told_from_at, told.told_until_at,
    sum(use.list_cost_usd) as list_cost_usd
from fct_commitment_use_hourly as use
join told on told.payer_account_id = use.payer_account_id and told.billing_currency = use.billing_currency
where use.covering_kind is null and use.list_cost_usd > 0
group by use.payer_account_id, use.billing_currency, use.hour_started_at, use.region_id, use.commitment_eligibility, use.accelerator_family,
    coalesce(use.instance_type, use.commitment_eligibility), told.told_from_at, told.told_until_at
