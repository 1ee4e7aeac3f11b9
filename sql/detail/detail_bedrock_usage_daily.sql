-- One row per day, payer, account, region, month, currency, bucket, Bedrock meter, caller, profile and team: tokens,
-- price and costs.
-- A meter is what a usage type bills of which model in which unit. The bill has no row per request.
select
    charge.usage_date, charge.payer_account_id, charge.account_id, charge.region_id, charge.billing_month,
    charge.billing_currency, charge.bucket, meter.model, meter.token_kind, meter.billed_by, meter.tier, meter.route,
    meter.context, charge.service, meter.product_name, meter.usage_type, meter.billed_unit, charge.bedrock_meter_id,
    charge.iam_principal, charge.resource_id as inference_profile_id, charge.tag_team as team,
    sum(charge.metered_quantity) as billed_quantity,
    known_sum(charge.million_tokens) as million_tokens,
    nullif(case when meter.billed_by in ('tokens', 'images')
        then ratio(sum(charge.effective_cost_usd), known_sum(charge.million_tokens))
        else ratio(sum(charge.effective_cost_usd), sum(charge.metered_quantity)) end, 0) as unit_price_usd,
    known_sum(charge.list_cost_usd) as list_cost_usd,
    sum(charge.effective_cost_usd) as effective_cost_usd,
    sum(charge.billed_cost_usd) as billed_cost_usd
from fct_charge as charge
join stg_aws__bedrock_meter as meter
    on meter.billing_period = charge.billing_period and meter.bedrock_meter_id = charge.bedrock_meter_id
where charge.charge_category in ('Usage', 'Purchase')
group by charge.usage_date, charge.payer_account_id, charge.account_id, charge.region_id, charge.billing_month,
    charge.billing_currency, charge.bucket, meter.model, meter.token_kind, meter.billed_by, meter.tier, meter.route,
    meter.context, charge.service, meter.product_name, meter.usage_type, meter.billed_unit, charge.bedrock_meter_id,
    charge.iam_principal, charge.resource_id, charge.tag_team
