-- One row per payer, billing month, currency, commitment and stretch of time that its bill states: what was committed,
-- and what used it. The account is its owner's: that of its ARN on FOCUS, whose lines are of the accounts that used it.
-- partition: billing_period
-- An hour of a Savings Plan, the month of a reservation (facts aws-billing 2.1, 3.1). Before discounts: a plan is
-- bought, and used, at its own price. FOCUS states each hour's use and rest instead, or the rest of a reservation's month:
-- then its use and that rest are one fee of the stretch that the rest has, as in the other exports.
with report as (
    select
        *,
        billing_month_of(bill_billing_period_start_date, billing_period) as billing_month,
        line_item_line_item_type = 'RIFee' as is_reservation,
        -- A fee without its commitment, or without the unused part of it, does not show what used it.
        case when line_item_line_item_type = 'RIFee'
            then coalesce(reservation_unused_amortized_upfront_fee_for_billing_period, reservation_unused_recurring_fee)
                is not null
            else coalesce(savings_plan_total_commitment_to_date, 0) <> 0 or coalesce(line_item_unblended_cost, 0) = 0
            end as shows_use,
        coalesce(savings_plan_offering_type, '') || ' ' || coalesce(line_item_usage_type, '') || ' '
            || line_item_product_code as offering
    from aws_cur_line_item
    where line_item_line_item_type in ('SavingsPlanRecurringFee', 'RIFee')
),

focus as (
    select
        *, coalesce(x_amortized_cost, effective_cost, 0) as amortized_cost,
        billing_month_of(billing_period_start, billing_period) as billing_month,
        focus_commitment_id(line) as commitment_id,
        focus_is_savings_plan(commitment_discount_category, commitment_discount_type, focus_commitment_id(line))
            as is_plan,
        coalesce(commitment_discount_status, '') = 'Unused' as is_unused,
        concat_ws(' ', commitment_discount_name, commitment_discount_type, x_usage_type, sku_meter) as offering,
        concat_ws(' ', x_service_code, service_name) as service
    from aws_focus_line_item as line
    where focus_is_commitment(line)
),

whole as (
    select *, min(case when is_rest then charge_period_start end) over held as rest_started_at,
        max(case when is_rest then charge_period_end end) over held as rest_ended_at,
        -- Without its purchase or an unused part, what it cost is not known, nor that it was used whole.
        max(charge_category = 'Purchase' or is_unused) over held as is_on_bill
    from (select *, charge_category = 'Usage' and is_unused and not is_plan
            and charge_period_end > charge_period_start + interval 1 day as is_rest from focus)
    window held as (partition by billing_period, billing_account_id, billing_currency, commitment_id)
),

-- One kind for each plan: by the words of its fee, else of what it left unused, else by the service of what used it.
plan as (
    select
        billing_period, billing_account_id, billing_currency, commitment_id,
        coalesce(max(case when charge_category = 'Purchase' then worded_plan_kind(offering || ' ' || service) end),
            max(case when is_unused then worded_plan_kind(offering || ' ' || service) end),
            max(case when service like '%SageMaker%' then 'sagemaker_savings_plan' end),
            max(worded_plan_kind(offering)), 'compute_savings_plan') as commitment_kind
    from focus
    where is_plan
    group by billing_period, billing_account_id, billing_currency, commitment_id
),

declared as (
    select
        billing_period, billing_month, bill_payer_account_id as payer_account_id,
        line_item_usage_account_id as account_id, line_item_currency_code as billing_currency,
        coalesce(case when is_reservation then reservation_reservation_a_r_n
            else savings_plan_savings_plan_a_r_n end, '') as commitment_discount_id,
        case when is_reservation then 'reserved_instance' else savings_plan_kind(offering) end as commitment_kind,
        line_item_usage_start_date as fee_started_at,
        exclusive_end(line_item_usage_end_date, billing_month) as fee_ended_at,
        case when is_reservation then coalesce(line_item_unblended_cost, 0)
                + coalesce(reservation_amortized_upfront_fee_for_billing_period, 0)
            when shows_use then coalesce(savings_plan_total_commitment_to_date, 0) end as commitment_cost_usd,
        line_item_unblended_cost as billed_cost_usd,
        case when shows_use and not is_reservation then coalesce(savings_plan_used_commitment, 0) end as used_cost_usd,
        case when not shows_use then null when is_reservation
            then coalesce(reservation_unused_amortized_upfront_fee_for_billing_period, 0)
                + coalesce(reservation_unused_recurring_fee, 0)
            else coalesce(savings_plan_total_commitment_to_date, 0) - coalesce(savings_plan_used_commitment, 0) end
            as unused_cost_usd,
        case when is_reservation then try_cast(reservation_total_reserved_units as decimal(20, 10)) end
            as reserved_units,
        coalesce(savings_plan_payment_option, pricing_purchase_option) as payment_option,
        coalesce(savings_plan_purchase_term, pricing_lease_contract_length) as purchase_term,
        coalesce(savings_plan_region, product_region_code) as region_id,
        coalesce(savings_plan_instance_type_family,
            instance_family(coalesce(product_instance_type, instance_type_of(line_item_usage_type)))) as instance_family,
        moment_of(coalesce(savings_plan_start_time, reservation_start_time)) as started_at,
        moment_of(coalesce(savings_plan_end_time, reservation_end_time)) as ended_at
    from report

    union all

    select
        focus.billing_period, billing_month, focus.billing_account_id,
        coalesce(nullif(split_part(focus.commitment_id, ':', 5), ''), sub_account_id, focus.billing_account_id),
        focus.billing_currency, focus.commitment_id,
        case when focus.is_plan then plan.commitment_kind else 'reserved_instance' end,
        coalesce(rest_started_at, charge_period_start), coalesce(rest_ended_at, charge_period_end),
        case when is_on_bill then amortized_cost end, case when is_on_bill then billed_cost end,
        case when rest_started_at is not null then null when is_unused then 0 else amortized_cost end,
        case when is_unused then amortized_cost when is_on_bill then 0 end,
        null, null, null, case when not focus.is_plan then region_id end, case when not focus.is_plan then instance_family(
            coalesce(sku_instance_type, instance_type_of(coalesce(x_usage_type, sku_meter)))) end, null, null
    from whole as focus
    left join plan using (billing_period, billing_account_id, billing_currency, commitment_id)
    where focus.charge_category = 'Usage'
)

select
    billing_period, billing_month, payer_account_id, billing_currency, commitment_discount_id, commitment_kind,
    fee_started_at, fee_ended_at, max(account_id) as account_id,
    known_sum(commitment_cost_usd) as commitment_cost_usd, known_sum(used_cost_usd) as used_cost_usd,
    known_sum(unused_cost_usd) as unused_cost_usd,
    -- What the lines it covers must explain; null where no fee is on the bill.
    sum(coalesce(commitment_cost_usd, billed_cost_usd) - coalesce(unused_cost_usd, 0)) as owed_cost_usd,
    sum(reserved_units) as reserved_units,
    max(payment_option) as payment_option, max(purchase_term) as purchase_term, max(region_id) as region_id,
    max(instance_family) as instance_family, max(started_at) as started_at, max(ended_at) as ended_at
from declared
group by all
