-- One row per payer, billing month, invoice and currency of a delivered month: the bill before any rule of ours.
-- partition: billing_period
select
    billing_period,
    cast(coalesce(bill_billing_period_start_date, cast(billing_period || '-01' as timestamp)) as date)
        as billing_month,
    bill_payer_account_id as payer_account_id,
    coalesce(bill_invoice_id, '') as invoice_id,
    line_item_currency_code as billing_currency,
    max(source_name) as source_name,
    max(delivery_id) as delivery_id,
    max(bill_invoicing_entity) as invoice_issuer,
    count(*) as line_count,
    coalesce(sum(line_item_unblended_cost), 0) as billed_cost_usd,
    count(*) filter (where line_item_unblended_cost is null) as line_without_cost_count,
    -- Net columns are filled only for a payer with discounts; decided per payer and month (facts 2.3).
    count(line_item_net_unblended_cost) + count(reservation_net_effective_cost)
        + count(savings_plan_net_savings_plan_effective_cost) as net_value_count,
    -- Covered usage and its negation cancel (facts 2.4, identity 3).
    coalesce(sum(line_item_unblended_cost) filter (
        where line_item_line_item_type in ('SavingsPlanCoveredUsage', 'SavingsPlanNegation')
    ), 0) as savings_plan_offset_usd,
    -- Their list cost is not in the bill's currency, so it is not taken (cur_list_cost).
    count(*) filter (where pricing_currency <> line_item_currency_code and pricing_public_on_demand_cost <> 0)
        as line_priced_in_other_currency_count,
    max(line_item_usage_start_date) as newest_usage_at
from aws_cur_line_item
group by all

union all

-- A FOCUS export shows no covered usage at the on-demand price to offset; all its costs are in the billing currency,
-- and those of EffectiveCost after discounts.
select
    billing_period,
    cast(coalesce(billing_period_start, cast(billing_period || '-01' as timestamp)) as date) as billing_month,
    billing_account_id as payer_account_id,
    coalesce(invoice_id, '') as invoice_id,
    billing_currency,
    max(source_name) as source_name,
    max(delivery_id) as delivery_id,
    max(invoice_issuer_name) as invoice_issuer,
    count(*) as line_count,
    coalesce(sum(billed_cost), 0) as billed_cost_usd,
    count(*) filter (where billed_cost is null or effective_cost is null) as line_without_cost_count,
    cast(0 as bigint) as net_value_count,
    cast(0 as decimal(20, 10)) as savings_plan_offset_usd,
    cast(0 as bigint) as line_priced_in_other_currency_count,
    max(charge_period_start) as newest_usage_at
from aws_focus_line_item
group by all
