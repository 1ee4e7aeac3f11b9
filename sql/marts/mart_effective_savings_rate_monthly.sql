-- One row per payer × billing month × currency × scope: the effective savings rate, its parts, and the reason where it
-- is negative.
-- partition: billing_period
-- Each scope contains the one before: classic is EC2, Fargate and Lambda under plans and reservations, before discounts
-- and without Spot (facts aws-billing 3.1). Usage without a public price is in no rate but in `unpriced_cost_usd`, as
-- are fees of Capacity Blocks. Fees of commitments for hours to come are cut off. There is no rate while the bill does
-- not show what used some fees, a fee of what covered some use, or what use under a commitment costs or lists at.
with month as (
    select invoice.billing_month, invoice.payer_account_id, invoice.billing_currency,
        greatest(sum(case when invoice_id <> '' then commitment_timing_usd else 0 end), max(fee.unallocated_fee_usd))
            as unallocated_fee_usd, max(invoice.is_net_only) as is_net_only
    from fct_invoice_monthly as invoice
    left join fct_unallocated_fee_monthly as fee using (billing_month, payer_account_id, billing_currency)
    group by invoice.billing_month, invoice.payer_account_id, invoice.billing_currency
),

charge as (
    select
        billing_period, billing_month, payer_account_id, billing_currency, false as is_unused,
        effective_rule in ('savings_plan', 'reservation') as is_covered,
        savings_scope_width(effective_rule, service, commitment_eligibility) as width, list_cost_usd,
        amortized_cost_usd, effective_cost_usd
    from fct_charge
    where (commitment_eligibility is not null or line_class = 'block_fee')
        and effective_rule not in ('savings_plan_unused', 'reservation_unused')

    union all

    -- Discounts that are lines of their own, where no cost of the usage has them, come off all usage (facts aws-billing 3.1).
    select billing_period, billing_month, payer_account_id, billing_currency, false, false, 4, 0, 0, effective_cost_usd
    from fct_charge
    where charge_category = 'Discount'

    union all

    select billing_period, billing_month, payer_account_id, billing_currency, true, false,
        savings_scope_width(effective_rule, service, null), null, amortized_unused_to_date_usd,
        effective_unused_to_date_usd
    from fct_commitment_unused_monthly

    union all

    -- Of a commitment whose fee is on no bill of the month, the unused part is unknown.
    select billing_period, billing_month, payer_account_id, billing_currency, true, false,
        savings_scope_width(effective_rule, service, commitment_eligibility), null, null, null
    from fct_charge as charge
    where effective_rule in ('savings_plan', 'reservation') and not exists (
        select 1 from stg_aws__commitment_fee as fee
        where fee.billing_month = charge.billing_month and fee.payer_account_id = charge.payer_account_id
            and fee.billing_currency = charge.billing_currency and fee.owed_cost_usd is not null
            and fee.commitment_discount_id = coalesce(charge.commitment_discount_id, ''))
),

summed as (
    select billing_period, billing_month, payer_account_id, billing_currency, width, month.is_net_only,
        case when month.unallocated_fee_usd > 0.01 then month.unallocated_fee_usd else 0 end as unallocated_fee_usd,
        -- Whose fees may count while what used them does not.
        max(is_covered and list_cost_usd is null) as is_use_unpriced,
        sum(case when not is_unused then list_cost_usd end) as list_cost_usd,
        known_sum(case when not is_unused and list_cost_usd is not null then amortized_cost_usd else 0 end)
            as amortized_cost_usd,
        known_sum(case when not is_unused and list_cost_usd is not null then effective_cost_usd else 0 end)
            as effective_cost_usd,
        known_sum(case when is_unused then amortized_cost_usd else 0 end) as amortized_unused_usd,
        known_sum(case when is_unused then effective_cost_usd else 0 end) as effective_unused_usd,
        known_sum(case when not is_unused and list_cost_usd is null then effective_cost_usd else 0 end)
            as unpriced_cost_usd
    from charge
    left join month using (billing_month, payer_account_id, billing_currency)
    group by all
),

scope as (
    select * from (values
        (1, 'classic', 'EC2, Fargate and Lambda, no Spot, before discounts', false),
        (2, 'with_sagemaker', 'EC2, Fargate, Lambda and SageMaker, no Spot, before discounts', false),
        (3, 'with_spot', 'EC2, Fargate, Lambda, SageMaker and Spot of known list price, before discounts', false),
        (4, 'all_usage_after_discounts', 'all usage with a public price, after negotiated discounts, before credits',
            true)
    ) as listed(scope_width, savings_scope, scope_label, is_after_discounts)
),

scoped as (
    select
        summed.billing_period, summed.billing_month, summed.payer_account_id, summed.billing_currency,
        scope.savings_scope, scope.scope_label,
        coalesce(summed.list_cost_usd, 0) as list_cost_usd,
        case when scope.is_after_discounts then summed.effective_cost_usd
            when not summed.is_net_only then summed.amortized_cost_usd end as usage_cost_usd,
        case when summed.unallocated_fee_usd > 0 then null when scope.is_after_discounts then summed.effective_unused_usd
            when not summed.is_net_only then summed.amortized_unused_usd end as unused_cost_usd,
        summed.unpriced_cost_usd, summed.unallocated_fee_usd, summed.is_use_unpriced,
        summed.is_net_only and not scope.is_after_discounts as is_gross_unknown
    from summed
    join scope on scope.scope_width >= summed.width
),

rate as (
    select
        billing_period, billing_month, payer_account_id, billing_currency, savings_scope, scope_label,
        case when sum(list_cost_usd) <> 0 or not max(is_use_unpriced) then sum(list_cost_usd) end as list_cost_usd,
        known_sum(usage_cost_usd) as usage_cost_usd, known_sum(unused_cost_usd) as unused_cost_usd,
        case when not max(is_use_unpriced) then effective_savings_rate_ratio(
            list_cost_usd, usage_cost_usd, unused_cost_usd) end as effective_savings_rate_ratio,
        known_sum(unpriced_cost_usd) as unpriced_cost_usd,
        max(unallocated_fee_usd) as unallocated_fee_usd, max(is_use_unpriced) as is_use_unpriced,
        max(is_gross_unknown) as is_gross_unknown
    from scoped
    group by billing_period, billing_month, payer_account_id, billing_currency, savings_scope, scope_label
)

select
    billing_period, billing_month, payer_account_id, billing_currency, savings_scope, scope_label, list_cost_usd,
    usage_cost_usd, unused_cost_usd,
    case when not is_use_unpriced then list_cost_usd - usage_cost_usd - unused_cost_usd end as net_savings_usd,
    effective_savings_rate_ratio,
    savings_rate_reason(list_cost_usd, usage_cost_usd, unused_cost_usd, unallocated_fee_usd > 0, is_gross_unknown,
        is_use_unpriced) as lost_savings_reason,
    unpriced_cost_usd, unallocated_fee_usd
from rate
