-- One row per payer, billing month, currency, Savings Plan and hour (day, where the report is daily): what was
-- committed and what used it.
-- partition: billing_period
select
    billing_period,
    billing_month_of(bill_billing_period_start_date, billing_period) as billing_month,
    bill_payer_account_id as payer_account_id,
    line_item_currency_code as billing_currency,
    coalesce(savings_plan_savings_plan_a_r_n, '') as commitment_discount_id,
    date_trunc('hour', line_item_usage_start_date) as usage_started_at,
    coalesce(sum(savings_plan_savings_plan_effective_cost)
        filter (where line_item_line_item_type = 'SavingsPlanCoveredUsage'), 0) as covered_cost_usd,
    coalesce(sum(savings_plan_used_commitment)
        filter (where line_item_line_item_type = 'SavingsPlanRecurringFee'), 0) as used_commitment_usd,
    coalesce(sum(savings_plan_total_commitment_to_date)
        filter (where line_item_line_item_type = 'SavingsPlanRecurringFee'), 0) as total_commitment_usd
from aws_cur_line_item
where line_item_line_item_type in ('SavingsPlanCoveredUsage', 'SavingsPlanRecurringFee')
group by all
