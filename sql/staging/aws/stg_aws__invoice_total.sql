-- One row per payer, billing month, invoice, line of it and contract (FOCUS 1.3 on), entity, issuer, currency, charge
-- type and source of a delivered month: the bill before any rule of ours.
-- partition: billing_period
with total as (
    select
        billing_period,
        billing_month_of(bill_billing_period_start_date, billing_period) as billing_month,
        bill_payer_account_id as payer_account_id,
        coalesce(bill_invoice_id, '') as invoice_id,
        coalesce(bill_billing_entity, '') as billing_entity,
        coalesce(bill_invoicing_entity, '') as invoice_issuer,
        billing_currency,
        coalesce(line_item_line_item_type, '') as charge_type,
        source_name,
        delivery_id,
        sum(line_count) as line_count,
        sum(charged_line_count) as charged_line_count,
        sum(line_without_cost_count) as line_without_cost_count,
        sum(line_priced_in_other_currency_count) as line_priced_in_other_currency_count,
        sum(billed_cost_usd) as billed_cost_usd,
        sum(net_billed_cost_usd) as net_billed_cost_usd,
        sum(in_line_discount_usd) as in_line_discount_usd,
        sum(amortized_upfront_usd) as amortized_upfront_usd,
        sum(net_value_count) as net_value_count,
        sum(commitment_value_count) as commitment_value_count,
        max(newest_usage_at) as newest_usage_at,
        max(usage_until_at) as usage_until_at
    from stg_aws__cur_combination
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
)

select
    total.billing_period, total.billing_month, total.payer_account_id, total.invoice_id,
    '' as invoice_detail_id, '' as contract_id, total.billing_entity,
    total.invoice_issuer, total.billing_currency, total.charge_type,
    cur_effective_rule(rule.effective_rule, total.charge_type) as effective_rule,
    -- As an invoice groups it: covered usage and its negation cancel.
    case when rule.effective_rule = 'zero' then 'Usage' else focus_charge_category(total.charge_type,
        cur_effective_rule(rule.effective_rule, total.charge_type), null, null) end as charge_category,
    total.source_name, total.delivery_id, total.line_count, total.charged_line_count, total.line_without_cost_count,
    total.billed_cost_usd, total.net_billed_cost_usd, total.in_line_discount_usd,
    -- Only the fee lines of commitments show what of an upfront fee falls on the month (facts 2.4, identity 1).
    case when rule.effective_rule in ('savings_plan_unused', 'reservation_unused')
        then total.amortized_upfront_usd else 0 end as amortized_upfront_usd,
    -- Covered usage and its negation cancel (facts 2.4, identity 3).
    case when rule.effective_rule in ('savings_plan', 'zero') then total.billed_cost_usd else 0 end
        as savings_plan_offset_usd,
    total.line_priced_in_other_currency_count, total.net_value_count, total.commitment_value_count,
    -- Fees lie in the future too (facts 2.4): only use shows how far the bill is.
    case when rule.charge_category = 'Usage' and rule.effective_rule <> 'zero' then total.newest_usage_at end
        as newest_usage_at,
    case when rule.charge_category = 'Usage' and rule.effective_rule <> 'zero' then total.usage_until_at end
        as usage_until_at,
    false as is_net_only
from total
left join ref_line_item_type as rule on rule.line_item_type = total.charge_type

union all

-- A FOCUS export has no covered usage at the on-demand price to offset, and no net columns: its costs are net.
select
    billing_period,
    billing_month_of(billing_period_start, billing_period) as billing_month,
    billing_account_id as payer_account_id,
    coalesce(invoice_id, '') as invoice_id,
    coalesce(invoice_detail_id, '') as invoice_detail_id,
    focus_contract_id(contract_applied) as contract_id,
    focus_billing_entity(line) as billing_entity,
    coalesce(invoice_issuer_name, '') as invoice_issuer,
    billing_currency,
    coalesce(charge_category, '') as charge_type,
    case when not focus_is_commitment(line) then 'as_billed'
        when charge_category = 'Purchase' and charge_frequency is distinct from 'Recurring' then 'upfront_fee'
        else 'savings_plan_unused' end as effective_rule,
    coalesce(charge_category, '') as charge_category,
    source_name,
    delivery_id,
    count(*) as line_count,
    count(nullif(billed_cost, 0)) as charged_line_count,
    count(*) filter (where billed_cost is null or effective_cost is null) as line_without_cost_count,
    coalesce(sum(billed_cost), 0) as billed_cost_usd,
    coalesce(sum(billed_cost), 0) as net_billed_cost_usd,
    cast(0 as decimal(20, 10)) as in_line_discount_usd,
    -- What commitments cost over their hours beyond their fees is the month's part of what was paid upfront.
    coalesce(sum(case when focus_is_commitment(line) then coalesce(x_amortized_cost, effective_cost)
        - case when charge_category = 'Purchase' and charge_frequency = 'Recurring' then billed_cost else 0 end end), 0)
        as amortized_upfront_usd,
    cast(0 as decimal(20, 10)) as savings_plan_offset_usd,
    cast(0 as bigint) as line_priced_in_other_currency_count,
    cast(0 as bigint) as net_value_count,
    cast(0 as bigint) as commitment_value_count,
    max(charge_period_start) filter (where focus_is_use(line)) as newest_usage_at,
    max(charge_period_end) filter (
        where focus_is_use(line) and date_diff('hour', charge_period_start, charge_period_end) <= 24) as usage_until_at,
    -- A discount other than 0 in the map of a line is inside its costs.
    coalesce(max(x_amortized_cost is null and regexp_matches(x_discounts, ': *-?[0-9.]*[1-9]')), false) as is_net_only
from aws_focus_line_item as line
group by all
