-- One row per day, payer, account, region, month, currency, bucket, Bedrock meter, caller, profile and team: tokens,
-- price and costs.
-- A meter is what a usage type bills of which model in which unit. The bill has no row per request. Hours of Provisioned
-- Throughput without a call are idle, between the first and the last call that a log or a metric has of its region. What
-- the bill has no cost of is in rows of its own.
with called as (
    select distinct account_id, region_id, resource_id, cast(date_trunc('hour', started_at) as timestamp) as hour_started_at
    from stg_serving__traffic
    where server_id is null and resource_id is not null
),

observed as (
    select account_id, region_id, min(started_at) as first_called_at, max(ended_at) as last_called_at
    from stg_serving__traffic
    -- A call of a month that is not on the bill has a wrong clock, or a log that is older.
    where server_id is null and cast(date_trunc('month', started_at) as date) in (select billing_month from fct_charge)
    group by account_id, region_id
)

select
    charge.usage_date, charge.payer_account_id, charge.account_id, charge.region_id, charge.billing_month,
    charge.billing_currency, charge.bucket, meter.model, meter.token_kind, meter.billed_by, meter.tier, meter.route,
    meter.context, charge.service, meter.product_name, meter.usage_type, meter.billed_unit, charge.bedrock_meter_id,
    charge.iam_principal, charge.resource_id as inference_profile_id, coalesce(charge.tag_team, role.team) as team,
    sum(charge.metered_quantity) as billed_quantity,
    known_sum(charge.metered_quantity * meter.million_tokens_per_unit) as million_tokens,
    nullif(case when meter.billed_by in ('tokens', 'images')
        then usd_per(sum(charge.effective_cost_usd), known_sum(charge.metered_quantity * meter.million_tokens_per_unit))
        else usd_per(sum(charge.effective_cost_usd), sum(charge.metered_quantity)) end, 0) as unit_price_usd,
    known_sum(case when meter.billed_by in ('tokens', 'images', 'active_capacity') then 0
        when meter.billed_by = 'storage' then charge.effective_cost_usd
        when meter.token_kind = 'model_unit' and observed.account_id is not null and charge.resource_id is not null
            then case when called.resource_id is null then charge.effective_cost_usd else 0 end end) as idle_cost_usd,
    known_sum(charge.list_cost_usd) as list_cost_usd,
    sum(charge.effective_cost_usd) as effective_cost_usd,
    sum(charge.billed_cost_usd) as billed_cost_usd
from fct_charge as charge
join stg_aws__bedrock_meter as meter using (billing_period, bedrock_meter_id)
left join observed on observed.account_id = charge.account_id and observed.region_id = charge.region_id
    and charge.usage_started_at >= observed.first_called_at and charge.usage_started_at < observed.last_called_at
left join called on called.account_id = charge.account_id and called.region_id = charge.region_id
    and called.resource_id = regexp_extract(charge.resource_id, '([^/]+)$', 1)
    and called.hour_started_at = date_trunc('hour', charge.usage_started_at)
left join declared_team as role on role.holder = role_name(charge.iam_principal)
where charge.charge_category in ('Usage', 'Purchase')
group by charge.usage_date, charge.payer_account_id, charge.account_id, charge.region_id, charge.billing_month,
    charge.billing_currency, charge.bucket, meter.model, meter.token_kind, meter.billed_by, meter.tier, meter.route,
    meter.context, charge.service, meter.product_name, meter.usage_type, meter.billed_unit, charge.bedrock_meter_id,
    charge.iam_principal, charge.resource_id, coalesce(charge.tag_team, role.team), charge.is_cost_unknown
