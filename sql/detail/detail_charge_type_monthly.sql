-- One row per payer × billing month × currency × entity × charge category × charge type × description of a credit,
-- discount or refund.
-- Credits are distinguished by their description: it names the program they come from (facts 2.5).
select
    payer_account_id, billing_month, billing_currency as currency, billing_entity, charge_category,
    coalesce(charge_type, '') as charge_type,
    coalesce(charge_description, '') as charge_description,
    sum(line_count) as line_count,
    known_sum(amortized_cost_usd) as amortized_cost_usd,
    known_sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from fct_charge_sum_monthly
group by payer_account_id, billing_month, billing_currency, billing_entity, charge_category,
    coalesce(charge_type, ''), coalesce(charge_description, '')
